/* The entries of a `records` field: batches, messages of old message sets, and anything else. */
#ifndef RECORD_ENTRIES_H
#define RECORD_ENTRIES_H

#include "big_endian.h"
#include "shared.h"

enum { RECORDS_ENTRY };
enum { ENTRY_KIND };
enum { BATCH_OFFSET };
enum { BATCH_ATTRIBUTE };
enum { CODEC };

/* The kind of the entry at data[at], where at < end, and its end in *next: at < *next <= end. A batch has all bytes of
 * its header, a message those of its least size. */
static inline int entry_at(const uint8_t *data, int64_t at, int64_t end, int64_t *next) {
  static const int64_t least_size[] = {LEAST_SIZES};
  *next = end;
  if (end - at <= MAGIC_AT) {
    return ENTRY_TRUNCATED;
  }
  int64_t size = be_int32(data + at + SIZE_AT);
  uint8_t magic = data[at + MAGIC_AT];
  if (magic > 2 || size < least_size[magic]) {
    return ENTRY_UNKNOWN;
  }
  if (size > end - at - LOG_OVERHEAD) {
    return ENTRY_TRUNCATED;
  }
  *next = at + LOG_OVERHEAD + size;
  return magic == 2 ? ENTRY_BATCH : ENTRY_MESSAGE;
}

#endif
