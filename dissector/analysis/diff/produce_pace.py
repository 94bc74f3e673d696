"""Whether a producer sends when responses come: its batches then have what it got while it waited, and no setting.

A producer with as many requests in flight as it allows itself keeps its records until the next response, so that they
wait for longer, and batches are larger, where a cluster or a machine is slow. One that lingers sends at other times.
"""

from functools import partial
from typing import Final, NamedTuple

import numpy as np

from dissector.analysis.diff.batch_limits import are_cut_short
from dissector.analysis.diff.batching import MIN_BATCHES, NS_PER_MS
from dissector.analysis.diff.frequency_comparison import SIZE_TOLERANCE_RATIO
from dissector.analysis.diff.kept_numbers import as_column, median_of
from dissector.analysis.diff.side import DiffSide
from dissector.analysis.diff.side_profile import SideProfile
from dissector.core.arrays import Bool, Int64

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


def linger_ns(profile: SideProfile, least: int = 1) -> int | None:
    """Return the median time for which a producer lets records wait for more; None for fewer than `least` batches that
    show it, or if they wait for responses, as most batches do, or are full before."""
    batches = profile.batches
    if len(batches.lingers_ms) < least or are_cut_short(batches):
        return None
    linger_ms = median_of(batches.lingers_ms)
    is_wait = linger_ms >= MOSTLY * median_of(batches.waits_ms)
    return None if is_wait and produce_pace(profile).follows_responses else round(linger_ms * NS_PER_MS)


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
    sent_ns, latencies_ns = found.request_time_ns, found.latency_ns
    count = len(sent_ns)
    if not count:
        return ProducePace(follows_responses=False, latency_ns=0)
    times_ns = np.concatenate((sent_ns, sent_ns + latencies_ns))
    order = np.lexsort((np.arange(2 * count) < count, times_ns, np.tile(found.connection, 2)))  # a response comes first
    is_request = order < count
    # As each request has its response, as many of both are before a connection's first.
    in_flight = np.cumsum(np.where(is_request, 1, -1))[is_request] - 1
    last = np.maximum.accumulate(np.where(is_request, 0, np.arange(2 * count)))[is_request]
    connections = found.connection[order % count]
    is_same = (connections[last] == connections[is_request]) & ~is_request[last]
    is_prompt = is_same & (times_ns[order[is_request]] - times_ns[order[last]] <= prompt_ns)
    most = int(in_flight.max())
    follows: Bool = is_prompt | ((in_flight == most) & (most > 0))
    return ProducePace(bool(follows.mean() >= MOSTLY), float(np.median(latencies_ns)))
