/* Takes the frames at the beginning of what came through the proxy that go on as they are: `proxy_server/ordinary.py`
 * says which. Requests that get a response are noted, and responses take theirs out of those that wait. */
#include <string.h>

#include "big_endian.h"
#include "kernel.h"

enum { PREFIX = 4, NOTED = 8, REQUEST_HEAD = PREFIX + NOTED, RESPONSE_HEAD = PREFIX + 4 };

static int is_looked_at(const KernelOrdinary *stream, const uint8_t *noted) {
  int64_t key = be_int16(noted);
  return key >= 0 && key < stream->apis && be_int16(noted + 2) >= stream->looked_at[key];
}

/* Notes the request whose head is at `frame`; returns 0 if somebody else has to. */
static int asked(const KernelOrdinary *stream, KernelWaiting *waiting, const uint8_t *frame) {
  if (be_int32(frame) < NOTED || is_looked_at(stream, frame + PREFIX) || waiting->count == waiting->capacity) return 0;
  memcpy(waiting->requests + (waiting->first + waiting->count++) % waiting->capacity * NOTED, frame + PREFIX, NOTED);
  return 1;
}

/* Takes the request that the response at `frame` answers out; returns 0 if somebody else has to. */
static int answered(const KernelOrdinary *stream, KernelWaiting *waiting, const uint8_t *frame) {
  if (be_int32(frame) < RESPONSE_HEAD - PREFIX || !waiting->count) return 0;
  const uint8_t *first = waiting->requests + waiting->first * NOTED;
  if (memcmp(first + 4, frame + PREFIX, 4) != 0 || is_looked_at(stream, first)) return 0;
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
      if (end - at < head || !(stream->answers ? answered : asked)(stream, waiting, data + at)) return at;
      stream->left = PREFIX + be_int32(data + at);
    }
    int64_t step = stream->left < end - at ? stream->left : end - at;
    stream->left -= step;
    at += step;
  }
  return at;
}
