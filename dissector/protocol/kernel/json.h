/* Values as JSON, written behind a check for room: what json.c and json_records.c share. */
#ifndef JSON_H
#define JSON_H

#include <string.h>

#include "big_endian.h"
#include "kernel.h"

/* What becomes of a message. FULL is not seen in Python. */
enum { OUTCOME, FULL };
enum { RECORDS_FORM };

typedef struct {
  uint8_t *data;
  int64_t at, capacity;
} JsonOut;

/* What the records of one message may still cost (`compression.DecompressionBudget`), and its decompressed sections, in
 * the order of the wire. */
typedef struct {
  int64_t packed, left;
  const uint64_t *sections;
  const int64_t *section_sizes;
  int64_t section, section_end;
  uint8_t *scratch;
  int64_t scratch_size;
  int64_t plain_left; /* bytes that may still be decompressed here */
  int64_t packed_ratio, expanded; /* as in KernelJson */
  const KernelSecretMarks *secrets; /* what may hold one is for the careful way */
  int is_compressed;  /* whether a compressed batch was met */
} JsonRecords;

/* Decompresses an lz4 frame of independent blocks without checksums, as Kafka's clients write it. Returns how many bytes
 * it has, or -1 where it is another frame, is damaged or has more than `capacity`. */
int64_t lz4_frame(const uint8_t *data, int64_t size, uint8_t *out, int64_t capacity);

/* Writes a `records` field. Returns WRITTEN, CAREFUL, FULL, or COMPRESSED where a section is needed that is not there. */
int write_records(JsonOut *out, const uint8_t *data, int64_t size, JsonRecords *records);

/* Writes the bytes of a `records` field, and the sizes of its batches. Returns WRITTEN, CAREFUL or FULL. */
int write_packed_records(JsonOut *out, const uint8_t *data, int64_t size, JsonRecords *found);
int write_heads(JsonOut *out, const uint8_t *data, int64_t size, JsonRecords *found);

static inline int room(const JsonOut *out, int64_t size) {
  return size <= out->capacity - out->at;
}

static inline int write_text(JsonOut *out, const void *text, int64_t size) {
  if (!room(out, size)) return FULL;
  memcpy(out->data + out->at, text, (size_t)size);
  out->at += size;
  return WRITTEN;
}

static inline int write_int(JsonOut *out, int64_t value) {
  uint8_t digits[20];
  int n = sizeof digits;
  uint64_t left = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
  do {
    digits[--n] = (uint8_t)('0' + left % 10);
    left /= 10;
  } while (left);
  if (value < 0) digits[--n] = '-';
  return write_text(out, digits + n, (int64_t)sizeof digits - n);
}

static inline int write_hex(JsonOut *out, const uint8_t *data, int64_t size) {
  if (!room(out, 2 * size + 2)) return FULL;
  uint8_t *to = out->data + out->at;
  *to++ = '"';
  for (int64_t n = 0; n < size; n++) {
    uint8_t high = data[n] >> 4, low = data[n] & 15;
    to[2 * n] = (uint8_t)(high + (high > 9 ? 'a' - 10 : '0'));
    to[2 * n + 1] = (uint8_t)(low + (low > 9 ? 'a' - 10 : '0'));
  }
  to[2 * size] = '"';
  out->at += 2 * size + 2;
  return WRITTEN;
}

/* Text of printable ASCII; other text is for the careful way. */
static inline int write_string(JsonOut *out, const uint8_t *data, int64_t size) {
  if (!room(out, 2 * size + 2)) return FULL;
  uint8_t *to = out->data + out->at;
  *to++ = '"';
  for (int64_t n = 0; n < size; n++) {
    uint8_t each = data[n];
    if (each < 0x20 || each > 0x7E) return CAREFUL;
    if (each == '"' || each == '\\') *to++ = '\\';
    *to++ = each;
  }
  *to++ = '"';
  out->at = to - out->data;
  return WRITTEN;
}

#endif
