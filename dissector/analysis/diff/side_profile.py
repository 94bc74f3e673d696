"""Profile one side in one pass: its messages by matching key, their order, their connections.

Messages with equal content (clients send them again and again) are read once (`message_templates`); few are kept.
Memory is bounded: at most `MAX_PENDING` different messages of a key wait to be read together, a field has at most
`MAX_VALUES` different values, a message at most `MAX_PATHS` paths with labels.
"""

from array import array
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np

from dissector.analysis.diff.batching import ProducedBatches
from dissector.analysis.diff.compared_values import ComparedValue, EntityName, Placeholder
from dissector.analysis.diff.connection_roles import ConnectionRoles, is_brokers_own
from dissector.analysis.diff.matching_keys import (
    MatchingKey,
    Subject,
    Workflow,
    first_error,
    matching_key,
    subject_of,
    workflow_of,
)
from dissector.analysis.diff.message_leaves import UNLABELED, ElementLabel, LeafPath
from dissector.analysis.diff.message_templates import MessageContent, MessageTemplates
from dissector.analysis.diff.side import DiffSide
from dissector.core.arrays import Int64
from dissector.exchange.model import ExchangeMessage
from dissector.index.exchange_table import Flag, RowKind
from dissector.protocol.message import read
from dissector.protocol.schema.loader import api_name

MAX_PENDING: Final = 500
MAX_VALUES: Final = 64
MAX_PATHS: Final = 5_000
MAX_CLASSIFIED: Final = 4_096
"""Pairs of messages whose matching key is cached."""
MAX_NAMES: Final = 65_536
"""Names of one kind that are matched; further ones are compared as they are."""
MAX_INTERVALS: Final = 10_000
FieldPlace = tuple[str, LeafPath]
"""``request`` or ``response``, and the path in its body."""
BETWEEN_BROKERS: Final = "between brokers"
MORE_VALUES: Final = Placeholder("more values")


@dataclass(slots=True)
class Retries:
    """Exchanges whose response has a retriable error."""

    counts: dict[str, int] = field(default_factory=dict)
    """How many, by the error's name."""
    backoffs_ns: "array[int]" = field(default_factory=lambda: array("q"))
    """From such a response to the next request."""


@dataclass(slots=True)
class PendingMessage:
    """A message that waits to be read: its part, its first row, how often it was sent."""

    part: str
    first: int
    count: int


@dataclass(slots=True)
class KeyProfile:
    """All exchanges of one side with one matching key."""

    rows: "array[int]" = field(default_factory=lambda: array("q"))
    versions: Counter[int] = field(default_factory=Counter)
    fields: dict[FieldPlace, Counter[ComparedValue]] = field(default_factory=dict)
    first_rows: dict[FieldPlace, int] = field(default_factory=dict)
    """The first row that has a field."""
    intervals_ns: "array[int]" = field(default_factory=lambda: array("q"))
    """From one request to the next on the same connection."""
    latencies_ns: "array[int]" = field(default_factory=lambda: array("q"))
    retries: Retries = field(default_factory=Retries)
    last_request_ns: dict[int, int] = field(default_factory=dict)
    """By connection."""
    failed_ns: int = 0
    """The time of a retriable error that no request has followed yet; 0 for none."""
    pending: dict[MessageContent, PendingMessage] = field(default_factory=dict)

    @property
    def retry_count(self) -> int:
        return sum(self.retries.counts.values())

    def add_message(self, part: str, row: int, content: MessageContent) -> None:
        """Add a message to those that wait to be read."""
        message = self.pending.get(content)
        if message is None:
            self.pending[content] = PendingMessage(part, row, 1)
        else:
            message.count += 1


class ProfiledRow(NamedTuple):
    """A row number, from 0, and the fields of `IndexColumns` in their order."""

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
"""The steps of a workflow in order, each with its rows: consecutive exchanges of one key are one step."""


class ClassifiedExchange(NamedTuple):
    """An exchange's matching key, and where its profile goes."""

    key: MatchingKey
    retriable_error: str
    """The name of the error; empty for none."""
    profile: KeyProfile
    steps: WorkflowSteps | None
    """The steps of its workflow; None for an API that clients call repeatedly."""


class SideProfile:
    """The exchanges of one side by matching key, its workflows, names, batches and connections."""

    def __init__(self, side: DiffSide, connections: Mapping[int, int], rows: Mapping[int, int]) -> None:
        """`connections` and `rows` are the numbers of the user's manual matches, by connection and by row."""
        self.side = side
        self._connections = connections
        self._rows = rows
        self.keys: dict[MatchingKey, KeyProfile] = {}
        self.workflows: dict[Workflow, WorkflowSteps] = {}
        self.names: dict[str, dict[str, None]] = {}
        """The names of each kind, in the order of their first appearance."""
        self.batches = ProducedBatches()
        self.roles = ConnectionRoles(side.capture.index.client_id)
        self.skipped: Counter[str] = Counter()
        self.exchanges = 0
        self.unanswered = 0
        self._times_ns: list[int] = []
        """Of the first request, and of the last one."""
        self._contents = MessageTemplates()
        self._classified: dict[tuple[MessageContent, MessageContent | None, int, int | None], ClassifiedExchange] = {}
        self._brokers_own: dict[int, bool] = {}
        """By client id: whether a broker has it."""
        left_out = array("q")
        for batch in side.rows():
            self._add_rows(batch, left_out)
        if self.exchanges:
            self.skipped.update({BETWEEN_BROKERS: len(left_out)} if left_out else {})
        else:  # nothing else is there: that is what the user compares
            self._add_rows(np.asarray(left_out, np.int64), None)
        self._finish()

    @property
    def duration_ns(self) -> int:
        """From the first request to the last one."""
        return self._times_ns[1] - self._times_ns[0] if self._times_ns else 0

    def key(self, number: int) -> MatchingKey:
        """Return the matching key of the exchange in row `number`, from 0."""
        exchange = self.side.capture.exchange(number)
        row = exchange.fields
        assert exchange.request is not None
        subject = subject_of(row.api, exchange.request.body)
        error = first_error(exchange.response) if exchange.response is not None else 0
        return self._key(number, row.connection, row.api, subject, error)[0]

    def _key(self, number: int, connection: int, api: str, subject: Subject, error: int) -> tuple[MatchingKey, str]:
        manual = self._rows.get(number)
        if manual is not None:  # whatever its subject is
            return MatchingKey(manual, api, (), ""), ""
        return matching_key(api, subject, error, self._connections.get(connection, 0))

    def _add_rows(self, rows: Int64, left_out: "array[int] | None") -> None:
        """Add rows, but those between brokers to `left_out`, if there is one."""
        capture = self.side.capture
        columns = (column.tolist() for column in capture.index_columns(rows))
        for number, index_columns, frames in zip(
            rows.tolist(), zip(*columns, strict=True), capture.index.raw_frames(rows), strict=True
        ):
            row = ProfiledRow(number, *index_columns)
            if row.kind == RowKind.EXCHANGE and row.request_size >= 0:
                if left_out is not None and self._is_between_brokers(row.client_id):
                    left_out.append(number)
                else:
                    self._add_exchange(row, *frames)
            else:
                kind = capture.exchange(number).fields.kind
                self.skipped["responses without a request" if kind == "exchange" else kind] += 1

    def _is_between_brokers(self, client_id: int) -> bool:
        known = self._brokers_own.get(client_id)
        if known is None:
            known = is_brokers_own(self.side.capture.index.client_id(client_id))
            self._brokers_own[client_id] = known
        return known

    def _add_exchange(self, row: ProfiledRow, request_frame: bytes, response_frame: bytes) -> None:
        self.exchanges += 1
        request = self._content(row, request_frame, is_request=True)
        response = self._content(row, response_frame, is_request=False) if row.response_size >= 0 else None
        classified = self._classify(row, request, response)
        api, profile = classified.key.api, classified.profile
        profile.rows.append(row.number)
        profile.versions[row.version] += 1
        self._add_times(profile, row, classified.retriable_error)
        if classified.steps is not None:
            _add_step(classified.steps, classified.key, row.number)
        if api == "Produce":
            self._add_batches(row, request_frame, request.message)
        self.roles.add_exchange(row.connection, api, row.client_id)
        profile.add_message("request", row.number, request)
        if response is None:
            self.unanswered += not row.flags & Flag.NO_RESPONSE_EXPECTED
        elif not classified.retriable_error:
            profile.add_message("response", row.number, response)
        if len(profile.pending) > MAX_PENDING:
            self._read_pending(profile)

    def _classify(
        self, row: ProfiledRow, request: MessageContent, response: MessageContent | None
    ) -> ClassifiedExchange:
        """Find the matching key of an exchange. Messages of equal content on connections of one manual match are
        classified once."""
        matched = self._connections.get(row.connection, 0)
        cache_key = (request, response, matched, self._rows.get(row.number))
        known = self._classified.get(cache_key)
        if known is not None:
            return known
        api = api_name(row.api_key)
        if api == "ApiVersions":
            self.roles.add_software(request.message.body)
        error = response.error if response is not None else 0
        key, retriable_error = self._key(row.number, row.connection, api, request.subject(api), error)
        for each in key.subject:
            if isinstance(each, EntityName):
                self._add_name(each)
        workflow = workflow_of(key)
        steps = None if workflow is None else self.workflows.setdefault(workflow, [])
        if len(self._classified) >= MAX_CLASSIFIED:
            self._classified.clear()
        classified = ClassifiedExchange(key, retriable_error, self.keys.setdefault(key, KeyProfile()), steps)
        self._classified[cache_key] = classified
        return classified

    def _content(self, row: ProfiledRow, data: bytes, *, is_request: bool) -> MessageContent:
        """Return the content of one of a row's two messages."""

        def decode() -> ExchangeMessage:
            exchange = self.side.capture.exchange(row.number)
            message = exchange.request if is_request else exchange.response
            assert message is not None
            return message

        if len(data) != (row.request_size if is_request else row.response_size):
            return MessageContent(decode())  # not captured completely
        return self._contents.content(is_request, row.api_key, row.version, data, decode)

    def _add_batches(self, row: ProfiledRow, frame: bytes, message: ExchangeMessage) -> None:
        """Add the batches of a Produce request; `message` has equal content, but maybe other records."""
        body = message.body if message.data == frame else read(frame, message.layout).body
        self.batches.add_request(body, message.context.topic_names, row.request_time_ns)

    def _add_times(self, profile: KeyProfile, row: ProfiledRow, retriable_error: str) -> None:
        first, last = self._times_ns or (row.request_time_ns, row.request_time_ns)
        self._times_ns = [min(first, row.request_time_ns), max(last, row.request_time_ns)]
        last_ns = profile.last_request_ns.get(row.connection)
        if last_ns is not None and len(profile.intervals_ns) < MAX_INTERVALS:
            profile.intervals_ns.append(row.request_time_ns - last_ns)
        profile.last_request_ns[row.connection] = row.request_time_ns
        latency_ns = row.response_time_ns - row.request_time_ns if row.response_size >= 0 else 0
        if row.response_size >= 0 and len(profile.latencies_ns) < MAX_INTERVALS:
            profile.latencies_ns.append(latency_ns)
        retries = profile.retries
        if profile.failed_ns and row.request_time_ns >= profile.failed_ns and len(retries.backoffs_ns) < MAX_INTERVALS:
            retries.backoffs_ns.append(row.request_time_ns - profile.failed_ns)
            profile.failed_ns = 0
        if retriable_error:
            retries.counts[retriable_error] = retries.counts.get(retriable_error, 0) + 1
            profile.failed_ns = row.request_time_ns + latency_ns

    def _finish(self) -> None:
        """Read the pending messages in the order of rows, so that names are numbered in that order."""
        for profile in sorted(self.keys.values(), key=lambda profile: profile.rows[0]):
            self._read_pending(profile)

    def _read_pending(self, profile: KeyProfile) -> None:
        fields = profile.fields
        for content, message in profile.pending.items():
            for path, value in content.leaves:  # the innermost loop: inlined, not a function
                values = fields.get((message.part, path))
                if values is None:
                    values = self._add_field(profile, (message.part, path), message.first)
                if value in values:
                    values[value] += message.count
                    continue
                if isinstance(value, EntityName):
                    self._add_name(value)
                values[value if len(values) < MAX_VALUES else MORE_VALUES] += message.count
        profile.pending.clear()

    def _add_field(self, profile: KeyProfile, place: FieldPlace, first_row: int) -> Counter[ComparedValue]:
        """Add a field; without labels if the key has too many of them."""
        for step in place[1]:
            if isinstance(step, ElementLabel) and isinstance(step.value, EntityName):
                self._add_name(step.value)
        if len(profile.fields) >= MAX_PATHS:
            place = (place[0], tuple(UNLABELED if isinstance(step, ElementLabel) else step for step in place[1]))
        profile.first_rows.setdefault(place, first_row)
        return profile.fields.setdefault(place, Counter())

    def _add_name(self, name: EntityName) -> None:
        known = self.names.setdefault(name.kind, {})
        if len(known) < MAX_NAMES:
            known.setdefault(name.text)


def _add_step(steps: WorkflowSteps, key: MatchingKey, number: int) -> None:
    if steps and steps[-1][0] == key:
        steps[-1][1].append(number)
    else:
        steps.append((key, [number]))
