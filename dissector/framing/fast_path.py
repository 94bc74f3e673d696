"""The fast path of framing: whole frames of every direction of a batch, natively (`frames.c`).

A direction is followed up to a gap between frames, a size that is impossible, or a frame that is incomplete. From there
on its runs are held as a `PendingStream`.
"""

import ctypes
from typing import Final

import numpy as np

from dissector.core.arrays import Int64
from dissector.core.batches import NOWHERE, FrameBatch, FrameKind, RunBatch, RunKind
from dissector.core.grouping import edges, expanded, owners
from dissector.core.kernel import kernel_function, structure_fields
from dissector.core.store import Store

_frames = kernel_function("frames", "P")
ROOM: Final = 1 << 10
"""Frames that there is room for at least."""


RUNS: Final = """
const uint64_t *memory; /* where the bytes of each run are, 0 of a gap */
const int64_t *starts;  /* stream offsets */
const int64_t *ends;
int64_t largest;      /* of the frames that are believed, with their prefixes */
int64_t directions;   /* each has runs up to before its `highs`, and is followed from an offset in one of them on: */
const int64_t *highs; /* there is one before each of them at least */
int64_t *rows;
int64_t *offsets;
int64_t *frames; /* of each the run in which it begins, its offset and size, and the run behind its last one */
int64_t capacity;
int64_t count;
"""
"""Runs of streams, and the frames in them: `KernelRuns` of kernel.h."""


class _KernelRuns(ctypes.Structure):
    """As `RUNS`."""

    _fields_ = structure_fields(RUNS)


def follow(
    store: Store, runs: RunBatch, largest: int, lows: Int64, highs: Int64, offsets: Int64
) -> tuple[FrameBatch, Int64, Int64]:
    """Follow directions from stream offsets on, each in its rows `low` to before `high`, one at least. Return the
    frames, and where each direction stops: a row of the batch, and the stream offset that it has. `largest` is the
    largest size that is believed, its prefix included."""
    data, ends = np.flatnonzero(runs.kind == RunKind.DATA), runs.start + runs.size
    memory = np.zeros(len(runs), np.uint64)
    memory[data], owner = store.pointers(runs.address[data], runs.size[data])
    starts, highs = np.ascontiguousarray(runs.start), np.ascontiguousarray(highs)
    rows, offsets = lows.copy(), offsets.copy()
    found: list[Int64] = []
    done, capacity = 0, ROOM + len(runs)
    while done < len(rows):
        frames = np.empty((capacity, 4), np.int64)
        call = _KernelRuns(
            memory.ctypes.data, starts.ctypes.data, ends.ctypes.data, largest, len(rows) - done,
            highs[done:].ctypes.data, rows[done:].ctypes.data, offsets[done:].ctypes.data, frames.ctypes.data,
            capacity, 0,
        )  # fmt: skip
        done += _frames()(ctypes.byref(call))
        found.append(frames[: call.count])
    del owner  # the memory was there until now
    return _batch(runs, ends, np.concatenate(found)), rows, offsets


def _batch(runs: RunBatch, ends: Int64, frames: Int64) -> FrameBatch:
    """Return frames, `(n, 4)`, with their pieces."""
    first, start, size, stop = frames.T
    counts = stop - first
    rows = expanded(first, counts)
    begin = np.maximum(runs.start[rows], np.repeat(start, counts))
    end = np.minimum(ends[rows], np.repeat(start + size, counts))
    address = runs.address[rows]
    is_cut = np.zeros(len(frames), np.bool_)
    is_cut[owners(counts)[runs.kind[rows] == RunKind.TRUNCATED]] = True
    return FrameBatch(
        direction=runs.direction[first],
        kind=np.full(len(frames), FrameKind.FRAME, np.uint8),
        start=start,
        size=size,
        time_ns=runs.time_ns[first],
        end_ns=runs.time_ns[stop - 1],
        packet=runs.packet[first],
        piece=edges(counts),
        piece_address=np.where(address == NOWHERE, NOWHERE, address + begin - runs.start[rows]),
        piece_size=end - begin,
        is_cut=is_cut,
    )
