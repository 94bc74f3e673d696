/* Numbers in decimal digits, of at most 20 bytes with their sign. A caller has room for them. */
#ifndef DECIMAL_H
#define DECIMAL_H

#include <stdint.h>
#include <string.h>

enum { MOST_DIGITS = 24 };

/* Writes at least `least` digits; returns their number. */
static inline int64_t digits(uint8_t *out, uint64_t value, int64_t least) {
  uint8_t text[MOST_DIGITS];
  int64_t size = 0;
  do text[MOST_DIGITS - ++size] = (uint8_t)('0' + value % 10);
  while (value /= 10);
  while (size < least) text[MOST_DIGITS - ++size] = '0';
  memcpy(out, text + MOST_DIGITS - size, (size_t)size);
  return size;
}

static inline uint64_t magnitude(int64_t value) { return value < 0 ? -(uint64_t)value : (uint64_t)value; }

static inline int64_t signed_digits(uint8_t *out, int64_t value) {
  if (value < 0) *out = '-';
  return (value < 0) + digits(out + (value < 0), magnitude(value), 1);
}

#endif
