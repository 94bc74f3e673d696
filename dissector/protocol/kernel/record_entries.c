/* Counts the records of many `records` fields by the headers of their batches, as `counting.count_records` does.
 *
 * No read is outside the buffer: a field is looked at only where 0 <= start <= end <= size, an entry ends inside its
 * field, and has the bytes that are read of it (`entry_at`). Each entry has more than a byte, so the walk ends. */
#include "kernel.h"
#include "record_entries.h"

enum { BATCH_CODEC_AT = 22, BATCH_COUNT_AT = 57, MESSAGE_CODEC_AT = 17, CODEC_MASK = 7 };

/* Fills `counts`, and `codecs` with a bit for each codec, of the fields data[starts[n], ends[n]). A field that ends
 * before it starts is null. Returns how many fields were counted: fewer than `fields` if the next is outside the data. */
int64_t kernel_count_records(const uint8_t *data, int64_t size, const int64_t *starts, const int64_t *ends,
                             int64_t fields, int64_t *counts, uint8_t *codecs) {
  for (int64_t field = 0; field < fields; field++) {
    int64_t at = starts[field], end = ends[field], next;
    uint64_t count = 0;
    unsigned bits = 0;
    if (at < end && (at < 0 || end > size)) {
      return field;
    }
    for (; at < end; at = next) {
      int kind = entry_at(data, at, end, &next);
      if (kind == ENTRY_BATCH) {
        int64_t records = be_int32(data + at + BATCH_COUNT_AT);
        count += records > 0 ? (uint64_t)records : 0;
        bits |= 1u << (data[at + BATCH_CODEC_AT] & CODEC_MASK);
      } else if (kind == ENTRY_MESSAGE) {
        count++;
        bits |= 1u << (data[at + MESSAGE_CODEC_AT] & CODEC_MASK);
      }
    }
    counts[field] = as_int64(count);
    codecs[field] = (uint8_t)bits;
  }
  return fields;
}
