/* Integers in network byte order. A caller has checked that all their bytes are there. */
#ifndef BIG_ENDIAN_H
#define BIG_ENDIAN_H

#include <stdint.h>

static inline uint32_t be_uint32(const uint8_t *at) {
  return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static inline uint64_t be_uint64(const uint8_t *at) {
  return (uint64_t)be_uint32(at) << 32 | be_uint32(at + 4);
}

/* Not a cast alone: what that does to large numbers is up to the compiler. */
static inline int64_t as_int64(uint64_t value) {
  return value >> 63 ? -(int64_t)~value - 1 : (int64_t)value;
}

static inline int64_t be_int16(const uint8_t *at) {
  return ((int64_t)at[0] << 8 | at[1]) - (at[0] >> 7 ? INT64_C(1) << 16 : 0);
}

static inline int64_t be_int32(const uint8_t *at) {
  return (int64_t)be_uint32(at) - (at[0] >> 7 ? INT64_C(1) << 32 : 0);
}

static inline int64_t be_int64(const uint8_t *at) {
  return as_int64(be_uint64(at));
}

#endif
