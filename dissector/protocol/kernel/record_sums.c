/* Sums hashes of the records of many batches, so that two sides can be compared without keeping their records.
 *
 * No read is outside a section, which is looked at only where 0 <= section_start <= section_end <= size: `at` begins as
 * its start, a byte is read only where at < stop, and `at` becomes a record's end only after that was compared with
 * `stop`. `uvarint` checks each of its bytes. Records are counted against LEAST_RECORD bytes each first, and sizes have
 * 32 bits, so no number overflows; sums are unsigned and wrap. */
#include "kernel.h"
#include "record_entries.h"
#include "varint.h"

#include <string.h>

enum { NO_KEY = 1 /* a size of -1 */, CONTINUES = 0x80 };
enum { BATCH_ERROR };

static inline uint64_t little_endian(const uint8_t *data, int64_t size) {
  uint64_t value = 0;
  for (int64_t n = 0; n < size; n++) value |= (uint64_t)data[n] << 8 * n;
  return value;
}

static inline uint64_t rotated(uint64_t value, int by) {
  return value << by | value >> (64 - by);
}

static inline void sip_round(uint64_t v[4]) {
  v[0] += v[1], v[2] += v[3];
  v[1] = rotated(v[1], 13) ^ v[0], v[3] = rotated(v[3], 16) ^ v[2];
  v[0] = rotated(v[0], 32);
  v[2] += v[1], v[0] += v[3];
  v[1] = rotated(v[1], 17) ^ v[2], v[3] = rotated(v[3], 21) ^ v[0];
  v[2] = rotated(v[2], 32);
}

/* SipHash-1-3 (Aumasson and Bernstein, 2012) under a key of 16 bytes. */
static uint64_t sip_hash(const uint64_t key[2], const uint8_t *data, int64_t size) {
  uint64_t v[4] = {key[0] ^ 0x736f6d6570736575u, key[1] ^ 0x646f72616e646f6du, key[0] ^ 0x6c7967656e657261u,
                   key[1] ^ 0x7465646279746573u};
  uint64_t last = (uint64_t)size << 56;
  for (; size >= 8; data += 8, size -= 8) {
    uint64_t word = little_endian(data, 8);
    v[3] ^= word;
    sip_round(v);
    v[0] ^= word;
  }
  last |= little_endian(data, size);
  v[3] ^= last;
  sip_round(v);
  v[0] ^= last;
  v[2] ^= 0xFF;
  sip_round(v), sip_round(v), sip_round(v);
  return v[0] ^ v[1] ^ v[2] ^ v[3];
}

/* The offset behind a varint of any length, at most `stop`. */
static inline int64_t behind_varint(const uint8_t *data, int64_t at, int64_t stop) {
  while (at < stop && data[at] >= CONTINUES) at++;
  return at < stop ? at + 1 : stop;
}

/* Adds the records of a section of `count` records. Returns 0 if it is damaged. */
static int add_records(const uint8_t *data, int64_t at, int64_t stop, int64_t count, const uint64_t key[2],
                       KernelRecordSum *sum) {
  if (count < 0 || count > (stop - at) / LEAST_RECORD) return 0;
  for (int64_t n = 0; n < count; n++) {
    uint32_t size;
    if (!uvarint(data, &at, stop, &size) || size & 1 || (size >>= 1) > stop - at) return 0;
    int64_t end = at + size;
    at = behind_varint(data, at + 1, end); /* attributes, and the delta of the timestamp; then that of the offset */
    at = behind_varint(data, at, end);
    if (at >= end) return 0;
    uint64_t hash = sip_hash(key, data + at, end - at);
    sum->records += hash;
    if (data[at] != NO_KEY) {
      sum->keyed += hash;
      sum->keyed_count++;
    }
    at = end;
  }
  return 1;
}

/* Fills `sums` for each entry: those of its records' keys, values and headers, as they are on the wire. One that is no
 * batch, or damaged, has none; a damaged one gets an error. `key` has 16 bytes. */
KERNEL_API int64_t kernel_sum_records(const uint8_t *data, int64_t size, KernelEntry *entries, int64_t count,
                                      const uint8_t *key, KernelRecordSum *sums) {
  const uint64_t words[2] = {little_endian(key, 8), little_endian(key + 8, 8)};
  for (int64_t n = 0; n < count; n++) {
    KernelEntry *entry = &entries[n];
    int64_t start = entry->section_start, stop = entry->section_end;
    sums[n] = (KernelRecordSum){0, 0, 0};
    if (entry->kind != ENTRY_BATCH || entry->error) continue;
    if (start < 0 || start > stop || stop > size ||
        !add_records(data, start, stop, entry->records_count, words, &sums[n])) {
      sums[n] = (KernelRecordSum){0, 0, 0};
      entry->error = DAMAGED;
      entry->error_at = entry->start;
    }
  }
  return count;
}
