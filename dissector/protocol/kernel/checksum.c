/* CRC-32C (Castagnoli, RFC 3720), the checksum of record batches, as kernel_crc32c(data, size).
 *
 * By the processor's own instruction where it has one, else by tables, eight bytes a step ("slicing by 8": table k holds
 * the checksum of a byte that k zero bytes follow). Both read whole words only while eight bytes or more are left, and
 * single bytes then: no read is outside data[0, size). A size below zero is that of no bytes. */
#include "kernel.h"

#include <string.h>

/* The reflected polynomial is 0x82F63B78. A checksum is linear in the bits of its input, so the 256 entries of a table
 * follow from the eight of single bits, which a row lists from the lowest to the highest. */
#define BIT(i, bit, crc) (((i) >> (bit)) & 1 ? UINT32_C(crc) : 0)
#define ENTRY(i, a, b, c, d, e, f, g, h)                                                                             \
  (BIT(i, 0, a) ^ BIT(i, 1, b) ^ BIT(i, 2, c) ^ BIT(i, 3, d) ^ BIT(i, 4, e) ^ BIT(i, 5, f) ^ BIT(i, 6, g) ^ BIT(i, 7, h))
#define FOUR(i, ...) ENTRY(i, __VA_ARGS__), ENTRY(i + 1, __VA_ARGS__), ENTRY(i + 2, __VA_ARGS__), ENTRY(i + 3, __VA_ARGS__)
#define SIXTEEN(i, ...) FOUR(i, __VA_ARGS__), FOUR(i + 4, __VA_ARGS__), FOUR(i + 8, __VA_ARGS__), FOUR(i + 12, __VA_ARGS__)
#define SIXTY_FOUR(i, ...)                                                                                           \
  SIXTEEN(i, __VA_ARGS__), SIXTEEN(i + 16, __VA_ARGS__), SIXTEEN(i + 32, __VA_ARGS__), SIXTEEN(i + 48, __VA_ARGS__)
#define TABLE(...)                                                                                                   \
  { SIXTY_FOUR(0, __VA_ARGS__), SIXTY_FOUR(64, __VA_ARGS__), SIXTY_FOUR(128, __VA_ARGS__), SIXTY_FOUR(192, __VA_ARGS__) }

static const uint32_t TABLES[8][256] = {
  TABLE(0xF26B8303, 0xE13B70F7, 0xC79A971F, 0x8AD958CF, 0x105EC76F, 0x20BD8EDE, 0x417B1DBC, 0x82F63B78),
  TABLE(0x13A29877, 0x274530EE, 0x4E8A61DC, 0x9D14C3B8, 0x3FC5F181, 0x7F8BE302, 0xFF17C604, 0xFBC3FAF9),
  TABLE(0xA541927E, 0x4F6F520D, 0x9EDEA41A, 0x38513EC5, 0x70A27D8A, 0xE144FB14, 0xC76580D9, 0x8B277743),
  TABLE(0xDD45AAB8, 0xBF672381, 0x7B2231F3, 0xF64463E6, 0xE964B13D, 0xD725148B, 0xABA65FE7, 0x52A0C93F),
  TABLE(0x38116FAC, 0x7022DF58, 0xE045BEB0, 0xC5670B91, 0x8F2261D3, 0x1BA8B557, 0x37516AAE, 0x6EA2D55C),
  TABLE(0xEF306B19, 0xDB8CA0C3, 0xB2F53777, 0x6006181F, 0xC00C303E, 0x85F4168D, 0x0E045BEB, 0x1C08B7D6),
  TABLE(0x68032CC8, 0xD0065990, 0xA5E0C5D1, 0x4E2DFD53, 0x9C5BFAA6, 0x3D5B83BD, 0x7AB7077A, 0xF56E0EF4),
  TABLE(0x493C7D27, 0x9278FA4E, 0x211D826D, 0x423B04DA, 0x847609B4, 0x0D006599, 0x1A00CB32, 0x34019664),
};

static uint32_t by_tables(uint32_t crc, const uint8_t *data, int64_t size) {
  for (; size >= 8; size -= 8, data += 8) {
    uint32_t first = crc ^ ((uint32_t)data[0] | (uint32_t)data[1] << 8 | (uint32_t)data[2] << 16 | (uint32_t)data[3] << 24);
    crc = TABLES[7][first & 0xFF] ^ TABLES[6][first >> 8 & 0xFF] ^ TABLES[5][first >> 16 & 0xFF] ^ TABLES[4][first >> 24] ^
          TABLES[3][data[4]] ^ TABLES[2][data[5]] ^ TABLES[1][data[6]] ^ TABLES[0][data[7]];
  }
  for (; size > 0; size--) {
    crc = crc >> 8 ^ TABLES[0][(crc ^ *data++) & 0xFF];
  }
  return crc;
}

#if defined(__x86_64__) && !defined(TABLES_ALONE)
#include <cpuid.h>
#include <nmmintrin.h>

static int has_instruction; /* written once, before the loader hands out the library */

/* Not __builtin_cpu_supports: where zig links it, it knows of no feature. */
__attribute__((constructor)) static void look_for_instruction(void) {
  unsigned int a, b, c, d;
  has_instruction = __get_cpuid(1, &a, &b, &c, &d) && (c & bit_SSE4_2);
}

__attribute__((target("sse4.2,crc32"))) static uint32_t by_instruction(uint32_t crc, const uint8_t *data, int64_t size) {
  uint64_t word, wide = crc;
  for (; size >= 8; size -= 8, data += 8) {
    memcpy(&word, data, 8);
    wide = _mm_crc32_u64(wide, word);
  }
  crc = (uint32_t)wide;
  for (; size > 0; size--) {
    crc = _mm_crc32_u8(crc, *data++);
  }
  return crc;
}
#elif defined(__ARM_FEATURE_CRC32) && defined(__AARCH64EL__) && !defined(TABLES_ALONE) /* all Macs, not all of Linux */
#include <arm_acle.h>

enum { has_instruction = 1 };

static uint32_t by_instruction(uint32_t crc, const uint8_t *data, int64_t size) {
  uint64_t word;
  for (; size >= 8; size -= 8, data += 8) {
    memcpy(&word, data, 8);
    crc = __crc32cd(crc, word);
  }
  for (; size > 0; size--) {
    crc = __crc32cb(crc, *data++);
  }
  return crc;
}
#else
enum { has_instruction = 0 };
#define by_instruction by_tables
#endif

uint32_t kernel_crc32c(const uint8_t *data, int64_t size) {
  return ~(has_instruction ? by_instruction : by_tables)(~UINT32_C(0), data, size);
}
