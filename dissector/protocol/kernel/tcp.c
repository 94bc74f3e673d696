/* TCP headers (RFC 9293) of many packets, and the pairs of endpoints that they are of.
 *
 * Nothing is read outside of the `size` bytes at `data`: a header is read where the packet has all of its first bytes
 * inside of them, and so has the IP header in front of it. Options end with the header, the packet, or these bytes. */
#include <string.h>

#include "big_endian.h"
#include "kernel.h"

enum { TCP_HEADER = 20, SYN = 2, V4_HEADER = 20, V6_HEADER = 40 };
enum { END_OF_OPTIONS = 0, NO_OPERATION = 1, WINDOW_SCALE = 3, NO_SCALE = -1, MOST_SCALE = 14 };
enum { WORDS = 5 };

/* The window scale that options have (RFC 7323, 2.2), at most MOST_SCALE (2.3). */
static int64_t scale(const uint8_t *at, const uint8_t *end) {
  while (end - at > 1 && *at != END_OF_OPTIONS) {
    if (*at == NO_OPERATION) {
      at++;
      continue;
    }
    if (*at == WINDOW_SCALE && at[1] == 3 && end - at > 2) return at[2] < MOST_SCALE ? at[2] : MOST_SCALE;
    if (at[1] < 2 || at[1] > end - at) break;
    at += at[1];
  }
  return NO_SCALE;
}

/* Writes the addresses of an IP header, of 16 bytes each: those of IPv4 are mapped into IPv6 (RFC 4291, 2.5.5.2). */
static int addresses(const uint8_t *data, int64_t size, int64_t ip, uint8_t source[16], uint8_t destination[16]) {
  if (ip < 0 || ip > size - V4_HEADER) return 0;
  const uint8_t *head = data + ip;
  if (head[0] >> 4 == 6) {
    if (ip > size - V6_HEADER) return 0;
    memcpy(source, head + 8, 16);
    memcpy(destination, head + 24, 16);
    return 1;
  }
  static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
  memcpy(source, mapped, 12);
  memcpy(destination, mapped, 12);
  memcpy(source + 12, head + 12, 4);
  memcpy(destination + 12, head + 16, 4);
  return 1;
}

/* Writes a pair's key, both ends with the lower one first; returns whether the source is the higher end. */
static uint8_t pair(const uint8_t source[16], uint64_t source_port, const uint8_t destination[16],
                    uint64_t destination_port, uint64_t key[WORDS]) {
  uint64_t a[3], b[3];
  memcpy(a, source, 16);
  memcpy(b, destination, 16);
  a[2] = source_port;
  b[2] = destination_port;
  int word = 0;
  while (word < 2 && a[word] == b[word]) word++;
  uint8_t is_higher = a[word] > b[word];
  const uint64_t *low = is_higher ? b : a, *high = is_higher ? a : b;
  memcpy(key, low, 16);
  memcpy(key + 2, high, 16);
  key[4] = low[2] << 16 | high[2];
  return is_higher;
}

/* Reads the headers of `rows` packets: of each where its TCP header and its IP header begin, and the ends of what was
 * captured of it and of what the IP header says that it has. Writes nine columns, of `rows` places each: row, sequence
 * number, acknowledgement, flags, place of the payload, its bytes captured, those cut off, window, and a SYN's scale; the
 * keys of the pairs, and whether the sender is the higher end. Packets that are cut off are left out. Returns how many
 * there are. */
KERNEL_API int64_t kernel_tcp_headers(const uint8_t *data, int64_t size, const int64_t *starts, const int64_t *ips,
                                      const int64_t *captured, const int64_t *ends, int64_t rows, int64_t *columns,
                                      uint64_t *keys, uint8_t *higher) {
  int64_t count = 0;
  for (int64_t row = 0; row < rows; row++) {
    int64_t start = starts[row], end = ends[row], there = captured[row] < size ? captured[row] : size;
    uint8_t source[16], destination[16];
    if (start < 0 || (there < end ? there : end) - start < TCP_HEADER) continue;
    const uint8_t *head = data + start;
    int64_t header = (head[12] >> 4) * 4, payload = start + header;
    if (header < TCP_HEADER || payload > end || !addresses(data, size, ips[row], source, destination)) continue;
    int64_t bytes = (there < end ? there : end) - payload;
    if (bytes < 0) bytes = 0;
    int64_t *column = columns + count;
    const int64_t values[] = {
        row, be_uint32(head + 4), be_uint32(head + 8), head[13], payload, bytes, end - payload - bytes,
        head[14] << 8 | head[15],
        head[13] & SYN ? scale(head + TCP_HEADER, data + (payload < there ? payload : there)) : NO_SCALE,
    };
    for (size_t n = 0; n < sizeof values / sizeof *values; n++, column += rows) *column = values[n];
    higher[count] = pair(source, (uint64_t)(head[0] << 8 | head[1]), destination, (uint64_t)(head[2] << 8 | head[3]),
                         keys + WORDS * count);
    count++;
  }
  return count;
}

/* Writes the entry of each key in a hash table, -1 where it has none: `places` are where its search begins. `table` has
 * `mask + 1` places, a power of two, each with the number of an entry or -1, and at least one -1; `entries` are the keys
 * of all entries. Returns `rows`. */
KERNEL_API int64_t kernel_find_pairs(const uint64_t *keys, const int64_t *places, int64_t rows, const int32_t *table,
                                     int64_t mask, const uint64_t *entries, int64_t *found) {
  for (int64_t row = 0; row < rows; row++, keys += WORDS) {
    int64_t place = places[row] & mask;
    while (table[place] >= 0 && memcmp(entries + WORDS * (int64_t)table[place], keys, WORDS * sizeof *keys))
      place = (place + 1) & mask;
    found[row] = table[place] < 0 ? -1 : table[place];
  }
  return rows;
}
