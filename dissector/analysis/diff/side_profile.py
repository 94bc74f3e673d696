"""Profile one side in one pass: its messages by matching key, their order, their connections.

Rows are read many at a time. Exchanges whose messages have equal contents (clients send them again and again) are a
group (`exchange_groups`): what follows from these is found once, and the rest is columns of rows.

Memory is bounded: at most `MAX_PENDING` different messages of a key wait to be read together, few contents are kept,
and so are the values, paths and times of a key (`key_profile`).
"""

from array import array
from collections import Counter
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import numpy as np

from dissector.analysis.diff.batching import ProducedBatches, ProduceOutcomes
from dissector.analysis.diff.captured_span import CapturedSpan, captured_span
from dissector.analysis.diff.compared_values import EntityName
from dissector.analysis.diff.connection_roles import ConnectionRoles, is_brokers_own
from dissector.analysis.diff.exchange_pairs import WorkflowSteps
from dissector.analysis.diff.key_profile import KeyProfile
from dissector.analysis.diff.matching_keys import (
    MatchingKey,
    Subject,
    Workflow,
    first_error,
    matching_key,
    retried_step,
    subject_of,
    workflow_of,
)
from dissector.analysis.diff.message_contents import (
    NO_RESPONSE,
    UNNUMBERED,
    ExchangeGroup,
    MessageContents,
    NumberedExchanges,
    content_numbers,
    group_exchanges,
)
from dissector.analysis.diff.side import DiffSide, RowSide
from dissector.core.arrays import Bool, Int64
from dissector.core.columns import ValueNumbers, is_in
from dissector.core.grouping import by_distinct
from dissector.core.grouping import groups as groups_of
from dissector.index.exchange_table import KIND_NAMES, RowKind
from dissector.index.index_columns import ENTRY, IndexColumns
from dissector.protocol.schema.api_groups import HARMLESS_IN_FLIGHT
from dissector.protocol.schema.api_keys import ApiKey
from dissector.protocol.schema.loader import api_name

MAX_PENDING: Final = 500
MAX_CLASSIFIED: Final = 4_096
"""Pairs of messages whose matching key is cached."""
MAX_NAMES: Final = 65_536
"""Names of one kind that are matched; further ones are compared as they are."""
BETWEEN_BROKERS: Final = "between brokers"


class ClassifiedExchange(NamedTuple):
    """An exchange's matching key, and where its profile goes."""

    key: MatchingKey
    retriable_error: str
    """The name of the error; empty for none."""
    profile: KeyProfile
    number: int
    """That of the key among the side's keys."""
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
        self.key_numbers = ValueNumbers[MatchingKey]()
        self.workflows: dict[Workflow, WorkflowSteps] = {}
        """With the keys of their steps by number."""
        self.names: dict[str, dict[str, None]] = {}
        """The names of each kind, in the order of their first appearance."""
        self.batches = ProducedBatches()
        self.roles = ConnectionRoles()
        self.skipped: Counter[str] = Counter()
        self.exchanges = 0
        self.unanswered = 0
        self._joins: dict[int, int] = {}
        """By connection."""
        self.capture_rows = len(side.capture)
        """All rows of its capture."""
        self.lost_connections: set[int] = set()
        """The connections that were closed before the response to a request came."""
        self.span: CapturedSpan
        """How much of its connections was captured; of a side whose exchanges the user chose one by one, all."""
        self._times_ns: list[int] = []
        """Of the first request, and of the last one."""
        self._requests = MessageContents(side.capture, is_request=True)
        self._responses = MessageContents(side.capture, is_request=False)
        self._classified: dict[tuple[int, int, int], ClassifiedExchange] = {}
        """By the numbers of the contents and of the manual match."""
        side.capture.connections.learn()
        left_out = array("q")
        for batch in side.rows():
            self._add_rows(batch, left_out)
        if self.exchanges:
            self.skipped.update({BETWEEN_BROKERS: len(left_out)} if left_out else {})
        else:  # nothing else is there: that is what the user compares
            self._add_rows(np.asarray(left_out, np.int64), None)
        self._finish()

    def __getstate__(self) -> dict[str, Any]:
        """Leave the side behind: its capture stays in the process that has read it."""
        return {name: value for name, value in vars(self).items() if name != "side"}

    def of(self, side: DiffSide) -> "SideProfile":
        """Return the profile that another process has made of a side, with the side as it is asked from here."""
        self.side = side
        return self

    @property
    def clients(self) -> tuple[str, ...]:
        """Its clients, as the user calls them or as they call themselves."""
        return (self.side.client,) if self.side.client else self.roles.clients

    @property
    def labeled_clients(self) -> tuple[str, ...]:
        """The same, with client ids marked as such."""
        return (self.side.client,) if self.side.client else self.roles.labeled_clients

    @property
    def duration_ns(self) -> int:
        """From the first request to the last one."""
        return self.times_ns[1] - self.times_ns[0]

    @property
    def times_ns(self) -> tuple[int, int]:
        """The times of the first request and of the last one."""
        return (self._times_ns[0], self._times_ns[1]) if self._times_ns else (0, 0)

    @property
    def versions(self) -> dict[str, Counter[int]]:
        """The versions of each API, in the order of matching keys."""
        found: dict[str, Counter[int]] = {}
        for key, profile in self.keys.items():
            found.setdefault(key.api, Counter()).update(profile.versions)
        return found

    def key(self, number: int) -> MatchingKey:
        """Return the matching key of the exchange in row `number`, from 0."""
        exchange = self.side.capture.exchange_for_now(number)
        row = exchange.fields
        assert exchange.request is not None
        asked = row.api, exchange.request.layout.body_version, exchange.request.body
        error = first_error(exchange.response) if exchange.response is not None else 0
        return self._key(number, row.connection, row.api, subject_of(*asked), error, retried_step(*asked))[0]

    def _key(
        self, number: int, connection: int, api: str, subject: Subject, error: int, retried: str
    ) -> tuple[MatchingKey, str]:
        manual = self._rows.get(number)
        if manual is not None:  # whatever its subject is
            return MatchingKey(manual, api, (), ""), ""
        return matching_key(api, subject, error, self._connections.get(connection, 0), retried)

    def _add_rows(self, rows: Int64, left_out: "array[int] | None") -> None:
        """Add rows, but those between brokers to `left_out`, if there is one."""
        found = self.side.capture.index.numbers(rows)
        has_request = found.is_exchange & (found.request_size >= 0)
        self._skip(rows[~has_request], found.kind[~has_request])
        if left_out is not None:
            is_left_out = has_request & self._are_between_brokers(found.client_id)
            left_out.extend(rows[is_left_out].tolist())
            has_request &= ~is_left_out
        if has_request.any():
            self._add_exchanges(rows[has_request], found.where(has_request))

    def _skip(self, rows: Int64, kinds: Int64) -> None:
        """Count rows that are not compared, by their kinds, for which only entries of Kafka's own files are read."""
        for kind, count in zip(*np.unique(kinds[kinds != ENTRY], return_counts=True), strict=True):
            words = "responses without a request" if kind == RowKind.EXCHANGE else KIND_NAMES[kind]
            self.skipped[words] += int(count)
        for row in rows[kinds == ENTRY].tolist():
            self.skipped[self.side.capture.exchange_for_now(row).fields.kind] += 1

    def _are_between_brokers(self, client_ids: Int64) -> Bool:
        """Return which client ids, given by their numbers, are those of brokers."""
        client_id = self.side.capture.index.client_id
        return by_distinct(client_ids, lambda number: is_brokers_own(client_id(number)), np.bool_)

    def _add_exchanges(self, rows: Int64, found: IndexColumns) -> None:
        """Add exchanges: their rows and the columns of these."""
        self.exchanges += len(rows)
        requests, responses = content_numbers(self._requests, self._responses, rows)
        responses[~found.has_latency] = NO_RESPONSE
        matched = np.zeros(len(rows), np.int64)
        for connection, number in self._connections.items():
            matched[found.connection == connection] = number
        exchanges = NumberedExchanges(rows, found, requests, responses, matched)
        groups, of_row = group_exchanges(exchanges, np.isin(rows, list(self._rows)))
        self._add_columns(exchanges, of_row, [self._add_group(group) for group in groups])

    def _add_group(self, group: ExchangeGroup) -> ClassifiedExchange:
        """Add the messages of a group of exchanges."""
        classified = self._classify(group)
        profile = classified.profile
        profile.versions[group.version] += group.size
        profile.add_messages(self._requests, group.request, group.row, group.size)
        if group.response != NO_RESPONSE and not classified.retriable_error:
            profile.add_messages(self._responses, group.response, group.row, group.size)
        if len(profile.pending) > MAX_PENDING:
            profile.read_pending(self._add_name)
        return classified

    def _classify(self, group: ExchangeGroup) -> ClassifiedExchange:
        """Find the matching key of a group. Groups of equal content on connections of one manual match are classified
        once."""
        cache_key = (group.request, group.response, group.matched)
        known = self._classified.get(cache_key)
        if known is not None and group.row not in self._rows:
            return known
        if group.api_key == ApiKey.API_VERSIONS:
            message = self.side.capture.exchange_for_now(group.row).request
            assert message is not None
            self.roles.add_software(message.body)
        api, request = api_name(group.api_key), self._requests.of(group.request, group.row)
        error = 0 if group.response == NO_RESPONSE else self._responses.of(group.response, group.row).error
        key, retriable_error = self._key(group.row, group.connection, api, request.subject, error, request.retried)
        for each in key.subject:
            if isinstance(each, EntityName):
                self._add_name(each)
        workflow = workflow_of(key)
        steps = None if workflow is None else self.workflows.setdefault(workflow, WorkflowSteps())
        profile, number = self.keys.setdefault(key, KeyProfile()), self.key_numbers.of(key)
        classified = ClassifiedExchange(key, retriable_error, profile, number, steps)
        if UNNUMBERED not in cache_key[:2] and group.row not in self._rows:
            if len(self._classified) >= MAX_CLASSIFIED:
                self._classified.clear()
            self._classified[cache_key] = classified
        return classified

    def _add_columns(self, exchanges: NumberedExchanges, group: Int64, classified: list[ClassifiedExchange]) -> None:
        """Add what does not follow from contents: rows, their order, times, batches, connections. `classified` are the
        groups, and `group` has the number of each exchange's."""
        rows, found = exchanges.rows, exchanges.found
        numbers = np.array([each.number for each in classified], np.int64)[group]
        errors = np.array([each.retriable_error for each in classified], np.object_)[group]
        joins = self._count_joins(found)
        for places in groups_of(numbers):
            profile = classified[group[places[0]]].profile
            profile.add_rows(rows[places], found.where(places), errors[places], joins[places])
        unanswered = np.flatnonzero(found.expects_response & ~found.has_latency)
        for at in unanswered[self._are_lost(found, unanswered)].tolist():
            classified[group[at]].profile.lost.append(int(rows[at]))
        workflows = ValueNumbers[WorkflowSteps | None]()
        of_workflow = np.array([workflows.of(each.steps) for each in classified], np.int64)[group]
        for places in groups_of(of_workflow):
            steps = workflows.values[of_workflow[places[0]]]
            if steps is not None:
                steps.add(rows[places], numbers[places])
        is_produce = found.api_key == ApiKey.PRODUCE
        may_refuse = np.array([bool(each.retriable_error or each.key.step or each.key.matched) for each in classified])
        outcomes = ProduceOutcomes(~found.expects_response | found.has_latency, may_refuse.astype(np.bool_)[group])
        self.batches.add_requests(
            self.side.capture, rows[is_produce], found.where(is_produce), outcomes.where(np.flatnonzero(is_produce))
        )
        client_id = self.side.capture.index.client_id
        self.roles.add_exchanges(found.connection, found.api_key, found.client_id, client_id)
        self.unanswered += len(unanswered)
        self._times_ns += [int(found.request_time_ns.min()), int(found.request_time_ns.max())]
        self._times_ns = [min(self._times_ns), max(self._times_ns)]

    def _count_joins(self, found: IndexColumns) -> Int64:
        """Return how often a member has joined its group so far on the connection of each exchange: a heartbeat or a
        commit of another generation does not go on with the rhythm of the last one."""
        is_join = found.api_key == ApiKey.JOIN_GROUP
        joins = np.zeros(len(is_join), np.int64)
        if not self._joins and not is_join.any():
            return joins
        order = np.argsort(found.connection, kind="stable")
        counted = np.cumsum(is_join[order])
        firsts = np.flatnonzero(np.diff(found.connection[order], prepend=-1))
        lasts = np.append(firsts[1:], len(order)) - 1
        earlier = counted[firsts] - is_join[order][firsts]
        connections = found.connection[order][firsts].tolist()
        before = np.array([self._joins.get(each, 0) for each in connections], np.int64) - earlier
        joins[order] = counted + np.repeat(before, lasts - firsts + 1)
        self._joins.update(zip(connections, joins[order][lasts].tolist(), strict=True))
        return joins

    def _are_lost(self, found: IndexColumns, places: Int64) -> Bool:
        """Return which exchanges without a response have lost it: their connection was closed, and not by a client that
        stopped with requests in flight that do no harm."""
        connections, at = np.unique(found.connection[places], return_inverse=True)
        closed = [self.side.capture.connections.closed(each) for each in connections.tolist()]
        is_closed, by_client = np.array([(each is not None, each is not None and each[1]) for each in closed],
                                        np.bool_).reshape(-1, 2).T  # fmt: skip
        is_harmless = is_in(found.api_key[places], np.array(list(HARMLESS_IN_FLIGHT), np.int64))
        lost: Bool = is_closed[at] & ~(by_client[at] & is_harmless)
        return lost

    def _finish(self) -> None:
        """Read the pending messages in the order of rows, so that names are numbered in that order. Forget what only
        further rows would need: it is as much as the profile itself."""
        self.side.capture.pipeline.store.release_pages()
        for profile in sorted(self.keys.values(), key=lambda profile: profile.rows[0]):
            profile.finish(self._add_name)
        self.batches.finish()
        del self._requests, self._responses, self._classified, self._joins
        connections = () if isinstance(self.side, RowSide) else self.roles.numbers
        self.span = captured_span(self.side.capture, connections, self.duration_ns)
        lost = np.array([row for profile in self.keys.values() for row in profile.lost], np.int64)
        self.lost_connections = set(self.side.numbers(lost).connection.tolist())

    def _add_name(self, name: EntityName) -> None:
        known = self.names.setdefault(name.kind, {})
        if len(known) < MAX_NAMES:
            known.setdefault(name.text)
