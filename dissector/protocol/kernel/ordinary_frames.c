/* Takes the frames at the beginning of what came through the proxy that go on as they are: `proxy_server/ordinary.py`
 * says which. Requests that get a response are noted, and responses take theirs out of those that wait. */
#include <string.h>

#include "big_endian.h"
#include "kernel.h"

enum { PREFIX = 4, NOTED = 8, REQUEST_HEAD = PREFIX + NOTED, RESPONSE_HEAD = PREFIX + 4 };
enum { PRODUCE = 0, FIRST_TRANSACTIONAL = 3, FIRST_FLEXIBLE = 9 };

/* Returns what is looked at of the API of such a request; NULL if it goes on as it is. */
static const KernelLookedAt *looked_at(const KernelOrdinary *stream, const uint8_t *noted) {
  int64_t key = be_int16(noted);
  if (key < 0 || key >= stream->apis || be_int16(noted + 2) < stream->looked_at[key].first_version) return NULL;
  return stream->looked_at + key;
}

/* Whether this is a Produce request that certainly gets a response: `index/acks.py`. Without a transactional id and
 * tagged fields in the header, as from nearly every producer, `acks` is a few bytes behind the client id. */
static int is_acknowledged(const uint8_t *frame, int64_t size) {
  int64_t version = be_int16(frame + 6), at = REQUEST_HEAD;
  if (be_int16(frame + PREFIX) != PRODUCE || size < at + 2) return 0;
  int64_t client_id = be_int16(frame + at);
  at += 2 + (client_id > 0 ? client_id : 0);
  int64_t before = version < FIRST_TRANSACTIONAL ? 0 : 2;
  if (size < at + before + 2) return 0;
  if (before && be_int16(frame + at) != (version < FIRST_FLEXIBLE ? -1 : 0)) return 0;
  return be_int16(frame + at + before) != 0;
}

/* Notes the request that begins at `frame`, of which `size` bytes are there; returns 0 if somebody else has to. */
static int asked(const KernelOrdinary *stream, KernelWaiting *waiting, const uint8_t *frame, int64_t size) {
  int64_t whole = PREFIX + be_int32(frame);
  if (whole < REQUEST_HEAD || waiting->count == waiting->capacity) return 0;
  if (looked_at(stream, frame + PREFIX) && !is_acknowledged(frame, size < whole ? size : whole)) return 0;
  memcpy(waiting->requests + (waiting->first + waiting->count++) % waiting->capacity * NOTED, frame + PREFIX, NOTED);
  return 1;
}

/* Whether a frame ends as one in which there is nothing to look for: `ordinary.PlainEnd`. */
static int ends_plainly(const KernelLookedAt *api, int64_t version, const uint8_t *frame, int64_t size) {
  if (version > api->last_version) return 0;
  int64_t last = be_int64(frame + size - 8);
  return size <= api->empty || ((last & api->mask) == api->value && (!api->some || last & api->some));
}

/* Takes the request that the response at `frame` answers out; returns 0 if somebody else has to. */
static int answered(const KernelOrdinary *stream, KernelWaiting *waiting, const uint8_t *frame, int64_t size) {
  int64_t whole = PREFIX + be_int32(frame);
  if (whole < RESPONSE_HEAD || !waiting->count) return 0;
  const uint8_t *first = waiting->requests + waiting->first * NOTED;
  if (memcmp(first + 4, frame + PREFIX, 4) != 0) return 0;
  const KernelLookedAt *api = looked_at(stream, first);
  if (api && (size < whole || !ends_plainly(api, be_int16(first + 2), frame, whole))) return 0;
  waiting->first = (waiting->first + 1) % waiting->capacity;
  waiting->count--;
  return 1;
}

/* From `at` on. Returns where they end: at `end`, or where somebody else has to look at a frame, or is missing a part of
 * its head. Nothing is read at or behind `end`. */
KERNEL_API int64_t kernel_ordinary_frames(KernelOrdinary *stream, KernelWaiting *waiting, const uint8_t *data,
                                          int64_t at, int64_t end) {
  int64_t head = stream->answers ? RESPONSE_HEAD : REQUEST_HEAD;
  while (at < end) {
    if (!stream->left) {
      if (end - at < head || !(stream->answers ? answered : asked)(stream, waiting, data + at, end - at)) return at;
      stream->left = PREFIX + be_int32(data + at);
    }
    int64_t step = stream->left < end - at ? stream->left : end - at;
    stream->left -= step;
    at += step;
  }
  return at;
}
