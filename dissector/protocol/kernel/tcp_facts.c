/* What TCP does on connections, segment by segment: `transport/tcp_facts.py` says what is measured.
 *
 * Directions are numbers below `directions`, which is even: `by direction` columns have so many places, and those by
 * connection half as many. A segment of another direction ends the loop. */
#include "big_endian.h"
#include "kernel.h"

enum { FIN = 1, SYN = 2, RST = 4, ACK = 16 };
enum { NOTHING = -1, NO_SCALE = -1, UNKNOWN_SCALE = -2 };
static const int64_t MASK = 0xffffffff;

/* Of times, which may be any numbers. */
static int64_t sum(int64_t one, int64_t other) { return as_int64((uint64_t)one + (uint64_t)other); }
static int64_t difference(int64_t one, int64_t other) { return as_int64((uint64_t)one - (uint64_t)other); }

/* From the first SYN to the first ACK of the same end behind it. */
static void handshake(KernelTcpFacts *facts, int64_t connection, int side, int flags, int64_t time_ns) {
  if ((flags & (SYN | ACK | RST)) == SYN && facts->opener[connection] == NOTHING) {
    facts->opener[connection] = (int8_t)side;
    facts->syn_ns[connection] = time_ns;
  } else if ((flags & (SYN | ACK | RST)) == ACK && facts->opener[connection] == side &&
             !facts->handshake_ns[connection] && time_ns >= facts->syn_ns[connection]) {
    int64_t taken = difference(time_ns, facts->syn_ns[connection]);
    facts->handshake_ns[connection] = taken > 1 ? taken : 1;
  }
}

/* From data to the acknowledgement that is the connection's next segment. */
static void acknowledgement(KernelTcpFacts *facts, int64_t row, int64_t connection, int side, int64_t size) {
  int flags = facts->flags[row];
  int64_t time_ns = facts->time_ns[row], taken = difference(time_ns, facts->end_ns[connection]);
  if (!size && (flags & (SYN | RST | FIN | ACK)) == ACK &&
      facts->end[connection] == (facts->ack[row] | (int64_t)(side ^ 1) << 32)) {
    facts->acks[connection]++;
    facts->ack_ns[connection] = sum(facts->ack_ns[connection], taken);
    if (taken < facts->least_ack_ns[connection]) facts->least_ack_ns[connection] = taken;
  }
  int carries = size > 0 && !(flags & (SYN | RST | FIN));
  facts->end[connection] = carries ? ((facts->seq[row] + size) & MASK) | (int64_t)side << 32 : NOTHING;
  facts->end_ns[connection] = time_ns;
}

/* Data that ends where the window of the other end does; and where the own window ends, once both scales are known. Those
 * of SYNs have no scale, and others only if both ends offer one (RFC 7323, 1.3). */
static void window(KernelTcpFacts *facts, int64_t row, int64_t direction, int64_t size) {
  int flags = facts->flags[row];
  int8_t *mine = &facts->scales[direction], other = facts->scales[direction ^ 1];
  if ((flags & (SYN | RST)) == SYN && *mine == UNKNOWN_SCALE) *mine = (int8_t)facts->scale[row];
  if (size > 0 && !(flags & (SYN | RST)) && ((facts->seq[row] + size) & MASK) == facts->limits[direction ^ 1])
    facts->full_windows[direction]++;
  if ((flags & (ACK | RST)) != ACK || *mine == UNKNOWN_SCALE || other == UNKNOWN_SCALE) return;
  int shift = !(flags & SYN) && *mine > NO_SCALE && other > NO_SCALE ? *mine & 15 : 0;
  facts->limits[direction] = (facts->ack[row] + (facts->window[row] << shift)) & MASK;
}

/* Takes segments, in capture order; returns how many. */
KERNEL_API int64_t kernel_tcp_facts(KernelTcpFacts *facts) {
  for (int64_t row = 0; row < facts->rows; row++) {
    int64_t direction = facts->direction[row], size = facts->size[row] + facts->missing[row];
    if (direction < 0 || direction >= facts->directions) return row;
    int flags = facts->flags[row], side = (int)(direction & 1);
    facts->packets[direction]++;
    facts->bytes[direction] += size;
    if (!facts->window[row] && !(flags & (SYN | RST | FIN))) facts->zero_windows[direction]++;
    handshake(facts, direction >> 1, side, flags, facts->time_ns[row]);
    acknowledgement(facts, row, direction >> 1, side, size);
    window(facts, row, direction, size);
  }
  return facts->rows;
}
