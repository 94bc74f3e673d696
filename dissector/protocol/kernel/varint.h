/* Unsigned varints as sizes and counts have them: five bytes or less (KIP-482). */
#ifndef VARINT_H
#define VARINT_H

#include <stdint.h>

/* Reads all 35 bits that five bytes may hold; returns 0 if the varint does not end before `end`, or in five bytes. */
static inline int uvarint35(const uint8_t *data, int64_t *at, int64_t end, uint64_t *value) {
  uint64_t sum = 0;
  for (int n = 0; n < 5; n++) {
    if (*at + n >= end) return 0;
    uint8_t byte = data[*at + n];
    sum |= (uint64_t)(byte & 0x7F) << (7 * n);
    if (byte < 0x80) {
      *value = sum;
      *at += n + 1;
      return 1;
    }
  }
  return 0;
}

/* The same, of which only 32 bits count, as for Apache's readers. */
static inline int uvarint(const uint8_t *data, int64_t *at, int64_t end, uint32_t *value) {
  uint64_t sum;
  if (!uvarint35(data, at, end, &sum)) return 0;
  *value = (uint32_t)sum;
  return 1;
}

#endif
