/* Opens the sections of many batches of magic 2: their records, decompressed, one behind the other.
 *
 * A section is read only where 0 <= section_start <= section_end <= size. Nothing is written behind `capacity`: a plain
 * section is copied where there is room for it, a compressed one is decompressed into the room that is left. */
#include "json.h"
#include "record_entries.h"

/* Opens the sections of the entries from `first` to before `end` into `out`, which has *filled bytes, and says of each
 * where it is there. Returns the number of the first that it leaves to the caller, or `end`: it has another codec, is
 * damaged or masked, or there is no room for it. */
KERNEL_API int64_t kernel_open_sections(const uint8_t *data, int64_t size, KernelEntry *entries, int64_t first,
                                        int64_t end, uint8_t *out, int64_t capacity, int64_t *filled) {
  int64_t at = *filled, n = first;
  for (; n < end; n++) {
    KernelEntry *entry = &entries[n];
    if (entry->kind != ENTRY_BATCH) continue;
    int64_t start = entry->section_start, width = entry->section_end - start, opened = -1;
    if (start < 0 || width < 0 || entry->section_end > size || (width && data[start] == '*')) break;
    if ((entry->attributes & CODEC_MASK) == CODEC_NONE && width <= capacity - at) {
      memcpy(out + at, data + start, (size_t)width);
      opened = width;
    } else if ((entry->attributes & CODEC_MASK) == CODEC_LZ4) {
      opened = lz4_frame(data + start, width, out + at, capacity - at);
    }
    if (opened < 0) break;
    entry->section_start = at;
    entry->section_end = at += opened;
  }
  *filled = at;
  return n;
}
