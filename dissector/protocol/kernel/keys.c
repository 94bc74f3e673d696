/* Numbers rows by the keys that `kernel_shred` made of them.
 *
 * Nothing outside the buffers is read: `key_ends` grow from row to row, as `kernel_shred` sets them, and end in `keys`.
 * There are more slots than rows, so one is free, and the search for a row's ends.
 */
#include <string.h>

#include "kernel.h"

static inline uint64_t hash(const uint8_t *data, int64_t size) {
  uint64_t sum = (uint64_t)size * 0x9E3779B97F4A7C15u;
  for (; size >= 8; data += 8, size -= 8) {
    uint64_t word;
    memcpy(&word, data, 8);
    sum = (sum ^ word) * 0x9E3779B97F4A7C15u;
    sum ^= sum >> 32;
  }
  uint64_t word = 0;
  memcpy(&word, data, (size_t)size);
  sum = (sum ^ word) * 0x9E3779B97F4A7C15u;
  return sum ^ sum >> 29;
}

/* Numbers rows by their keys: equal keys have one number, from 0 in the order in which they come. `slots` are 2^bits,
 * more than rows, all -1; `first_rows` gets the first row of each number. Rows in error get -1. Returns how many
 * different keys there are. */
KERNEL_API int64_t kernel_number_keys(const uint8_t *keys, const int64_t *key_ends, const uint8_t *errors, int64_t rows,
                                      int32_t *slots, int32_t bits, int32_t *numbers, int32_t *first_rows) {
  int64_t different = 0;
  uint64_t mask = ((uint64_t)1 << bits) - 1;
  for (int64_t row = 0; row < rows; row++) {
    if (errors[row]) {
      numbers[row] = -1;
      continue;
    }
    int64_t start = row ? key_ends[row - 1] : 0, size = key_ends[row] - start;
    uint64_t slot = hash(keys + start, size) & mask;
    for (;; slot = (slot + 1) & mask) {
      if (slots[slot] < 0) {
        slots[slot] = (int32_t)different;
        first_rows[different++] = (int32_t)row;
        break;
      }
      int64_t other = first_rows[slots[slot]], other_start = other ? key_ends[other - 1] : 0;
      if (key_ends[other] - other_start == size && !memcmp(keys + other_start, keys + start, (size_t)size)) break;
    }
    numbers[row] = slots[slot];
  }
  return different;
}
