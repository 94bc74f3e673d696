"""The histories of all groups of a capture that has been read, in one pass with steps.

Exchanges about groups are numbered by the fields that matter (`FieldKeys`); one of all that are equal in them is
decoded. A heartbeat that changes nothing costs a microsecond or two, and twice that with more than one
coordinator: whether these have groups of one name is found first.
"""

from collections import defaultdict
from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np

from dissector.capture_session import Capture
from dissector.core.arrays import Int64
from dissector.exchange.model import Exchange
from dissector.groups.coordinators import Coordinators
from dissector.groups.group_event import GroupEvent, GroupFields, group_fields, reads
from dissector.groups.group_messages import GROUP_APIS
from dissector.groups.history import GroupHistory
from dissector.protocol.codec.program import ColumnPlan
from dissector.protocol.schema.api_keys import ApiKey
from dissector.protocol.schema.loader import api_named

ROWS_PER_STEP: Final = 1 << 14
MAX_GROUPS: Final = 2_000
"""Groups of a capture that have a history; of further ones nothing is kept."""
_KEYS: Final = np.array(sorted(GROUP_APIS), np.int64)
_QUIET: Final = frozenset((ApiKey.HEARTBEAT,))


class GroupProgress(NamedTuple):
    """Rows read of all that there are."""

    done: int
    total: int


class GroupPass:
    """Builds the histories of a capture's groups."""

    def __init__(self, capture: Capture) -> None:
        self._capture = capture
        self._requests = capture.messages.field_keys(_is_read, is_request=True)
        self._responses = capture.messages.field_keys(_is_read, is_request=False)
        self._fields: dict[int, tuple[GroupFields, ...]] = {}
        """By numbers of request and response."""
        self._known_ends: dict[int, tuple[str, str]] = {}
        """By connection."""
        self.histories: dict[str, GroupHistory] = {}
        """By name, in the order of their first exchanges: one for each group, or for each coordinator of those that
        are `divided`."""
        self.divided: frozenset[str] = frozenset()
        """Names that more than one group has: their coordinators disagree. Known once the first step is done."""
        self.left_out = 0
        """Exchanges of groups beyond `MAX_GROUPS`."""
        self._shared: dict[str, set[str]] = defaultdict(set)

    def steps(self) -> Iterator[GroupProgress]:
        """Read the capture; the histories are complete after the last step."""
        total = len(self._capture)
        found = [self._rows(start, min(start + ROWS_PER_STEP, total)) for start in range(0, total, ROWS_PER_STEP)]
        everything = np.concatenate([*found, np.zeros(0, np.int64)])
        self._learn_hosts(everything)
        self._learn_divided(everything)
        for at, rows in enumerate(found):
            self._add(rows)
            yield GroupProgress(min((at + 1) * ROWS_PER_STEP, total), total)

    def of_rows(self, rows: Int64) -> set[str]:
        """Return the groups that exchanges are about."""
        about: set[str] = set()
        found = self._capture.index.numbers(rows)
        for exchange in self._capture.at(rows[found.is_exchange & np.isin(found.api_key, _KEYS)]):
            about.update(each.group for each in _fields_of(exchange))
        return about

    def _rows(self, start: int, stop: int) -> Int64:
        rows = np.arange(start, stop)
        found = self._capture.index.numbers(rows)
        wanted: Int64 = rows[found.is_exchange & (found.request_size >= 0) & np.isin(found.api_key, _KEYS)]
        return wanted

    def _learn_hosts(self, rows: Int64) -> None:
        """Which client ids are those of several hosts: their names need the host."""
        if not len(rows):
            return
        found = self._capture.index.numbers(rows)
        pairs = np.unique(found.client_id << 32 | found.connection)
        for pair in pairs.tolist():
            client_id, connection = pair >> 32, pair & 0xFFFFFFFF
            self._shared[self._capture.index.client_id(client_id) or ""].add(self._ends(connection)[0])

    def _ends(self, connection: int) -> tuple[str, str]:
        """The client's address without its port, and the server's with it."""
        ends = self._known_ends.get(connection)
        if ends is None:
            client, server = self._capture.connections.ends(connection)
            ends = self._known_ends[connection] = client.rpartition(":")[0], server
        return ends

    def _learn_divided(self, rows: Int64) -> None:
        """Which names more than one group has: none, with one coordinator."""
        found = self._capture.index.numbers(rows)
        connections = np.unique(found.connection[found.api_key != ApiKey.FIND_COORDINATOR]).tolist()
        if len({self._ends(each)[1] for each in connections}) < 2:
            return
        known: dict[str, Coordinators] = defaultdict(Coordinators)
        for start in range(0, len(rows), ROWS_PER_STEP):
            for _, event in self._events(rows[start : start + ROWS_PER_STEP]):
                if event.said.group in known or len(known) < MAX_GROUPS:
                    known[event.said.group].add(event)
        self.divided = frozenset(group for group, each in known.items() if each.disagree)

    def _add(self, rows: Int64) -> None:
        for row, event in self._events(rows):
            history = self._history(event)
            if history is None:
                continue
            said = event.said
            if event.api in _QUIET and not said.error and event.done_ns and history.beats(said, event.time_ns):
                continue
            history.add(row, event)

    def _events(self, rows: Int64) -> Iterator[tuple[int, GroupEvent]]:
        """Yield what exchanges say, with their rows."""
        if not len(rows):
            return
        found = self._capture.index.numbers(rows)
        asked, answered = self._requests(rows, None), self._responses(rows, None) + 1
        answered[found.response_size < 0] = 0
        pairs = np.where((asked > 0) & (answered != 1), asked << 32 | answered, -1)
        columns = (
            rows, pairs, found.api_key, found.client_id, found.connection, found.request_time_ns, found.response_time_ns
        )  # fmt: skip
        for row, pair, api, client, connection, time_ns, done_ns in zip(
            *(column.tolist() for column in columns), strict=True
        ):
            known = self._fields.get(pair)
            if known is None:
                known = tuple(_fields_of(self._capture.exchange_for_now(row)))
                if pair >= 0:
                    self._fields[pair] = known
            client_id, (host, server) = self._capture.index.client_id(client) or "", self._ends(connection)
            for said in known:
                yield row, GroupEvent(api, client_id, host, connection, time_ns, done_ns, said, server)

    def _history(self, event: GroupEvent) -> GroupHistory | None:
        """Return the history that an event belongs to; None if it belongs to none: a coordinator may be looked up at
        any broker."""
        group, server = event.said.group, ""
        if group in self.divided:
            if event.api == ApiKey.FIND_COORDINATOR:
                return None
            server = event.server
        name = f"{group} at {server}" if server else group
        history = self.histories.get(name)
        if history is None:
            if len(self.histories) >= MAX_GROUPS:
                self.left_out += 1
                return None
            shared = frozenset(client for client, hosts in self._shared.items() if len(hosts) > 1)
            history = GroupHistory(group, server, shared=shared, closed=self._closed, hears_all=True)
            self.histories[name] = history
        return history

    def _closed(self, connection: int) -> int:
        closed = self._capture.connections.closed(connection) if connection >= 0 else None
        return closed[0] if closed is not None else 0


def _fields_of(exchange: Exchange) -> Iterator[GroupFields]:
    if exchange.request is None:
        return
    layout = exchange.request.layout
    response = exchange.response.body if exchange.response is not None else {}
    if layout.body_version is not None:
        yield from group_fields(_api(exchange), layout.body_version, exchange.request.body, response)


def _api(exchange: Exchange) -> int:
    api = api_named(exchange.fields.api)
    return api.key if api is not None else -1


def _is_read(_api_key: int, column: ColumnPlan) -> bool:
    return column.path[:1] == ("body",) and reads(column.path)
