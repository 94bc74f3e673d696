"""One pass over a side: what it says by key, in which order, on which connections. Bodies are not kept, save a few.

Bodies that stand there more than once (loops say the same again and again) are looked into once. What is held is
bounded: `MOST_BODIES` different ones of a key wait to be looked into together, a field has at most `MOST_VALUES`
different values, a message at most `MOST_PATHS` paths with labels.
"""

from array import array
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from dissector.analysis.diff.batching import Batching
from dissector.analysis.diff.kinds import Symbol, Value, Word
from dissector.analysis.diff.leaves import UNLABELLED, Label, Path, leaves
from dissector.analysis.diff.meaning import Key, Strand, key_of, strand_of
from dissector.analysis.diff.roles import Roles
from dissector.analysis.diff.sides import Side
from dissector.session.exchange import Exchange, Message

MOST_BODIES: Final = 500
MOST_VALUES: Final = 64
MOST_PATHS: Final = 5_000
MOST_NAMES: Final = 65_536
"""Of one kind that are told apart; those behind them are as the wire has them."""
MOST_INTERVALS: Final = 10_000
HEADER: Final = {"request": 12, "response": 8}
"""Bytes of a frame that are never compared: its size, its correlation id, and of a request the API and version."""
Place = tuple[str, Path]
"""``request`` or ``response``, and the path in its body."""
MANY: Final = Word("more values")


@dataclass(slots=True)
class Retries:
    """Exchanges that were answered with an error that may be tried again."""

    times: dict[str, int] = field(default_factory=dict)
    """How often, by the error."""
    pauses: "array[int]" = field(default_factory=lambda: array("q"))
    """Nanoseconds from such an answer to the next try."""


@dataclass(slots=True)
class Facts:
    """All that one side says under one key."""

    rows: "array[int]" = field(default_factory=lambda: array("q"))
    versions: Counter[int] = field(default_factory=Counter)
    fields: dict[Place, Counter[Value]] = field(default_factory=dict)
    first: dict[Place, int] = field(default_factory=dict)
    """The first row that has a field."""
    intervals: "array[int]" = field(default_factory=lambda: array("q"))
    """Nanoseconds from one request to the next on the same connection."""
    latencies: "array[int]" = field(default_factory=lambda: array("q"))
    retries: Retries = field(default_factory=Retries)
    last: dict[int, int] = field(default_factory=dict)
    """By connection, when it was asked last."""
    failed: int = 0
    """When an error came that may be tried again, if it was not tried again yet."""
    bodies: dict[tuple[str, int, bytes], list[tuple[int, int, Message]]] = field(default_factory=dict)
    """What is to be looked into: by part, version and bytes: the first row, how often, the message."""


class Gathered:
    """What one side says."""

    def __init__(self, side: Side, connections: Mapping[int, int], rows: Mapping[int, int]) -> None:
        """The numbers of what the user matched with something of the other side: by connection, by row."""
        self.side = side
        self._connections = connections
        self._rows = rows
        self.facts: dict[Key, Facts] = {}
        self.strands: dict[Strand, list[tuple[Key, list[int]]]] = {}
        """The steps of each strand, in order, each with its rows: the same again is one step."""
        self.names: dict[str, dict[str, None]] = {}
        """Every name of a kind, in the order in which they were first seen."""
        self.batching = Batching()
        self.roles = Roles()
        self.left_out: Counter[str] = Counter()
        self.exchanges = 0
        self.unanswered = 0
        for exchange in side.exchanges():
            self._take(exchange)
        self._finish()

    def key(self, exchange: Exchange) -> tuple[Key, str]:
        """What an exchange means here, and the error that made somebody try again; empty for none."""
        row = exchange.facts
        by_hand = self._rows.get(row.number - 1)
        if by_hand is not None:  # whatever it is about
            return Key(by_hand, row.api, (), ""), ""
        return key_of(exchange, self._connections.get(row.connection, 0))

    def _take(self, exchange: Exchange) -> None:
        row = exchange.facts
        if row.kind != "exchange" or exchange.request is None:
            self.left_out["responses without a request" if row.kind == "exchange" else row.kind] += 1
            return
        self.exchanges += 1
        key, again = self.key(exchange)
        for each in key.subject:
            if isinstance(each, Symbol):
                self._name(each)
        facts = self.facts.setdefault(key, Facts())
        number = row.number - 1
        facts.rows.append(number)
        if row.version is not None:
            facts.versions[row.version] += 1
        self._time(facts, exchange, again)
        strand = strand_of(key)
        if strand is not None:
            steps = self.strands.setdefault(strand, [])
            if steps and steps[-1][0] == key:
                steps[-1][1].append(number)
            else:
                steps.append((key, [number]))
        if row.api == "Produce":
            self.batching.take(exchange.request.body, exchange.request.context.topic_names, row.time_ns)
        self.roles.take(exchange)
        self._body(facts, "request", number, exchange.request)
        if exchange.response is None and not any(f.code == "no-response-expected" for f in exchange.own_findings):
            self.unanswered += 1
        if exchange.response is not None and not again:
            self._body(facts, "response", number, exchange.response)

    def _time(self, facts: Facts, exchange: Exchange, again: str) -> None:
        row = exchange.facts
        asked = facts.last.get(row.connection)
        if asked is not None and len(facts.intervals) < MOST_INTERVALS:
            facts.intervals.append(row.time_ns - asked)
        facts.last[row.connection] = row.time_ns
        if row.latency_ns is not None and len(facts.latencies) < MOST_INTERVALS:
            facts.latencies.append(row.latency_ns)
        if facts.failed and row.time_ns >= facts.failed and len(facts.retries.pauses) < MOST_INTERVALS:
            facts.retries.pauses.append(row.time_ns - facts.failed)
            facts.failed = 0
        if again:
            facts.retries.times[again] = facts.retries.times.get(again, 0) + 1
            facts.failed = row.time_ns + (row.latency_ns or 0)

    def _body(self, facts: Facts, part: str, number: int, message: Message) -> None:
        found = facts.bodies.setdefault((part, message.shape.body_version, message.data[HEADER[part] :]), [])
        if found:
            first, count, kept = found[0]
            found[0] = (first, count + 1, kept)
        else:
            found.append((number, 1, message))
            if len(facts.bodies) > MOST_BODIES:
                self._look_into(facts)

    def _finish(self) -> None:
        """Look into what waits, in the order of rows, so that names are seen in that order."""
        for facts in sorted(self.facts.values(), key=lambda facts: facts.rows[0]):
            self._look_into(facts)

    def _look_into(self, facts: Facts) -> None:
        fields = facts.fields
        for (part, _, _), found in facts.bodies.items():
            for first, count, message in found:
                for path, value in leaves(message):  # the innermost of all loops: written out, and not a function
                    values = fields.get((part, path))
                    if values is None:
                        values = self._new(facts, (part, path), first)
                    if value in values:
                        values[value] += count
                        continue
                    if isinstance(value, Symbol):
                        self._name(value)
                    values[value if len(values) < MOST_VALUES else MANY] += count
        facts.bodies.clear()

    def _new(self, facts: Facts, place: Place, first: int) -> Counter[Value]:
        """Where the values go of a field that was not seen before; without labels where there are too many of them."""
        for step in place[1]:
            if isinstance(step, Label) and isinstance(step.value, Symbol):
                self._name(step.value)
        if len(facts.fields) >= MOST_PATHS:
            place = (place[0], tuple(UNLABELLED if isinstance(step, Label) else step for step in place[1]))
        facts.first.setdefault(place, first)
        return facts.fields.setdefault(place, Counter())

    def _name(self, symbol: Symbol) -> None:
        known = self.names.setdefault(symbol.kind, {})
        if len(known) < MOST_NAMES:
            known.setdefault(symbol.text)
