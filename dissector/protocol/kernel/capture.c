/* Finds the packets of a capture file: from one record or block to the next, by their lengths.
 *
 * Nothing is read outside of the `size` bytes at `data`: a header is read where all of it is inside, and what follows it
 * is never read, only skipped if it ends inside. Sizes are below 2^33, so no sum of a place and a size overflows. At most
 * `most` positions are written, and behind them the next position: `positions` has room for `most + 1`. */
#include "big_endian.h"
#include "kernel.h"

enum { PCAP_HEADER = 16, BLOCK_HEADER = 8 };
enum { OBSOLETE_PACKET = 2, SIMPLE_PACKET = 3, ENHANCED_PACKET = 6 };

static uint32_t word(const uint8_t *at, int32_t is_big) {
  return is_big ? be_uint32(at) : (uint32_t)at[3] << 24 | (uint32_t)at[2] << 16 | (uint32_t)at[1] << 8 | at[0];
}

static int is_blank(const uint8_t *at) {
  for (int n = 0; n < PCAP_HEADER; n++)
    if (at[n]) return 0;
  return 1;
}

/* pcap: records from `at` to before `stop`, each with a header of `header` bytes, at least PCAP_HEADER, and at most
 * `largest` bytes of a packet. Ends at a record that is longer, blank or incomplete. Returns their number. */
KERNEL_API int64_t kernel_pcap_records(const uint8_t *data, int64_t size, int64_t at, int64_t stop, int64_t header,
                                       int64_t largest, int32_t is_big, int64_t *positions, int64_t most) {
  int64_t count = 0;
  while (at < stop && count < most && at <= size - header) {
    int64_t captured = word(data + at + 8, is_big);
    if (captured > largest || captured > size - header - at || (!captured && is_blank(data + at))) break;
    positions[count++] = at;
    at += header + captured;
  }
  positions[count] = at;
  return count;
}

static int64_t least_bytes(uint32_t kind) {
  if (kind == SIMPLE_PACKET) return 16;
  return kind == ENHANCED_PACKET || kind == OBSOLETE_PACKET ? 32 : INT64_MAX;
}

/* pcapng: packet blocks from `at` to before `stop`, of at most `largest` bytes. Ends at a block that is another, or
 * incomplete, or whose size is none of its kind. Returns their number. */
KERNEL_API int64_t kernel_packet_blocks(const uint8_t *data, int64_t size, int64_t at, int64_t stop, int64_t largest,
                                        int32_t is_big, int64_t *positions, int64_t most) {
  int64_t count = 0;
  while (at < stop && count < most && at <= size - BLOCK_HEADER) {
    int64_t bytes = word(data + at + 4, is_big);
    if (bytes < least_bytes(word(data + at, is_big)) || bytes > largest || bytes & 3 || bytes > size - at) break;
    positions[count++] = at;
    at += bytes;
  }
  positions[count] = at;
  return count;
}
