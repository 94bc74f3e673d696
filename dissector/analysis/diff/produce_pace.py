"""Whether a producer sends when responses come: its batches then have what it got while it waited, and no setting.

A producer with as many requests in flight as it allows itself keeps its records until the next response, so that they
wait for longer, and batches are larger, where a cluster or a machine is slow. One that lingers sends at other times.
"""

from collections.abc import Iterator
from functools import partial
from typing import Final, NamedTuple

import numpy as np

from dissector.analysis.diff.batching import MIN_BATCHES, NS_PER_MS
from dissector.analysis.diff.frequency_comparison import SIZE_TOLERANCE_RATIO
from dissector.analysis.diff.kept_numbers import as_column, median_of
from dissector.analysis.diff.side import DiffSide
from dissector.analysis.diff.side_profile import SideProfile
from dissector.core.arrays import Bool, Int64
from dissector.index.index_columns import IndexColumns

PROMPT: Final = 0.25
"""A request follows a response if it comes within this share of the time for which its records wait."""
MOSTLY: Final = 0.5
"""A producer waits for responses if this share of its requests follow one."""


class ProducePace(NamedTuple):
    """When a producer sends."""

    follows_responses: bool
    latency_ns: float
    """The median."""


def produce_pace(profile: SideProfile) -> ProducePace:
    """Return when a producer sends; without enough batches, or responses, or times of records, it follows none."""
    rows = [as_column(each.rows) for key, each in profile.keys.items() if key.api == "Produce"]
    waits_ms = profile.batches.waits_ms
    if not rows or len(waits_ms) < MIN_BATCHES or median_of(waits_ms) <= 0:
        return ProducePace(follows_responses=False, latency_ns=0)
    wait_ns = median_of(waits_ms) * NS_PER_MS
    return profile.side.ask(partial(_pace, rows=np.sort(np.concatenate(rows)), prompt_ns=PROMPT * wait_ns))


def are_batched_by_waiting(a: SideProfile, b: SideProfile) -> bool:
    """Return whether the side whose responses take longer waits for them, and has batches that are larger for that."""
    if not (a.batches.sizes and b.batches.sizes):
        return False
    sides = [(produce_pace(side), median_of(side.batches.sizes)) for side in (a, b)]
    (fast, small), (slow, large) = sorted(sides, key=lambda each: each[0].latency_ns)
    if not slow.follows_responses or not fast.latency_ns:
        return False
    return small <= SIZE_TOLERANCE_RATIO * large <= SIZE_TOLERANCE_RATIO**2 * small * slow.latency_ns / fast.latency_ns


def _pace(side: DiffSide, rows: Int64, prompt_ns: float) -> ProducePace:
    found = side.capture.index.numbers(rows)
    found = found.where(found.has_latency)
    if not len(found.connection):
        return ProducePace(follows_responses=False, latency_ns=0)
    in_flight, pauses_ns = (np.concatenate(each) for each in zip(*_sends(found), strict=True))
    most = int(in_flight.max())
    follows: Bool = (pauses_ns <= prompt_ns) | ((in_flight == most) & (most > 0))
    return ProducePace(bool(follows.mean() >= MOSTLY), float(np.median(found.latency_ns)))


def _sends(found: IndexColumns) -> Iterator[tuple[Int64, Int64]]:
    """Yield for each connection how many requests were in flight when each was sent, and the time since the last
    response."""
    for connection in np.unique(found.connection):
        sent_ns = found.request_time_ns[found.connection == connection]
        answered_ns = np.sort(sent_ns + found.latency_ns[found.connection == connection])
        sent_ns = np.sort(sent_ns)
        answers = np.searchsorted(answered_ns, sent_ns, side="right")
        yield np.arange(len(sent_ns)) - answers, sent_ns - np.append(0, answered_ns)[answers]
