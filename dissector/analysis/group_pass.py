"""The histories of all groups of a capture that has been read, in one pass with steps.

Exchanges about groups are numbered by the fields that matter (`FieldKeys`); one of all that are equal in them is
decoded. A heartbeat that changes nothing costs a few hundred nanoseconds.
"""

from collections import defaultdict
from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np

from dissector.capture_session import Capture
from dissector.core.arrays import Int64
from dissector.exchange.model import Exchange
from dissector.groups.group_event import GROUP_APIS, GroupEvent, GroupFields, group_fields, reads
from dissector.groups.history import GroupHistory
from dissector.protocol.codec.program import ColumnPlan
from dissector.protocol.schema.api_keys import ApiKey

ROWS_PER_STEP: Final = 1 << 16
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
        self._hosts: dict[int, str] = {}
        """By connection, its client's address."""
        self.histories: dict[str, GroupHistory] = {}
        """By group, in the order of their first exchanges."""
        self.left_out = 0
        """Exchanges of groups beyond `MAX_GROUPS`."""
        self._shared: dict[str, set[str]] = defaultdict(set)

    def steps(self) -> Iterator[GroupProgress]:
        """Read the capture; the histories are complete after the last step."""
        total = len(self._capture)
        found = [self._rows(start, min(start + ROWS_PER_STEP, total)) for start in range(0, total, ROWS_PER_STEP)]
        self._learn_hosts(np.concatenate([*found, np.zeros(0, np.int64)]))
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
            self._shared[self._capture.index.client_id(client_id) or ""].add(self._host(connection))

    def _host(self, connection: int) -> str:
        host = self._hosts.get(connection)
        if host is None:
            host = self._hosts[connection] = self._capture.connections.ends(connection)[0].rpartition(":")[0]
        return host

    def _add(self, rows: Int64) -> None:
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
                known = tuple(_fields_of(self._capture.exchange(row)))
                if pair >= 0:
                    self._fields[pair] = known
            for said in known:
                history = self._history(said.group)
                if history is None:
                    continue
                if api in _QUIET and not said.error and done_ns and history.beats(said, time_ns):
                    continue
                client_id = self._capture.index.client_id(client) or ""
                history.add(row, GroupEvent(api, client_id, self._host(connection), connection, time_ns, done_ns, said))

    def _history(self, group: str) -> GroupHistory | None:
        history = self.histories.get(group)
        if history is None:
            if len(self.histories) >= MAX_GROUPS:
                self.left_out += 1
                return None
            shared = frozenset(client for client, hosts in self._shared.items() if len(hosts) > 1)
            history = self.histories[group] = GroupHistory(group, shared=shared, closed=self._closed, hears_all=True)
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
    from dissector.protocol.schema.loader import api_named

    api = api_named(exchange.fields.api)
    return api.key if api is not None else -1


def _is_read(_api_key: int, column: ColumnPlan) -> bool:
    return column.path[:1] == ("body",) and reads(column.path)
