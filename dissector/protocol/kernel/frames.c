/* Splits streams into frames at their size prefixes: whole frames, run by run, also across runs.
 *
 * Bytes are read only inside of runs that have some: from a place that is not before the run's start, and at most up to
 * its end. A row that is not inside of its direction, or an offset outside of its run, ends a direction. At most
 * `capacity` frames are written. */
#include "big_endian.h"
#include "kernel.h"

enum { PREFIX = 4, LEAST_FRAME = 8, LEAST_HEAD = 14 };

/* The size of a frame that begins with these bytes, its prefix included; 0 if that can't be. */
static int64_t believed(const KernelRuns *runs, const uint8_t *prefix) {
  int64_t size = be_int32(prefix) + PREFIX;
  return LEAST_FRAME <= size && size <= runs->largest ? size : 0;
}

/* The size of a frame whose prefix crosses the end of a run; 0 where it is incomplete or impossible. */
static int64_t size_across(const KernelRuns *runs, int64_t row, int64_t high, int64_t at) {
  uint8_t prefix[PREFIX];
  int count = 0;
  for (; row < high && runs->memory[row] && runs->starts[row] <= at && at <= runs->ends[row]; row++) {
    const uint8_t *data = (const uint8_t *)(uintptr_t)runs->memory[row] + (at - runs->starts[row]);
    for (; at < runs->ends[row] && count < PREFIX; at++) prefix[count++] = *data++;
    if (count == PREFIX) return believed(runs, prefix);
  }
  return 0;
}

/* Whether enough of a frame's beginning was captured to recognize it. */
static int has_head(const KernelRuns *runs, int64_t row, int64_t high, int64_t at, int64_t size) {
  int64_t need = at + (size < LEAST_HEAD ? size : LEAST_HEAD);
  while (row < high && runs->memory[row] && runs->ends[row] < need) row++;
  return row < high && runs->memory[row];
}

static int write_frame(KernelRuns *runs, int64_t row, int64_t at, int64_t size, int64_t upto) {
  if (runs->count == runs->capacity) return 0;
  int64_t *frame = runs->frames + 4 * runs->count++;
  frame[0] = row, frame[1] = at, frame[2] = size, frame[3] = upto;
  return 1;
}

/* Follows one direction from its place on; returns 0 if there is no room for a frame. Its place is where it stops. */
static int follow(KernelRuns *runs, int64_t direction) {
  int64_t row = runs->rows[direction], at = runs->offsets[direction], high = runs->highs[direction];
  int has_room = 1;
  while (0 <= row && row < high && runs->memory[row] && runs->starts[row] <= at && at <= runs->ends[row]) {
    const uint8_t *data = (const uint8_t *)(uintptr_t)runs->memory[row];
    int64_t start = runs->starts[row], end = runs->ends[row], size = 0;
    while (end - at >= PREFIX && (size = believed(runs, data + (at - start))) && size <= end - at) {
      if (!(has_room = write_frame(runs, row, at, size, row + 1))) break;
      at += size;
      size = 0;
    }
    if (!has_room) break;
    if (at == end) {
      row++;
      continue;
    }
    if (end - at < PREFIX) size = size_across(runs, row, high, at);
    if (!size || size > runs->ends[high - 1] - at || !has_head(runs, row, high, at, size)) break;
    int64_t into = row;
    while (into < high && runs->ends[into] <= at + size) into++;
    int64_t upto = into + (into < high && runs->starts[into] < at + size);
    if (!(has_room = write_frame(runs, row, at, size, upto))) break;
    row = into;
    at += size;
  }
  runs->rows[direction] = row;
  runs->offsets[direction] = at;
  return has_room;
}

/* Follows directions one after the other; returns how many are done, less than all if there is no room for more frames. */
KERNEL_API int64_t kernel_frames(KernelRuns *runs) {
  int64_t done = 0;
  runs->count = 0;
  while (done < runs->directions && follow(runs, done)) done++;
  return done;
}
