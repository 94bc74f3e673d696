"""The lines of timelines, without a screen."""

from collections.abc import Iterator, Sequence
from typing import Final

from dissector.analysis.timelines import Timeline, TimelineEvent
from dissector.core.text import clean, counted, seconds
from tui.row_states import ERROR_MARKS
from tui.widgets.line_list import StyledLine

_KINDS: Final = {
    "classic": "group, classic protocol", "consumer": "group, consumer protocol (KIP-848)",
    "share": "share group", "streams": "streams group", "transaction": "transactional id",
}  # fmt: skip
_SLIM, _NARROW = 76, 90
"""Widths below which members have less room, and times none."""
_LEFT_OUT: Final = "more events are not shown"


def timeline_lines(timelines: Sequence[Timeline], start_ns: int, width: int) -> list[StyledLine]:
    """Yield all timelines one after the other; an event's target is its row, from 0."""
    return [line for timeline in timelines for line in _timeline(timeline, start_ns, width)]


def _timeline(timeline: Timeline, start_ns: int, width: int) -> Iterator[StyledLine]:
    members = timeline.members
    who = f" · {len(members)} {'clients' if timeline.kind == 'transaction' else 'members'}" if len(members) > 1 else ""
    yield StyledLine(((clean(timeline.name), "head"), (f"  {_KINDS[timeline.kind]}{who}", "dim")), is_head=True)
    for phase in timeline.phases:
        beats = f" · {counted(phase.heartbeats, 'heartbeat')} without change" if phase.heartbeats else ""
        cause = f" · {clean(phase.cause)}" if phase.cause else ""
        yield StyledLine(((f"  {clean(phase.title)}", "bar"), (cause, ""), (beats, "dim")))
        for event in phase.events:
            yield _event(event, start_ns, members, width)
    if timeline.left_out:
        yield StyledLine(((f"  {timeline.left_out:,} {_LEFT_OUT}", "dim"),))
    yield StyledLine()


def _event(event: TimelineEvent, start_ns: int, members: Sequence[str], width: int) -> StyledLine:
    """Return an event's line: number, time, member, event, details; an error comes before the details."""
    room = 12 if width < _SLIM else 14 if width < _NARROW else min(40, max(map(len, members), default=14))
    who = clean(event.member)
    when = "" if width < _SLIM else f" {seconds(event.time_ns - start_ns):>11}"
    pieces = [
        (f"{event.number + 1:>8}{when}  ", "dim"),
        (f"{who if len(who) <= room else f'…{who[1 - room :]}':<{room}}  ", "name"),
        (f"{event.what:<{18 if width >= _NARROW else 15}}  ", ""),
    ]
    if event.error:
        mark, role = ERROR_MARKS[event.severity]
        pieces.append((f"{mark} {clean(event.error)}  ", role))
    return StyledLine((*pieces, (clean(event.words), "")), event.number)
