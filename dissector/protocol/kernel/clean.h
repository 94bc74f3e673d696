/* What the fields of a message with secrets look like where they were read from the right places: `secrets.is_clean`. */
#ifndef CLEAN_H
#define CLEAN_H

#include <stdint.h>

/* Whether a number of eight bytes can be what such messages have: a time or a duration, or none. */
static inline int is_time(int64_t value) {
  return value == INT64_MAX || (value >= -1 && value < INT64_C(1) << 43);
}

/* Whether a text is ASCII without control characters. Other text may be clean, too. */
static inline int is_plain_text(const uint8_t *data, int64_t size) {
  int unlike = 0;
  for (int64_t n = 0; n < size; n++) unlike |= data[n] < 0x20 || data[n] > 0x7E;
  return !unlike;
}

#endif
