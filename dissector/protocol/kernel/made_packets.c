/* Makes packets of bytes that passed, as blocks of a pcapng file: `proxy_server/made_packets.py`.
 *
 * The headers of a packet are a copy of its direction's, into which lengths, numbers and checksums are put. The checksum
 * of TCP is that of the pseudo-header alone, as on the way to a network card, which completes it (RFC 1071). */
#include <string.h>

#include "kernel.h"

enum { ETHERNET = 14, IPV4 = 20, IPV6 = 40, TCP = 6, TCP_HEADER = 20 };
enum { BLOCK_HEADER = 28, BLOCK_TRAILER = 4, ENHANCED_PACKET = 6 };

static void put(uint8_t *at, uint32_t value, int bytes) {
  for (; bytes--; value >>= 8) at[bytes] = (uint8_t)value;
}

static uint8_t *add_word(uint8_t *out, uint64_t value) {
  for (int n = 0; n < 4; n++) out[n] = (uint8_t)(value >> 8 * n);
  return out + 4;
}

static uint32_t sum(const uint8_t *at, int bytes) {
  uint32_t total = 0;
  for (int n = 0; n < bytes; n += 2) total += (uint32_t)at[n] << 8 | at[n + 1];
  return total;
}

static uint32_t folded(uint32_t total) {
  while (total > 0xFFFF) total = (total & 0xFFFF) + (total >> 16);
  return total;
}

/* Puts into headers what depends on the content and its place. */
static void complete(uint8_t *headers, int64_t is_v4, uint32_t seq, uint32_t ack, int64_t size) {
  uint8_t *ip = headers + ETHERNET, *tcp = ip + (is_v4 ? IPV4 : IPV6);
  uint32_t segment = (uint32_t)(TCP_HEADER + size);
  int addresses = is_v4 ? 8 : 32;
  if (is_v4) {
    put(ip + 2, IPV4 + segment, 2);
    put(ip + 10, 0, 2);
    put(ip + 10, 0xFFFF - folded(sum(ip, IPV4)), 2);
  } else {
    put(ip + 4, segment, 2);
  }
  put(tcp + 4, seq, 4);
  put(tcp + 8, ack, 4);
  put(tcp + 16, folded(sum(tcp - addresses, addresses) + TCP + segment), 2);
}

/* Writes the first packet's block up to its content; behind each content, what ends its block and begins the next one.
 * With `copied` the content is between them. Returns how many bytes were written; a packet takes up to BLOCK_HEADER +
 * headers_size + 7 beside its content. */
KERNEL_API int64_t kernel_made_packets(const KernelMadePackets *side, int64_t time_ns, const uint8_t *data,
                                       int64_t size, int32_t copied) {
  int64_t longest = side->longest;
  uint8_t *out = side->out;
  for (int64_t at = 0; at < size; at += longest) {
    int64_t content = size - at < longest ? size - at : longest, captured = side->headers_size + content;
    int64_t padding = -captured & 3, block = BLOCK_HEADER + captured + padding + BLOCK_TRAILER;
    uint64_t words[] = {ENHANCED_PACKET, (uint64_t)block, 0, (uint64_t)time_ns >> 32, (uint64_t)time_ns,
                        (uint64_t)captured, (uint64_t)captured};
    for (size_t n = 0; n < sizeof words / sizeof *words; n++) out = add_word(out, words[n]);
    memcpy(out, side->headers, (size_t)side->headers_size);
    complete(out, side->is_v4, (uint32_t)*side->next_seq, (uint32_t)*side->ack, content);
    out += side->headers_size;
    if (copied) {
      memcpy(out, data + at, (size_t)content);
      out += content;
    }
    memset(out, 0, (size_t)padding);
    out = add_word(out + padding, (uint64_t)block);
    *side->next_seq = (*side->next_seq + content) & 0xFFFFFFFF;
  }
  return out - side->out;
}
