"""The timeline of a group or a transactional id, in phases (generations, epochs, transactions), and how exchanges
become its events.

Texts are as on the wire: not cleaned.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from dissector.core.finding import Severity
from dissector.exchange.info_column import first_error
from dissector.exchange.model import Exchange, ExchangeMessage, worst

MAX_EVENTS: Final = 5_000
"""Events of one timeline; further ones are only counted."""
MAX_TIMELINES: Final = 2_000


class TimelineEvent(NamedTuple):
    """An event. Heartbeats that change nothing are counted in the phase instead."""

    number: int
    """Its row, from 0."""
    time_ns: int
    what: str
    """The API, or what it means: ``JoinGroup``, ``joins``, ``leaves``."""
    member: str
    """The member: its client id, numbered if more than one member has it."""
    words: str
    error: str
    """The name of the error in the response; empty for none."""
    severity: Severity | None = None
    """How bad the error is: a step of the protocol is a note."""


@dataclass(slots=True)
class Phase:
    """A generation of a classic group, an epoch of a newer one, a transaction."""

    title: str
    events: list[TimelineEvent] = field(default_factory=list)
    heartbeats: int = 0
    """Heartbeats that changed nothing."""
    cause: str = ""
    """Why it began; empty if the capture does not show it."""


@dataclass(slots=True)
class Timeline:
    """The events of a group or of a transactional id."""

    name: str
    kind: str
    """``classic``, ``consumer`` (KIP-848), ``share`` (KIP-932), ``streams`` (KIP-1071) or ``transaction``."""
    phases: list[Phase] = field(default_factory=list)
    verdict: str = ""
    """Of a group: how often it rebalanced, and why, in a sentence."""
    left_out: int = 0
    """Events beyond `MAX_EVENTS`."""
    _members: dict[str, str] = field(default_factory=dict, repr=False)
    _joined: list[str] | None = field(default=None, repr=False)
    _kept: int = field(default=0, repr=False)

    @property
    def members(self) -> list[str]:
        """The members, in the order of their first events; those that joined, where the group's history is known."""
        return list(dict.fromkeys(self._members.values())) if self._joined is None else self._joined

    def rename(self, names: Mapping[str, str], joined: list[str]) -> None:
        """Take the names of the group's history, by member id: who comes back has another id, and the name it had."""
        renamed = {name: names[each] for each, name in self._members.items() if each in names}
        for phase in self.phases:
            phase.events = [each._replace(member=renamed.get(each.member, each.member)) for each in phase.events]
        self._joined = joined

    @property
    def events(self) -> list[TimelineEvent]:
        """All events, phase by phase."""
        return [event for phase in self.phases for event in phase.events]

    @property
    def phase(self) -> Phase:
        """The current phase: the last one."""
        if not self.phases:
            self.phases.append(Phase("at the beginning"))
        return self.phases[-1]

    def is_only(self, what: str) -> bool:
        """Return whether there are no other events."""
        return all(event.what == what for event in self.events) and not any(each.heartbeats for each in self.phases)

    def begin(self, title: str) -> Phase:
        """Begin a new phase."""
        self.phases.append(Phase(title))
        return self.phases[-1]

    def add(self, event: TimelineEvent, phase: Phase | None = None) -> None:
        """Add an event to a phase, by default to the last one."""
        if self._kept < MAX_EVENTS:
            self._kept += 1
            (phase or self.phase).events.append(event)
        else:
            self.left_out += 1

    def beat(self, phase: Phase | None = None) -> None:
        """Count a heartbeat that changed nothing."""
        (phase or self.phase).heartbeats += 1

    def member(self, member_id: str, client_id: str | None) -> str:
        """Return the name of a member: its client id, numbered if another member has the same."""
        name = client_id or "(no client id)"
        if not member_id:
            return name
        if member_id not in self._members and len(self._members) < MAX_EVENTS:
            same = sum(known == name or known.startswith(f"{name} #") for known in self._members.values())
            self._members[member_id] = f"{name} #{same + 1}" if same else name
        return self._members.get(member_id, name)


MAX_TOPICS = 4
_NAMES = ("topic", "topic_name", "name", "topic_id")
_PARTITIONS = ("partitions", "partition_indexes", "partition_data")
_INDEXES = ("partition_index", "index", "partition")


def format_partitions(topics: object, names: Mapping[str, str]) -> str:
    """Return the partitions of structures that each have a topic name or id; `names` are those of ids."""
    found = [_topic(each, names) for each in topics if isinstance(each, dict)] if isinstance(topics, list) else []
    more = f" +{len(found) - MAX_TOPICS}" if len(found) > MAX_TOPICS else ""
    return " ".join(found[:MAX_TOPICS]) + more


def _topic(struct: Mapping[str, Any], names: Mapping[str, str]) -> str:
    topic = next((struct[name] for name in _NAMES if isinstance(struct.get(name), str)), "?")
    partitions: list[object] = next((struct[name] for name in _PARTITIONS if isinstance(struct.get(name), list)), [])
    return names.get(topic, topic) + format_ranges(map(_index, partitions))


def _index(partition: object) -> int | None:
    if isinstance(partition, dict):
        return next((partition[name] for name in _INDEXES if isinstance(partition.get(name), int)), None)
    return partition if isinstance(partition, int) else None


def format_ranges(numbers: Iterable[int | None]) -> str:
    """Return numbers in ascending order, consecutive ones as a range: ``[0..3,7]``."""
    runs: list[list[int]] = []
    for number in sorted({each for each in numbers if each is not None}):
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    words = [str(low) if low == high else f"{low}..{high}" if high > low + 1 else f"{low},{high}" for low, high in runs]
    return f"[{','.join(words[:8])}{',…' if len(words) > 8 else ''}]"


def body_of(message: ExchangeMessage | None) -> Mapping[str, Any]:
    """Return the body of a message; empty without one."""
    return {} if message is None else message.body


def names_in(exchange: Exchange) -> Mapping[str, str]:
    """Return the names of topic ids."""
    return exchange.request.context.topic_names if exchange.request is not None else {}


def event_of(exchange: Exchange, what: str, member: str, words: str) -> TimelineEvent:
    """Return the event of an exchange."""
    row = exchange.fields
    error = first_error(exchange) if exchange.response is not None else "unanswered"
    return TimelineEvent(row.number - 1, row.time_ns, what, member, words, error, worst(exchange.findings))
