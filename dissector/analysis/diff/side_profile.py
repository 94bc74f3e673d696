"""Profile one side in one pass: its messages by matching key, their order, their connections.

Messages with equal content (loops send them again and again) are read once (`alike`); only a few bodies are kept.
Memory is bounded: at most `MAX_PENDING` different messages of a key wait to be read together, a field has at most
`MAX_VALUES` different values, a message at most `MAX_PATHS` paths with labels.
"""

from array import array
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from dissector.analysis.diff.alike import Alike, Said
from dissector.analysis.diff.batching import ProducedBatches
from dissector.analysis.diff.compared_values import ComparedValue, EntityName, Placeholder
from dissector.analysis.diff.connection_roles import ConnectionRoles
from dissector.analysis.diff.matching_keys import (
    MatchingKey,
    Subject,
    Workflow,
    first_error,
    matching_key,
    subject_of,
    workflow_of,
)
from dissector.analysis.diff.message_leaves import UNLABELLED, ElementLabel, LeafPath
from dissector.analysis.diff.side import DiffSide
from dissector.core.arrays import Int64
from dissector.exchange.decoder import api_name
from dissector.exchange.model import ExchangeMessage
from dissector.index.exchange_table import Flag, RowKind
from dissector.protocol.message import read

MAX_PENDING: Final = 500
MAX_VALUES: Final = 64
MAX_PATHS: Final = 5_000
MAX_CLASSIFIED: Final = 4_096
"""Pairs of messages whose meaning is kept."""
MAX_NAMES: Final = 65_536
"""Of one kind that are told apart; those behind them are as the wire has them."""
MAX_INTERVALS: Final = 10_000
FieldPlace = tuple[str, LeafPath]
"""``request`` or ``response``, and the path in its body."""
MORE_VALUES: Final = Placeholder("more values")


@dataclass(slots=True)
class Retries:
    """Exchanges that were answered with an error that may be tried again."""

    times: dict[str, int] = field(default_factory=dict)
    """How often, by the error."""
    pauses: "array[int]" = field(default_factory=lambda: array("q"))
    """Nanoseconds from such an answer to the next try."""


@dataclass(slots=True)
class KeyProfile:
    """All that one side says under one key."""

    rows: "array[int]" = field(default_factory=lambda: array("q"))
    versions: Counter[int] = field(default_factory=Counter)
    fields: dict[FieldPlace, Counter[ComparedValue]] = field(default_factory=dict)
    first: dict[FieldPlace, int] = field(default_factory=dict)
    """The first row that has a field."""
    intervals: "array[int]" = field(default_factory=lambda: array("q"))
    """Nanoseconds from one request to the next on the same connection."""
    latencies: "array[int]" = field(default_factory=lambda: array("q"))
    retries: Retries = field(default_factory=Retries)
    last: dict[int, int] = field(default_factory=dict)
    """By connection, when it was asked last."""
    failed: int = 0
    """When an error came that may be tried again, if it was not tried again yet."""
    said: "dict[Said, PendingMessage]" = field(default_factory=dict)
    """What is to be looked into."""

    def see(self, part: str, row: int, said: Said) -> None:
        """Add a message."""
        seen = self.said.get(said)
        if seen is None:
            self.said[said] = PendingMessage(part, row, 1)
        else:
            seen.count += 1


@dataclass(slots=True)
class PendingMessage:
    """A message, seen once or more often: in which part, first in which row."""

    part: str
    first: int
    count: int


class ProfiledRow(NamedTuple):
    """A row, from 0, and what `Figures` have of it."""

    number: int
    kind: int
    connection: int
    api_key: int
    version: int
    client_id: int
    flags: int
    request_size: int
    response_size: int
    request_time_ns: int
    response_time_ns: int


WorkflowSteps = list[tuple[MatchingKey, list[int]]]
"""The steps of a strand, in order, each with its rows: the same again is one step."""


class ClassifiedExchange(NamedTuple):
    """What an exchange means."""

    key: MatchingKey
    again: str
    """The error that made somebody try again; empty for none."""
    facts: KeyProfile
    steps: WorkflowSteps | None
    """Of its strand; None for a turn of a loop."""


class SideProfile:
    """What one side says."""

    def __init__(self, side: DiffSide, connections: Mapping[int, int], rows: Mapping[int, int]) -> None:
        """The numbers of what the user matched with something of the other side: by connection, by row."""
        self.side = side
        self._connections = connections
        self._rows = rows
        self.facts: dict[MatchingKey, KeyProfile] = {}
        self.strands: dict[Workflow, WorkflowSteps] = {}
        self.names: dict[str, dict[str, None]] = {}
        """Every name of a kind, in the order in which they were first seen."""
        self.batching = ProducedBatches()
        self.roles = ConnectionRoles(side.capture.index.client_id)
        self.left_out: Counter[str] = Counter()
        self.exchanges = 0
        self.unanswered = 0
        self._alike = Alike()
        self._known: dict[tuple[Said, Said | None, int, int | None], ClassifiedExchange] = {}
        for some in side.rows():
            self._take(some)
        self._finish()

    def key(self, number: int) -> MatchingKey:
        """What the exchange of row `number`, from 0, means here."""
        exchange = self.side.capture.exchange(number)
        row = exchange.facts
        assert exchange.request is not None
        subject = subject_of(row.api, exchange.request.body)
        error = first_error(exchange.response) if exchange.response is not None else 0
        return self._key(number, row.connection, row.api, subject, error)[0]

    def _key(self, number: int, connection: int, api: str, subject: Subject, error: int) -> tuple[MatchingKey, str]:
        by_hand = self._rows.get(number)
        if by_hand is not None:  # whatever it is about
            return MatchingKey(by_hand, api, (), ""), ""
        return matching_key(api, subject, error, self._connections.get(connection, 0))

    def _take(self, rows: Int64) -> None:
        """Add some rows."""
        capture = self.side.capture
        columns = (column.tolist() for column in capture.index_columns(rows))
        for number, index_columns, frames in zip(
            rows.tolist(), zip(*columns, strict=True), capture.index.raw_frames(rows), strict=True
        ):
            row = ProfiledRow(number, *index_columns)
            if row.kind == RowKind.EXCHANGE and row.request_size >= 0:
                self._exchange(row, *frames)
            else:
                kind = capture.exchange(number).facts.kind
                self.left_out["responses without a request" if kind == "exchange" else kind] += 1

    def _exchange(self, row: ProfiledRow, asked: bytes, answered: bytes) -> None:
        self.exchanges += 1
        request = self._said(row, asked, is_request=True)
        response = self._said(row, answered, is_request=False) if row.response_size >= 0 else None
        meant = self._meant(row, request, response)
        api, facts = meant.key.api, meant.facts
        facts.rows.append(row.number)
        facts.versions[row.version] += 1
        self._time(facts, row, meant.again)
        if meant.steps is not None:
            _add_step(meant.steps, meant.key, row.number)
        if api == "Produce":
            self._produced(row, asked, request.message)
        self.roles.take(row.connection, api, row.client_id)
        facts.see("request", row.number, request)
        if response is None:
            self.unanswered += not row.flags & Flag.NO_RESPONSE_EXPECTED
        elif not meant.again:
            facts.see("response", row.number, response)
        if len(facts.said) > MAX_PENDING:
            self._look_into(facts)

    def _meant(self, row: ProfiledRow, request: Said, response: Said | None) -> ClassifiedExchange:
        """What an exchange means: of those that say the same, on connections that are matched with the same one, it is
        worked out once."""
        matched = self._connections.get(row.connection, 0)
        alike = (request, response, matched, self._rows.get(row.number))
        known = self._known.get(alike)
        if known is not None:
            return known
        api = api_name(row.api_key)
        if api == "ApiVersions":
            self.roles.told(request.message.body)
        error = response.error if response is not None else 0
        key, again = self._key(row.number, row.connection, api, request.subject(api), error)
        for each in key.subject:
            if isinstance(each, EntityName):
                self._name(each)
        strand = workflow_of(key)
        steps = None if strand is None else self.strands.setdefault(strand, [])
        if len(self._known) >= MAX_CLASSIFIED:
            self._known.clear()
        found = self._known[alike] = ClassifiedExchange(key, again, self.facts.setdefault(key, KeyProfile()), steps)
        return found

    def _said(self, row: ProfiledRow, data: bytes, *, is_request: bool) -> Said:
        """What one of the two messages of a row says."""

        def look() -> ExchangeMessage:
            exchange = self.side.capture.exchange(row.number)
            message = exchange.request if is_request else exchange.response
            assert message is not None
            return message

        if len(data) != (row.request_size if is_request else row.response_size):
            return Said(look())  # not all of it was captured
        return self._alike.said(is_request, row.api_key, row.version, data, look)

    def _produced(self, row: ProfiledRow, asked: bytes, like: ExchangeMessage) -> None:
        """Add what a request produces; of one that is like it the message is there."""
        body = like.body if like.data == asked else read(asked, like.shape).body
        self.batching.take(body, like.context.topic_names, row.request_time_ns)

    def _time(self, facts: KeyProfile, row: ProfiledRow, again: str) -> None:
        asked = facts.last.get(row.connection)
        if asked is not None and len(facts.intervals) < MAX_INTERVALS:
            facts.intervals.append(row.request_time_ns - asked)
        facts.last[row.connection] = row.request_time_ns
        latency_ns = row.response_time_ns - row.request_time_ns if row.response_size >= 0 else 0
        if row.response_size >= 0 and len(facts.latencies) < MAX_INTERVALS:
            facts.latencies.append(latency_ns)
        if facts.failed and row.request_time_ns >= facts.failed and len(facts.retries.pauses) < MAX_INTERVALS:
            facts.retries.pauses.append(row.request_time_ns - facts.failed)
            facts.failed = 0
        if again:
            facts.retries.times[again] = facts.retries.times.get(again, 0) + 1
            facts.failed = row.request_time_ns + latency_ns

    def _finish(self) -> None:
        """Look into what waits, in the order of rows, so that names are seen in that order."""
        for facts in sorted(self.facts.values(), key=lambda facts: facts.rows[0]):
            self._look_into(facts)

    def _look_into(self, facts: KeyProfile) -> None:
        fields = facts.fields
        for said, seen in facts.said.items():
            for path, value in said.leaves:  # the innermost of all loops: written out, and not a function
                values = fields.get((seen.part, path))
                if values is None:
                    values = self._new(facts, (seen.part, path), seen.first)
                if value in values:
                    values[value] += seen.count
                    continue
                if isinstance(value, EntityName):
                    self._name(value)
                values[value if len(values) < MAX_VALUES else MORE_VALUES] += seen.count
        facts.said.clear()

    def _new(self, facts: KeyProfile, place: FieldPlace, first: int) -> Counter[ComparedValue]:
        """Where the values go of a field that was not seen before; without labels where there are too many of them."""
        for step in place[1]:
            if isinstance(step, ElementLabel) and isinstance(step.value, EntityName):
                self._name(step.value)
        if len(facts.fields) >= MAX_PATHS:
            place = (place[0], tuple(UNLABELLED if isinstance(step, ElementLabel) else step for step in place[1]))
        facts.first.setdefault(place, first)
        return facts.fields.setdefault(place, Counter())

    def _name(self, symbol: EntityName) -> None:
        known = self.names.setdefault(symbol.kind, {})
        if len(known) < MAX_NAMES:
            known.setdefault(symbol.text)


def _add_step(steps: WorkflowSteps, key: MatchingKey, number: int) -> None:
    if steps and steps[-1][0] == key:
        steps[-1][1].append(number)
    else:
        steps.append((key, [number]))
