"""Rows whose messages the kernel does not read: of those that are equal in all that decides what is shown, one is
decoded for all. Clients repeat their logins, forwarded requests and broken messages, too.

Invariants:
  * rows are equal if their messages have the same bytes but for correlation ids, are of one API and version, lack the
    same response, and as much is known of secrets on their connections;
  * None stands for a row that is no exchange, has no request, is long, or has a message in part; and for one that is
    new when there is no room for more.
"""

from collections.abc import Callable, Iterator
from typing import Final, Generic, NamedTuple, TypeVar

import numpy as np

from dissector.core.arrays import Bool, Int64
from dissector.exchange.decoder import ExchangeDecoder
from dissector.exchange.missing_responses import MissingResponses
from dissector.exchange.model import Exchange
from dissector.index.equal_frames import NO_NUMBER, equal_numbers
from dissector.index.exchange_table import NO_FRAME, RowKind
from dissector.index.indexer import Indexer
from dissector.protocol.message import PREFIX

_REQUEST_ID, _RESPONSE_ID = slice(PREFIX + 4, PREFIX + 8), slice(PREFIX, PREFIX + 4)
"""Where correlation ids are in frames."""
MOST_BYTES: Final = 1 << 23
"""Of messages that are known, and of what is shown of them."""
Facts = tuple[object, ...]
"""What decides what is shown of a row besides the bytes of its messages."""
Key = tuple[bytes, bytes, bytes, Facts]
"""A request without its correlation id, a response behind its, and the facts."""


Shown = TypeVar("Shown")


class SharedRow(NamedTuple, Generic[Shown]):
    """What is shown of equal rows, None where they differ for other reasons; and how many bytes it takes."""

    shown: Shown | None
    size: int


class EqualExchanges(Generic[Shown]):
    """Of one capture; `show` makes of an exchange what is shown of all that are equal to it."""

    def __init__(
        self,
        indexer: Indexer,
        decoder: ExchangeDecoder,
        missing: MissingResponses,
        show: Callable[[Exchange], SharedRow[Shown]],
    ) -> None:
        self._indexer = indexer
        self._decoder = decoder
        self._missing = missing
        self._show = show
        self._known: dict[Key, Shown | None] = {}
        self._room = MOST_BYTES
        self._generation = -1
        """Of the index when these were decoded: more names of topics may be known since."""

    def of(self, rows: Int64) -> list[Shown | None]:
        """What is shown of rows, ascending."""
        self._decoder.update_conversation_state()
        if not len(rows):
            return []
        first, which, facts = self._groups(rows)
        if self._generation != self._indexer.generation or self._room < 0:
            self._generation, self._room = self._indexer.generation, MOST_BYTES
            self._known.clear()
        keys = [self._key(row, known) for row, known in zip(rows[first].tolist(), facts, strict=True)]
        new = [at for at, key in enumerate(keys) if key not in self._known]
        for at, exchange in zip(new, self._decoder.exchanges(rows[first[new]]), strict=True):
            if self._room < 0:
                break
            found = self._show(exchange)
            self._known[keys[at]] = found.shown
            self._room -= found.size + sum(map(len, keys[at][:3]))
        shown = [*map(self._known.get, keys), None]
        return [shown[group] for group in which.tolist()]

    def _key(self, row: int, facts: Facts) -> Key:
        """All that decides what is shown of a row."""
        table, read = self._indexer.table, self._indexer.frames.read
        request, response = int(table.request.values[row]), int(table.response.values[row])
        sent = read(request)[0]
        answer = b"" if response == NO_FRAME else read(response)[0][_RESPONSE_ID.stop :]
        return sent[: _REQUEST_ID.start], sent[_REQUEST_ID.stop :], answer, facts

    def _groups(self, rows: Int64) -> tuple[Int64, Int64, list[Facts]]:
        """The place of the first row of each group, the group of each row, -1 for none, and the facts of each group."""
        table, frames = self._indexer.table, self._indexer.frames
        requests, responses = table.request.values[rows], table.response.values[rows]
        some = np.flatnonzero((table.kind.values[rows] == RowKind.EXCHANGE) & (requests != NO_FRAME))
        of_request = equal_numbers(frames, requests[some], _REQUEST_ID.stop, head=_REQUEST_ID.start)
        of_response = np.zeros(len(some), np.int64)
        answered = np.flatnonzero(responses[some] != NO_FRAME)
        of_response[answered] = equal_numbers(frames, responses[some[answered]], _RESPONSE_ID.stop)
        is_whole = (of_request != NO_NUMBER) & (of_response != NO_NUMBER)
        some, of_request, of_response = some[is_whole], of_request[is_whole], of_response[is_whole]
        facts = self._facts(rows[some])
        keys = zip(of_request.tolist(), of_response.tolist(), facts, strict=True)
        groups: dict[tuple[int, int, Facts], int] = {}
        first: list[int] = []
        which = np.full(len(rows), -1, np.int64)
        for at, key in zip(some.tolist(), keys, strict=True):
            group = groups.setdefault(key, len(first))
            if group == len(first):
                first.append(at)
            which[at] = group
        return np.array(first, np.int64), which, [known for _, _, known in groups]

    def _facts(self, rows: Int64) -> Iterator[Facts]:
        """What decides what is shown of a row besides its bytes."""
        table, context = self._indexer.table, self._indexer.conversation_state.context
        reasons = np.where(table.response.values[rows] == NO_FRAME, self._missing.of(rows), -1)
        is_alone = self._are_alone(table.response.values[rows])
        columns = (column.values[rows] for column in (table.api_key, table.version, table.connection, table.packet))
        lists = (column.tolist() for column in (*columns, reasons, is_alone))
        begins_with_versions = self._indexer.conversation_state.begins_with_versions
        for key, version, connection, packet, reason, alone in zip(*lists, strict=True):
            known = context(connection, packet)
            before = known if known.may_have_secrets else context(connection, packet - 1)
            yield (
                key, version, reason, known.mechanism, known.may_have_secrets, known.has_secrets, known.may_cut_secrets,
                before.mechanism, before.may_have_secrets, before.has_secrets, before.may_cut_secrets,
                alone and before.may_have_secrets and begins_with_versions(connection, packet),
            )  # fmt: skip

    def _are_alone(self, responses: Int64) -> Bool:
        """Which rows have a response that is alone in its segment, `(n,)`."""
        found = np.zeros(len(responses), np.bool_)
        there = np.flatnonzero(responses != NO_FRAME)
        found[there] = self._indexer.frames.is_alone.values[responses[there]]
        return found
