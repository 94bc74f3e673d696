"""What of its clients' lives a side has: a capture that begins in the middle of connections has no versions, logins and
joins of these, and one that ends before they are closed lacks all that comes later.

Of what the other side shows, a side may have missed:

  * if it begins late, what clients do at their start, and what the other side does in a part of its time only: which
    part of that was captured here is not known;
  * if it ends early, what clients do at their end, and what the other side does for the first time about as late as
    this side ends, or later; and, as whoever stops early may have started late, between two programs, what an earlier
    program does, by a client id of its own, and how programs begin, if none begins here.

What one side missed is no difference. Invariant: a side that has its connections from start to end missed nothing.
"""

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

import numpy as np

from dissector.analysis.diff.kept_numbers import as_column, no_numbers
from dissector.analysis.diff.key_profile import KeyProfile
from dissector.analysis.diff.matching_keys import CLOSING_A_SESSION, REPEATED_APIS, MatchingKey
from dissector.analysis.diff.side import ROWS_PER_BATCH, DiffSide
from dissector.capture_session import Capture
from dissector.core.arrays import Int64
from dissector.core.text import counted
from dissector.protocol.schema.api_keys import ApiKey

if TYPE_CHECKING:
    from dissector.analysis.diff.side_profile import SideProfile

REPEATED_AT_START: Final = frozenset(("ApiVersions", "FindCoordinator", "Metadata", "GetTelemetrySubscriptions"))
"""Of the APIs that clients call repeatedly those that they may call at their start alone."""
BEGINNINGS: Final = frozenset(("Metadata",))
"""What every program requests first, but for versions."""
ENDINGS: Final = frozenset(("LeaveGroup",))
NEVER_NS: Final = (1 << 63) - 1
SLACK: Final = 2
"""A side that lasts so many times longer than the other took to send a request would have sent it, too."""
MIN_STEADY_NS: Final = 60_000_000_000
"""What the other side sends for a shorter time may be one part of what its program does."""
Value = TypeVar("Value")


class CapturedSpan(NamedTuple):
    """How much of a side's connections was captured."""

    connections: int
    begun_before: int
    """Connections of which neither the SYN nor an ApiVersions request at their beginning was captured."""
    open_at_end: int
    """Connections that were not closed when the capture ended."""
    duration_ns: int


Spans = tuple[CapturedSpan, CapturedSpan]
"""Of both sides."""


class Sight(NamedTuple):
    """What one side could see of what another one does."""

    begins_late: bool
    ends_early: bool
    """Before its connections are closed, while the other side may go on: of two that begin with their connections and
    do not have their ends, the longer one has all that the other has."""
    is_open: bool
    """Whether some connections are not closed at the end."""

    @property
    def is_partial(self) -> bool:
        return self.begins_late or self.ends_early


WHOLE: Final = Sight(begins_late=False, ends_early=False, is_open=False)
Sights = tuple[Sight, Sight]
BOTH_WHOLE: Final[Sights] = (WHOLE, WHOLE)


def captured_span(capture: Capture, connections: Collection[int], duration_ns: int) -> CapturedSpan:
    """Return how much of some connections a capture has."""
    numbers = np.array(list(connections), np.int64)
    is_opened, is_closed = capture.connections.seen_ends(numbers)
    late = set(numbers[~is_opened].tolist())
    late -= _beginning_with_versions(capture, late)
    return CapturedSpan(len(numbers), len(late), int((~is_closed).sum()), duration_ns)


def _beginning_with_versions(capture: Capture, connections: Collection[int]) -> set[int]:
    """Return the connections whose first exchange is an ApiVersions request: no client sends that later."""
    left, found = set(connections), set[int]()
    for start in range(0, len(capture), ROWS_PER_BATCH):
        if not left:
            break
        rows = capture.index.numbers(np.arange(start, min(start + ROWS_PER_BATCH, len(capture))))
        at, first = np.unique(rows.connection, return_index=True)
        for connection, row in zip(at.tolist(), first.tolist(), strict=True):
            if connection in left:
                left.remove(connection)
                if rows.api_key[row] == ApiKey.API_VERSIONS:
                    found.add(connection)
    return found


def sights(a: CapturedSpan, b: CapturedSpan) -> Sights:
    """Return what each of two sides could see of the other."""

    def of(mine: CapturedSpan, other: CapturedSpan) -> Sight:
        goes_on = not other.open_at_end or bool(other.begun_before) or mine.duration_ns < other.duration_ns
        return Sight(bool(mine.begun_before), bool(mine.open_at_end) and goes_on, bool(mine.open_at_end))

    return of(a, b), of(b, a)


class Common(NamedTuple):
    """What two sides have in common, as the one sees it that shows what the other one may have missed."""

    apis: Collection[str]
    """All APIs of the other one."""
    first_ns: int
    """When the first request comes of those whose keys both sides have, but for what all programs do at their start."""
    client_ids: Int64
    """Those with such requests, by number: all connections of a program have one."""


def common_of(mine: Mapping[MatchingKey, KeyProfile], other: Collection[MatchingKey], side: DiffSide) -> Common:
    """Return what a side has in common with the keys of another one."""
    both = [each.rows for key, each in mine.items() if key in other and key.api not in REPEATED_AT_START]
    found = side.numbers(np.sort(np.concatenate([as_column(each) for each in both or [no_numbers()]])))
    first_ns = int(found.request_time_ns.min(initial=NEVER_NS))
    return Common({key.api for key in other}, first_ns, np.unique(found.client_id))


def may_have_missed(
    key: MatchingKey, shown: KeyProfile, side: int, spans: Spans, other: "SideProfile", common: Common
) -> bool:
    """Return whether one of two sides may have missed the requests of a key, which the other one shows."""
    mine, both = spans[side], sights(*spans)
    sight = both[side]
    if sight.is_open and (key.api in ENDINGS or key.subject == (CLOSING_A_SESSION,)):
        return True
    if not sight.is_partial:
        return False
    if sight.begins_late and (key.api not in REPEATED_APIS or key.api in REPEATED_AT_START):
        return True
    found = other.side.numbers(as_column(shown.rows))
    times_ns = found.request_time_ns
    if sight.begins_late or both[1 - side].begins_late:
        return is_phase(times_ns, other.times_ns, mine.duration_ns)
    if key.api in BEGINNINGS and key.api not in common.apis:
        return True
    is_earlier = (times_ns < common.first_ns) & ~np.isin(found.client_id, common.client_ids)
    later_ns = times_ns[~is_earlier]
    return not len(later_ns) or comes_late(int(later_ns.min()) - other.times_ns[0], mine.duration_ns)


def comes_late(first_ns: int, duration_ns: int) -> bool:
    """Return whether what comes first so long after a start may come after a capture that lasts so long."""
    return SLACK * first_ns >= duration_ns


def is_phase(times_ns: Int64, of_side_ns: tuple[int, int], duration_ns: int) -> bool:
    """Return whether requests may not come for as long as another capture lasts; `of_side_ns` are the times of the
    first and the last request of their own one."""
    if times_ns.max() - times_ns.min() < MIN_STEADY_NS:
        return True
    longest_ns = int(np.diff(np.concatenate(([of_side_ns[0]], np.sort(times_ns), [of_side_ns[1]]))).max())
    return SLACK * longest_ns >= duration_ns


def may_lack(api: str, span: CapturedSpan) -> bool:
    """Return whether a capture may lack the requests of an API that its client sends."""
    is_ending = bool(span.open_at_end) and api in ENDINGS
    is_beginning = bool(span.begun_before) and (api not in REPEATED_APIS or api in REPEATED_AT_START)
    return is_ending or is_beginning or (bool(lacking(span)) and span.duration_ns < MIN_STEADY_NS)


def lacking(span: CapturedSpan) -> str:
    """Say what of its connections a capture does not have; empty if it has all from start to end."""
    parts = (("beginning", span.begun_before), ("end", span.open_at_end))
    words = " and ".join(f"the {what} of {n:,}" for what, n in parts if n)
    return f"{words} of {counted(span.connections, 'connection')}" if words else ""


def may_be_equal(a: Collection[Value], b: Collection[Value], both: Sights) -> bool:
    """Return whether two sides may have the same values, where one may have missed some that the other has."""
    only_a, only_b = set(a) - set(b), set(b) - set(a)
    if (only_a and not both[1].is_partial) or (only_b and not both[0].is_partial):
        return False
    return not (only_a and only_b) or not set(a).isdisjoint(b)


def not_compared(
    spans: tuple[CapturedSpan, CapturedSpan], missed: tuple[Collection[str], Collection[str]]
) -> list[str]:
    """Return for each side that has not the whole of its connections a sentence that says what was not compared;
    `missed` are the APIs whose requests only the other side shows."""
    both = sights(*spans)
    found = []
    for side, (span, sight) in enumerate(zip(spans, both, strict=True)):
        if not sight.is_partial and not missed[side]:
            continue
        mine, other = "AB"[side], "BA"[side]
        where, what = list[str](), list[str]()
        of_all = f" of its {counted(span.connections, 'connection')}"
        if span.begun_before:
            where.append(f"begins in the middle of {span.begun_before:,}{of_all}")
            what.append("versions, logins and joins of those")
        if span.open_at_end and (sight.ends_early or missed[side]):
            where.append(f"ends before {span.open_at_end:,}{'' if where else of_all} are closed")
            what.append("what comes later")
        only = f"; nor {', '.join(sorted(missed[side]))}, only in {other}" if missed[side] else ""
        found.append(f"{mine} {' and '.join(where)}: {' and '.join(what)} are not compared{only}")
    if found:
        found.append("numbers of requests, connections and records are not compared; only rates over 10 s or more")
    return found
