"""A group's history as lines for people, and as plain values for JSON. Texts are as on the wire: not cleaned."""

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from dissector.core.text import counted, rough_duration
from dissector.groups.history import GroupHistory
from dissector.groups.rebalance import MemberChange, Rebalance
from dissector.groups.verdict import verdict

MOST_MEMBERS: Final = 6
"""Members of whom a generation says one by one how they went on."""
KINDS: Final = {
    "classic": "classic protocol", "consumer": "consumer protocol (KIP-848)", "share": "share group",
    "streams": "streams group",
}  # fmt: skip


class ReportLine(NamedTuple):
    """What happened in a generation or epoch."""

    time_ns: int
    """0 for what sums up."""
    words: str
    row: int | None = None
    """The row that shows it, from 0."""


def heading(history: GroupHistory) -> str:
    """Return what a group is: ``classic protocol, 3 members, generations 1 to 5``."""
    known = history.rebalances
    words = [KINDS[history.kind], counted(len(history.members), "member")]
    if known:
        unit, first, last = known[0].unit, known[0].number, known[-1].number
        words.append(f"{unit} {first}" if first == last else f"{unit}s {first} to {last}")
    return ", ".join(words)


def title(rebalance: Rebalance) -> str:
    """Return what a generation or epoch is: ``generation 4, range, 2 members``."""
    words = [f"{rebalance.unit} {rebalance.number}", rebalance.assignor]
    words += [counted(rebalance.size, "member")] if rebalance.size else []
    return ", ".join(filter(None, words))


def why(rebalance: Rebalance) -> str:
    """Return why a generation or epoch began."""
    if rebalance.cause is None:
        return "began before the capture" if rebalance.is_first else "the capture does not show why"
    return rebalance.cause.words


def lines(rebalance: Rebalance) -> Iterator[ReportLine]:
    """Yield who joined, left or was removed, in the order of time; what the others did; how long no member consumed."""
    found = [*_changes(rebalance), *_others(rebalance)]
    yield from sorted((each for each in found if each.time_ns), key=lambda each: each.time_ns)
    yield from (each for each in found if not each.time_ns)
    for member, ns in rebalance.unread_ns.items():
        yield ReportLine(0, f"no member read the partitions of {member} for {rough_duration(ns)}")
    nobody = rebalance.nobody_ns
    if nobody is not None:
        yield ReportLine(0, f"no member consumed for {rough_duration(nobody)}")


def rest(history: GroupHistory) -> Iterator[ReportLine]:
    """Yield what came after the last generation or epoch began, and led to no other."""
    yield from _changes(history.rest)


def _changes(rebalance: Rebalance) -> Iterator[ReportLine]:
    """A removal that is the cause is what `why` says already."""
    cause = rebalance.cause.words if rebalance.cause is not None else ""
    changes = [*rebalance.joined, *rebalance.left, *rebalance.removed, *rebalance.noted]
    went = {id(each) for each in rebalance.left}
    for each in changes:
        words = f"{each.member} {_left(each) if id(each) in went else each.words}"
        if words != cause:
            yield ReportLine(each.time_ns, words, each.row)


def _left(change: MemberChange) -> str:
    return f"left: {change.words}" if change.words else "left"


def _others(rebalance: Rebalance) -> Iterator[ReportLine]:
    start_ns = rebalance.start_ns
    if rebalance.unit == "epoch":
        reached = sorted(rebalance.reached.items(), key=lambda each: each[1])
        for member, at in reached[:MOST_MEMBERS]:
            yield ReportLine(at, f"{member} got this epoch after {rough_duration(max(0, at - start_ns))}")
        yield from _more(len(reached) - MOST_MEMBERS)
        return
    stops = sorted((each for each in rebalance.stops.values() if each.is_old), key=lambda each: each.joins_ns)
    for stop in stops[:MOST_MEMBERS]:
        heard = rebalance.heard.get(stop.member)
        words = []
        if heard is not None:
            words.append(f"got REBALANCE_IN_PROGRESS after {rough_duration(max(0, heard.heard_ns - start_ns))}")
            if heard.rejoined_ns:
                words.append(f"rejoined {rough_duration(max(0, heard.rejoined_ns - heard.heard_ns))} later")
        if not words:
            words.append("rejoined")
        if stop.synced_ns:
            paused = rough_duration(stop.synced_ns - stop.joins_ns)
            words.append(f"was assigned {paused} later" if rebalance.cooperative else f"paused for {paused}")
        yield ReportLine(stop.joins_ns, f"{stop.member} {', '.join(words)}")
    yield from _more(len(stops) - MOST_MEMBERS)
    silent = [
        each.member for each in rebalance.heard.values() if not each.rejoined_ns and _is_absent(rebalance, each.member)
    ]
    if silent:
        yield ReportLine(0, f"{', '.join(silent[:MOST_MEMBERS])} got REBALANCE_IN_PROGRESS but did not rejoin")


def _is_absent(rebalance: Rebalance, member: str) -> bool:
    return all(each.member != member for each in rebalance.stops.values())


def _more(count: int) -> Iterator[ReportLine]:
    if count > 0:
        yield ReportLine(0, f"and {counted(count, 'more member')}")


def as_object(history: GroupHistory) -> dict[str, Any]:
    """Return a group for JSON. Times are nanoseconds, rows count from 1 as ``number`` does."""
    found = verdict(history)
    return {
        "kind": "group",
        "group": history.group,
        "coordinator": history.server or None,
        "protocol": history.kind,
        "verdict": found.sentence,
        "rebalances": history.tally.count,
        "not_seen": history.tally.missed,
        "first_ns": history.first_ns,
        "last_ns": history.last_ns,
        "members": history.members,
        "causes": [
            {
                "cause": each.kind.value, "members": list(each.members), "times": each.times,
                "rebalances": each.rebalances, "certain": each.sure, "words": each.words, "advice": each.advice,
            }
            for each in found.parts
        ],
        "generations": [_generation(each) for each in history.rebalances],
        "after": [_change(each, "left") for each in history.rest.left]
        + [_change(each, "noted") for each in history.rest.noted],
    }  # fmt: skip


def _generation(rebalance: Rebalance) -> dict[str, Any]:
    cause = rebalance.cause
    return {
        rebalance.unit: rebalance.number,
        "number": rebalance.row + 1,
        "time_ns": rebalance.start_ns,
        "duration_ns": rebalance.done_ns - rebalance.start_ns,
        "cause": None if cause is None else cause.kind.value,
        "member": None if cause is None else cause.member,
        "reason": cause.reason or None if cause is not None else None,
        "certain": cause.sure if cause is not None else None,
        "words": why(rebalance),
        "assignor": rebalance.assignor or None,
        "leader": rebalance.leader or None,
        "size": rebalance.size or None,
        "changes": [
            _change(each, what)
            for what, changes in _named(rebalance)
            for each in changes
        ],
        "heard": [
            {
                "member": each.member, "time_ns": each.heard_ns,
                "rejoined_ns": each.rejoined_ns or None,
            }
            for each in rebalance.heard.values()
        ],
        "paused_ns": {
            each.member: each.synced_ns - each.joins_ns
            for each in rebalance.stops.values() if each.is_old and each.synced_ns and not rebalance.cooperative
        },
        "unread_ns": rebalance.unread_ns,
        "nobody_ns": rebalance.nobody_ns,
    }  # fmt: skip


def _named(rebalance: Rebalance) -> Sequence[tuple[str, Sequence[MemberChange]]]:
    return (
        ("joined", rebalance.joined), ("left", rebalance.left), ("removed", rebalance.removed),
        ("noted", rebalance.noted),
    )  # fmt: skip


def _change(change: MemberChange, what: str) -> dict[str, Any]:
    return {
        "what": what, "member": change.member, "words": change.words or None, "time_ns": change.time_ns,
        "number": change.row + 1,
    }  # fmt: skip
