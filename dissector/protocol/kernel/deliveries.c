/* What TCP got through and what it did not, segment by segment: `transport/deliveries.py` says what is measured.
 *
 * Directions are numbers below `directions`, which is even: columns by direction have so many places, those by connection
 * half as many. A segment of another direction ends the loop. There is room for two events of each segment. */
#include "big_endian.h"
#include "kernel.h"

enum { FIN = 1, SYN = 2, RST = 4, ACK = 16 };
enum { NOTHING = -1 };
enum { DELIVERY_EVENT };
static const int64_t MASK = 0xffffffff, HALF = 0x80000000;
/* Nanoseconds. A copy that follows sooner was captured twice. */
static const int64_t COPY = 1000000;
/* The least and most time that a delayed acknowledgement is late: Linux 40 ms, macOS 100, Windows 200 (RFC 1122: 500). */
static const int64_t DELAYED = 30000000, LATEST = 500000000;
/* How long after an acknowledgement what it sets free is sent, besides a round trip. */
static const int64_t AT_ONCE = 2000000;

/* Of times, which may be any numbers. */
static int64_t difference(int64_t one, int64_t other) { return as_int64((uint64_t)one - (uint64_t)other); }
/* How far a sequence number is ahead of another one. */
static int64_t ahead(int64_t one, int64_t other) { return ((one - other + HALF) & MASK) - HALF; }
static int64_t least(int64_t one, int64_t other) { return one < other ? one : other; }
static int64_t most(int64_t one, int64_t other) { return one > other ? one : other; }

static void add_event(KernelDeliveries *all, int kind, int64_t direction, int64_t time_ns) {
  all->events[2 * all->count] = direction << 1 | kind;
  all->events[2 * all->count++ + 1] = time_ns;
}

/* Bytes that the other end has: what waits for an acknowledgement is less, or nothing. */
static void acknowledge(KernelDeliveries *all, int64_t direction, int64_t ack, int64_t size, int64_t time_ns) {
  int64_t new = all->acked[direction] == NOTHING ? 0 : ahead(ack, all->acked[direction]);
  all->is_closed[direction] = 0;
  if (all->acked[direction] != NOTHING && new <= 0) {
    if (all->waiting_ns[direction]) all->heard[direction]++;
    return;
  }
  all->acked[direction] = ack;
  if (all->sent[direction] == NOTHING) return;
  int is_all = ahead(ack, all->sent[direction]) >= 0;
  if (all->waiting_ns[direction])
    all->largest_acked[direction] = (int32_t)most(
        all->largest_acked[direction], is_all || !new ? all->largest[direction] : least(new, all->largest[direction]));
  all->free_ns[direction] = 0;
  if (is_all && !size && all->waiting_ns[direction]) {
    int64_t late = difference(time_ns, all->sent_ns[direction]);
    if (DELAYED <= late && late <= LATEST) all->free_ns[direction] = time_ns;
  }
  all->waiting_ns[direction] = is_all ? 0 : time_ns;
  all->retries[direction] = 0, all->retry_seq[direction] = NOTHING, all->heard[direction] = 0;
  all->idle_ns[direction] = 0;
}

/* A copy of bytes that were sent before and are not acknowledged. */
static void repeat(KernelDeliveries *all, int64_t direction, int64_t seq, int64_t size, int64_t time_ns) {
  int is_known = all->retry_seq[direction] != NOTHING;
  int64_t before = all->retries[direction] ? all->retry_ns[direction] : all->sent_ns[direction];
  if (difference(time_ns, before) < COPY) return;
  if (is_known && ahead(seq, all->retry_seq[direction]) > 0) return; /* further bytes, sent again in their turn */
  if (!is_known || seq != all->retry_seq[direction]) all->retry_seq[direction] = seq;
  all->retries[direction]++;
  all->retry_ns[direction] = time_ns;
  all->retry_size[direction] = (int32_t)size;
}

static void data(KernelDeliveries *all, int64_t row, int64_t direction, int64_t size) {
  int64_t seq = all->seq[row], time_ns = all->time_ns[row], end = (seq + size) & MASK;
  if (all->sent[direction] != NOTHING && ahead(end, all->sent[direction]) <= 0) {
    int is_new = all->acked[direction] == NOTHING || ahead(seq, all->acked[direction]) >= 0;
    if (is_new && all->waiting_ns[direction]) repeat(all, direction, seq, size, time_ns);
    return;
  }
  int64_t since = difference(time_ns, all->free_ns[direction]), connection = direction >> 1;
  if (all->free_ns[direction] && since <= AT_ONCE + all->trip_ns[connection])
    add_event(all, HELD_TAIL, direction, time_ns);
  all->free_ns[direction] = 0;
  all->sent[direction] = end;
  all->sent_ns[direction] = time_ns;
  if (size > all->largest[direction]) all->largest[direction] = (int32_t)size;
  if (all->acked[direction] != NOTHING && ahead(end, all->acked[direction]) <= 0) return; /* its acknowledgement came first */
  if (!all->waiting_ns[direction]) {
    all->waiting_ns[direction] = time_ns;
    all->idle_ns[direction] = all->last_ns[connection] ? difference(time_ns, all->last_ns[connection]) : 0;
  }
}

/* Takes segments, in capture order; returns how many. */
KERNEL_API int64_t kernel_deliveries(KernelDeliveries *all) {
  all->count = 0;
  for (int64_t row = 0; row < all->rows; row++) {
    int64_t direction = all->direction[row], size = all->size[row] + all->missing[row];
    if (direction < 0 || direction >= all->directions) return row;
    int64_t time_ns = all->time_ns[row], peer = direction ^ 1, connection = direction >> 1;
    int flags = all->flags[row];
    if (all->first_seq[direction] == NOTHING && !(flags & RST)) all->first_seq[direction] = all->seq[row];
    if (!(flags & RST)) {
      if (flags & ACK) {
        acknowledge(all, peer, all->ack[row], size, time_ns);
        if (!all->window[row] && !(flags & (SYN | FIN))) {
          all->is_closed[peer] = 1;
          add_event(all, ZERO_WINDOW, direction, time_ns);
        }
      }
      if (size && !(flags & SYN)) {
        all->free_ns[peer] = 0; /* it was not an acknowledgement that was delayed, but an answer */
        data(all, row, direction, size);
      } else if (flags & SYN) {
        int64_t taken = difference(time_ns, all->last_ns[connection]);
        if ((flags & ACK) && all->last_ns[connection] && taken > 0) all->trip_ns[connection] = taken;
      }
    }
    all->last_ns[connection] = time_ns;
  }
  return all->rows;
}
