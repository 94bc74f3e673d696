"""The verdict on a group in one sentence: how often it rebalanced, because of whom and what, and what to do."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from dissector.core.text import counted, rough_duration
from dissector.groups.causes import ARRIVALS, DEPARTURES, WORDS, CauseKind, seemingly
from dissector.groups.history import GroupHistory
from dissector.groups.tally import OTHERS, CauseKey, CauseTally
from dissector.protocol.schema.error_codes import ErrorCode
from dissector.protocol.schema.errors import error_name

MOST_PARTS: Final = 3
"""Causes that a sentence names; of further ones it says how many rebalances they began."""
_NAMES: Final = 3
_RESTARTS: Final = frozenset((CauseKind.CLOSED, CauseKind.LEFT))
"""Departures that are a rolling restart if several members come back from them."""
_REFUSALS: Final = {
    ErrorCode.INCONSISTENT_GROUP_PROTOCOL: "it has no assignor or protocol in common with the other members; see "
    "partition.assignment.strategy and group.protocol of all members",
    ErrorCode.FENCED_INSTANCE_ID: "another member has its group.instance.id; each process needs its own",
    ErrorCode.UNRELEASED_INSTANCE_ID: "another member still has its group.instance.id; each process needs its own",
    ErrorCode.FENCED_MEMBER_EPOCH: "its epoch is not the one that the coordinator has; it gives up its partitions and "
    "joins again",
    ErrorCode.GROUP_MAX_SIZE_REACHED: "the group is full; see group.max.size of the broker",
    ErrorCode.INVALID_SESSION_TIMEOUT: "session.timeout.ms is outside the range that the broker allows",
}


class CausePart(NamedTuple):
    """Rebalances of one cause."""

    rebalances: int
    words: str
    advice: str
    kind: CauseKind
    members: tuple[str, ...]
    times: int
    """How often members went, joined or did what else the cause is; their returns are not among them."""
    sure: bool


class GroupVerdict(NamedTuple):
    """What to say of a group."""

    sentence: str
    parts: tuple[CausePart, ...]
    """Its causes, those of the most rebalances first."""


def verdict(history: GroupHistory) -> GroupVerdict:
    """Return the verdict on a group as far as it is known. Texts of the wire are not cleaned."""
    known = history.rebalances
    parts = tuple(cause_parts(history.tally))
    refusals = "; ".join(_refusals(history.tally))
    if not history.tally.count:
        unit = known[-1].unit if known else ""
        where = f" in {unit} {known[-1].number}" if known else ""
        back = history.tally.static_returns
        after = f", although static members came back {_times(back)}" if back else ""
        after += f"; {refusals}" if refusals else ""
        return GroupVerdict(f"{history.name} did not rebalance{where}{after}", parts)
    return GroupVerdict(f"{history.name} {rebalanced(history.tally, parts, refusals)}", parts)


def rebalanced(tally: CauseTally, parts: Sequence[CausePart], refusals: str = "") -> str:
    """Return the sentence without its subject: ``rebalanced 11 times in 45 s because ...``."""
    often = f"rebalanced {_times(tally.count)}"
    if tally.count > 1:
        often += f" in {rough_duration(max(0, tally.last_ns - tally.first_ns))}"
    shown, rest = parts[:MOST_PARTS], sum(each.rebalances for each in parts[MOST_PARTS:])
    because = [each.words for each in shown]
    because += [f"{rest:,} for other reasons"] if rest else []
    words = f"{often} because {'; '.join(because)}" if because else often
    if tally.missed:
        words += f"; {counted(tally.missed, 'more rebalance')} not seen"
    if tally.static_returns:
        words += f"; static members came back {_times(tally.static_returns)} without a rebalance"
    words += f"; {refusals}" if refusals else ""
    advice = next((each.advice for each in shown if each.advice), "")
    return f"{words}. {advice[:1].upper()}{advice[1:]}" if advice else words


def cause_parts(tally: CauseTally) -> list[CausePart]:
    """Return the causes of a group, those of the most rebalances first. A member that comes back belongs to the cause
    for which it had gone."""
    groups: dict[tuple[CauseKind, str], _PartCauses] = defaultdict(_PartCauses)
    for key, count in tally.causes.items():
        if count <= 0:
            continue
        kind = key.after if key.kind is CauseKind.RETURNED and key.after is not None else key.kind
        by_itself = kind not in DEPARTURES | ARRIVALS or _repeats(tally, key.member, kind)
        came = tally.returns[kind, key.member]
        together = "restarted" if came and kind in _RESTARTS else ""
        group = groups[kind, key.member if by_itself else together]
        group.add(key, count, came, returns=key.kind is CauseKind.RETURNED)
    found = [_part(kind, group, tally) for (kind, _), group in groups.items()]
    return sorted(found, key=lambda each: -each.rebalances)


class _PartCauses:
    """Causes of one part."""

    def __init__(self) -> None:
        self.members: Counter[str] = Counter()
        self.returns: Counter[str] = Counter()
        self.keys: list[CauseKey] = []
        self.total = 0

    def add(self, key: CauseKey, count: int, came: int, *, returns: bool) -> None:
        self.total += count
        self.members[key.member] += 0 if returns else count
        if came:
            self.returns[key.member] = came
        if not returns:
            self.keys.append(key)


def _repeats(tally: CauseTally, member: str, kind: CauseKind) -> bool:
    """Whether a member did the same so often that it is a part by itself: a restart and the end are not."""
    went = sum(count for each, count in tally.causes.items() if each.member == member and each.kind is kind)
    return went > (2 if kind in _RESTARTS else 1)


def _part(kind: CauseKind, group: _PartCauses, tally: CauseTally) -> CausePart:
    went, came = group.members, group.returns
    names = tuple(went)
    is_restart = kind in _RESTARTS and len(came) > 1 and len(names) > 1
    known = WORDS[kind]
    verb = known.verb if not _are_several(names) else known.verb.replace("was ", "were ").replace("is no", "are no")
    count = sum(went.values())
    how = "" if count <= 1 or len(names) > 1 else f" {_times(count)}"
    back = " and came back" if came else ""
    why = "a rolling restart" if is_restart else _why(kind, group.keys, tally, are_several=_are_several(names))
    words = f"{_who(names)} {verb}{how}{back}" + (f": {why}" if why else "")
    sure = all(each.sure for each in group.keys)
    advice = "" if kind in _RESTARTS and not came else known.advice
    return CausePart(group.total, words, advice, kind, names, count, sure)


def _are_several(names: Sequence[str]) -> bool:
    return len(names) > 1 or names[0] == OTHERS


def _why(kind: CauseKind, keys: Sequence[CauseKey], tally: CauseTally, *, are_several: bool) -> str:
    known = WORDS[kind]
    reasons = [key.reason for key in keys if key.reason and known.names_reason]
    because = known.of_several if are_several and known.of_several else known.because
    why = (reasons[0] if reasons else because).rstrip(". ")
    why += seemingly(kind, sure=all(key.sure for key in keys))
    shown = {tally.details(each) for each in keys} if kind not in ARRIVALS else set()
    details = shown.pop() if len(shown) == 1 else tally.details(keys[0]) if shown and not are_several else ""
    return f"{why} ({details})" if why and details else why or details


def _who(names: Sequence[str]) -> str:
    if len(names) == 1:
        return names[0]
    more = ", …" if len(names) > _NAMES else ""
    return f"{counted(len(names), 'member')} ({', '.join(names[:_NAMES])}{more})"


def _refusals(tally: CauseTally) -> Iterator[str]:
    for (member, code), count in tally.refusals.most_common(MOST_PARTS):
        how = "" if count == 1 else f" {_times(count)}"
        verb = "was fenced" if code in (ErrorCode.FENCED_INSTANCE_ID, ErrorCode.FENCED_MEMBER_EPOCH) else "was refused"
        why = f": {_REFUSALS[ErrorCode(code)]}" if code in _REFUSALS else ""
        yield f"{member} {verb}{how} ({error_name(code)}){why}"


def _times(count: int) -> str:
    return {1: "once", 2: "twice"}.get(count, f"{count:,} times")
