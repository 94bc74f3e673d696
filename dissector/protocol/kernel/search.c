/* Finds frames that contain one of some marks.
 *
 * A mark is found by one of its bytes, its anchor, that is rare in frames. It is compared only where all of it is inside
 * of the frame: at most `size - length` bytes are in front of it. */
#include <string.h>

#include "kernel.h"

static int contains(const uint8_t *data, int64_t size, const uint8_t *mark, int64_t length, int64_t anchor) {
  if (size < length) return 0;
  const uint8_t *at = data + anchor, *end = data + size - length + anchor + 1; /* of where the anchor may be */
  while ((at = memchr(at, mark[anchor], (size_t)(end - at)))) {
    if (!memcmp(at - anchor, mark, (size_t)length)) return 1;
    if (++at == end) return 0;
  }
  return 0;
}

/* Says of each frame whether it contains one of the marks, which stand one behind the other: `lengths` are their sizes, at
 * least 1, and `anchors` the places of their rare bytes, below these. Returns `rows`. */
KERNEL_API int64_t kernel_contain(const uint64_t *frames, const int64_t *sizes, int64_t rows, const uint8_t *marks,
                                  const int64_t *lengths, const int64_t *anchors, int64_t count, uint8_t *found) {
  for (int64_t row = 0; row < rows; row++) {
    const uint8_t *data = (const uint8_t *)(uintptr_t)frames[row], *mark = marks;
    found[row] = 0;
    for (int64_t n = 0; n < count && !found[row]; mark += lengths[n++])
      found[row] = (uint8_t)contains(data, sizes[row], mark, lengths[n], anchors[n]);
  }
  return rows;
}
