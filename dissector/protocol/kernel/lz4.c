/* Decompresses lz4 frames of independent blocks (lz4_Frame_format.md and lz4_Block_format.md of the lz4 project).
 *
 * What is rare or damaged is refused, and Python's library decides: checksums, blocks that refer to those before, one
 * that does not end with literals as the format wants it.
 *
 * Why no access is outside a buffer: a read at `at` follows a check of at < end, or of n <= end - at for n bytes; a write
 * follows a check of n <= capacity - filled, and a match begins at filled - offset, where 0 < offset <= filled. Lengths
 * are sums of at most `size` bytes, so they do not overflow. A block is read and written as a buffer of its own: it ends
 * before the frame's end mark, and its capacity is the room that the blocks before it left. */
#include "json.h"

enum { FRAME_HEAD = 7, BLOCK_HEAD = 4, END_MARK = 4, LEAST_MATCH = 4, LONG = 15, AFTER_LITERALS = 8 };
#define IS_PLAIN UINT32_C(0x80000000) /* in the size of a block: it is not compressed */

static inline uint32_t le_uint32(const uint8_t *at) {
  return (uint32_t)at[3] << 24 | (uint32_t)at[2] << 16 | (uint32_t)at[1] << 8 | at[0];
}

/* Adds the bytes that continue a length of 15. Returns 0 where they do not end. */
static inline int long_length(const uint8_t *data, int64_t *at, int64_t end, int64_t *length) {
  uint8_t byte = 255;
  while (byte == 255) {
    if (*at >= end) return 0;
    byte = data[(*at)++];
    *length += byte;
  }
  return 1;
}

static int64_t lz4_block(const uint8_t *data, int64_t end, uint8_t *out, int64_t capacity) {
  int64_t at = 0, filled = 0;
  while (at < end) {
    uint8_t token = data[at++];
    int64_t length = token >> 4;
    if (length == LONG && !long_length(data, &at, end, &length)) return -1;
    if (length > end - at || length > capacity - filled) return -1;
    memcpy(out + filled, data + at, (size_t)length);
    at += length;
    filled += length;
    if (at == end) return filled;
    if (end - at < AFTER_LITERALS) return -1;
    int64_t offset = (int64_t)data[at] | (int64_t)data[at + 1] << 8;
    at += 2;
    length = token & LONG;
    if (length == LONG && !long_length(data, &at, end, &length)) return -1;
    length += LEAST_MATCH;
    if (!offset || offset > filled || length > capacity - filled) return -1;
    if (offset >= length) {
      memcpy(out + filled, out + filled - offset, (size_t)length);
    } else {
      for (int64_t n = 0; n < length; n++) out[filled + n] = out[filled + n - offset];
    }
    filled += length;
  }
  return -1;
}

int64_t lz4_frame(const uint8_t *data, int64_t size, uint8_t *out, int64_t capacity) {
  /* The magic, a descriptor of independent blocks without checksums, the largest block, the descriptor's checksum. */
  static const uint8_t heads[][FRAME_HEAD] = {
    {4, 34, 77, 24, 0x60, 0x40, 0x82}, {4, 34, 77, 24, 0x60, 0x50, 0xfb},
    {4, 34, 77, 24, 0x60, 0x60, 0x51}, {4, 34, 77, 24, 0x60, 0x70, 0x73},
  };
  int64_t at = FRAME_HEAD, end = size - END_MARK, filled = 0, most = 0;
  if (end <= at || le_uint32(data + end)) return -1;
  for (int n = 0; n < 4; n++) {
    if (!memcmp(data, heads[n], FRAME_HEAD)) most = INT64_C(1) << (16 + 2 * n);
  }
  if (!most) return -1;
  while (at < end) {
    if (end - at < BLOCK_HEAD) return -1;
    uint32_t head = le_uint32(data + at);
    int64_t width = head & ~IS_PLAIN, room = capacity - filled < most ? capacity - filled : most, opened = width;
    at += BLOCK_HEAD;
    if (!width || width > end - at) return -1;
    if (!(head & IS_PLAIN)) {
      opened = lz4_block(data + at, width, out + filled, room);
      if (opened < 0) return -1;
    } else if (width <= room) {
      memcpy(out + filled, data + at, (size_t)width);
    } else {
      return -1;
    }
    at += width;
    filled += opened;
  }
  return filled;
}
