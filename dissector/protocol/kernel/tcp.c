/* Options of TCP headers (RFC 9293, 3.2; RFC 7323). */
#include "kernel.h"

enum { END_OF_OPTIONS = 0, NO_OPERATION = 1, WINDOW_SCALE = 3, NO_SCALE = -1, MOST_SCALE = 14 };

static int64_t scale(const uint8_t *at, const uint8_t *end) {
  while (end - at > 1 && *at != END_OF_OPTIONS) {
    if (*at == NO_OPERATION) {
      at++;
      continue;
    }
    if (*at == WINDOW_SCALE && at[1] == 3 && end - at > 2) return at[2] < MOST_SCALE ? at[2] : MOST_SCALE;
    if (at[1] < 2 || at[1] > end - at) break;
    at += at[1];
  }
  return NO_SCALE;
}

/* Writes the window scale that options have, at most MOST_SCALE (RFC 7323, 2.3), and NO_SCALE where they have none.
 * `starts` and `ends` are their places in the `size` bytes at `data`: where they are not inside, nothing is read. Returns
 * `rows`. */
KERNEL_API int64_t kernel_window_scales(const uint8_t *data, int64_t size, const int64_t *starts, const int64_t *ends,
                                        int64_t rows, int64_t *scales) {
  for (int64_t row = 0; row < rows; row++) {
    int is_inside = 0 <= starts[row] && starts[row] <= ends[row] && ends[row] <= size;
    scales[row] = is_inside ? scale(data + starts[row], data + ends[row]) : NO_SCALE;
  }
  return rows;
}
