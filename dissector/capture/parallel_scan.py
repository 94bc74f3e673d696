"""Finds the records of a file in parallel: the data is divided into lanes, and a numpy step moves each by a record.

A lane starts at a plausible record, as real starts are only known once all records before are read. Lanes are verified
afterwards, from the front: a lane is valid if the one before it ends exactly where it starts. While lanes advance only
lengths are read; all other fields of the records are checked afterwards, all at once.

Invariants:
  * the positions are those of walking from record to record, whatever the bytes: wrong guesses only cost time;
  * memory of lanes is bounded by the bytes that one batch spans.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple

import numpy as np

from dissector.capture.integers import ByteOrder
from dissector.core.arrays import Bool, Int64, UInt8

RECORDS_PER_LANE: Final = 128
"""Approximate records in a lane: more lanes need fewer steps, and more guesses."""
MIN_LANES: Final = 48
"""Lanes below which a step costs more than walking."""
MAX_STEPS: Final = 4 * RECORDS_PER_LANE
"""Maximum steps: a lane that needs more has no usual records."""

Walk = Callable[[int, int, int], tuple[list[int], int]]
"""Returns the positions of the records from one offset to before another, at most so many; and the next position."""
_NONE: Final = np.zeros(0, np.int64)


class RecordPattern(NamedTuple):
    """How to recognize records of a file cheaply. Places are below the `stop` of `scan_records`."""

    pattern: re.Pattern[bytes]
    """Matches most records, and little else."""
    offset: int
    """Bytes of a record before the match."""
    sizes: Callable[[Int64], Int64]
    """Returns the bytes of the records at these positions, at least 1 each, whatever is there."""
    good: Callable[[Int64, Int64], Bool]
    """Whether walking would certainly find records of these sizes at these positions."""


class _Lane(NamedTuple):
    start: int
    reached: Int64
    end: int
    """Position of its next record."""


def scan_records(
    data: UInt8, at: int, stop: int, most: int, mean: int, pattern: RecordPattern, walk: Walk
) -> tuple[Int64, int]:
    """Return the positions of the records from `at` to before `stop`, at `most` so many, `(n,)`; and the next position,
    which is before `stop` if `walk` stops or there are enough. `mean` is the approximate size of a record in bytes."""
    ahead = min(most, (stop - at) // mean)
    lanes: Iterable[_Lane] = ()
    if ahead >= MIN_LANES * RECORDS_PER_LANE:
        stop = min(stop, at + ahead * mean)
        lanes = _lanes(data, at, stop, ahead // RECORDS_PER_LANE, pattern)
    pieces: list[Int64] = []
    for start, reached, end in (*lanes, _Lane(stop, _NONE, stop)):
        if at < start:
            found, at = walk(at, start, most)
            pieces.append(np.array(found, np.int64))
        if at < start:
            break  # here is no complete record, or there are enough
        if at == start:
            pieces.append(reached)
            at = end
    positions = np.concatenate([_NONE, *pieces])
    return (positions, at) if len(positions) <= most else (positions[:most], int(positions[most]))


def byte_pattern(order: ByteOrder, *words: tuple[bytes, bytes, bytes, bytes]) -> bytes:
    """Return a pattern of 4-byte words, each given from its most significant byte on."""
    return b"".join(b"".join(word if order == ">" else word[::-1]) for word in words)


def _lanes(data: UInt8, at: int, stop: int, count: int, pattern: RecordPattern) -> Iterator[_Lane]:
    """Yield lanes from `at` to `stop`, in order, each with the records that it reached."""
    starts = np.array([at, *_guesses(data, at, stop, count, pattern)], np.int64)
    if len(starts) < MIN_LANES:
        return
    positions, ends = _advance_lanes(starts, np.append(starts[1:], stop), pattern)
    first = np.searchsorted(positions, starts)
    following = np.append(first[1:], len(positions))
    after = np.append(positions[1:], 0)
    after[following - 1] = ends
    bad = np.append(np.flatnonzero(~pattern.good(positions, after - positions)), len(positions))
    sound = np.minimum(bad[np.searchsorted(bad, first)], following)
    ends = np.where(sound < following, positions[np.minimum(sound, len(positions) - 1)], ends)
    for start, low, high, end in zip(starts.tolist(), first.tolist(), sound.tolist(), ends.tolist(), strict=True):
        yield _Lane(start, positions[low:high], end)


def _guesses(data: UInt8, at: int, stop: int, count: int, pattern: RecordPattern) -> Iterator[int]:
    """Yield where records plausibly begin: the first position in each stretch but the first."""
    search, buffer, stretch = pattern.pattern.search, data.data, (stop - at) // count
    for low in range(at + stretch, stop, stretch):
        found = search(buffer, low + pattern.offset, min(low + stretch, stop))
        if found:
            yield found.start() - pattern.offset


def _advance_lanes(starts: Int64, stops: Int64, pattern: RecordPattern) -> tuple[Int64, Int64]:
    """Advance all lanes by a record per step, until few are before their stops. Return all positions that they reached,
    sorted; and the next position of each."""
    ends, lanes, at = starts.copy(), np.arange(len(starts)), starts
    steps: list[Int64] = []
    while len(lanes) >= MIN_LANES and len(steps) < MAX_STEPS:
        steps.append(at)
        at = at + pattern.sizes(at)
        active = at < stops
        if not active.all():
            ends[lanes] = at
            lanes, stops, at = lanes[active], stops[active], at[active]
    ends[lanes] = at
    return np.sort(np.concatenate(steps)), ends
