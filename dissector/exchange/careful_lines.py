"""The messages of JSON lines that the kernel does not write: those that are equal are written once, with holes for what
may differ, which are times, correlation ids, and the partitions of fetch sessions.

Invariant: a line with its holes filled is that of `to_json` (a property test), or none.
"""

from collections.abc import Callable
from typing import Final, NamedTuple

import numpy as np

from dissector.core.arrays import Int64
from dissector.core.finding import Finding
from dissector.core.json_text import dumps
from dissector.exchange.decoder import ExchangeDecoder
from dissector.exchange.equal_exchanges import EqualExchanges, SharedRow
from dissector.exchange.missing_responses import MissingResponses
from dissector.exchange.model import Exchange, ExchangeMessage
from dissector.exchange.to_json import message_object
from dissector.index.fetch_sessions import is_incremental
from dissector.index.indexer import Indexer
from dissector.protocol.schema.api_keys import ApiKey

MOST_BYTES: Final = 1 << 23
"""Of the lines that are in memory at once: a little of compressed records may be many lines."""


class CarefulLine(NamedTuple):
    """What a line has besides columns of the index."""

    request: bytes
    """Without its last brace."""
    response: bytes
    own_findings: list[Finding]
    """Of the row."""
    message_findings: list[Finding]


class _Messages(NamedTuple):
    """The messages of equal rows, their texts split where the holes are."""

    request: tuple[bytes, ...]
    response: tuple[bytes, ...]
    own_findings: list[Finding]
    message_findings: list[Finding]
    continues_session: bool


class CarefulLines:
    """Of one capture; `session` returns the member of a row's request that has the partitions of its session."""

    def __init__(
        self,
        indexer: Indexer,
        decoder: ExchangeDecoder,
        is_ended: Callable[[int], bool],
        session: Callable[[int], bytes],
    ) -> None:
        self._indexer = indexer
        self._equal = EqualExchanges(indexer, decoder, MissingResponses(indexer, is_ended), _messages)
        self._session = session

    def of(self, rows: Int64) -> list[CarefulLine | None]:
        """The lines of rows, ascending; None where a row has to be decoded."""
        there = [(at, found) for at, found in enumerate(self._equal.of(rows)) if found is not None]
        if not there:
            return [None] * len(rows)
        table, times, some = self._indexer.table, self._indexer.frames.time_ns, rows[[at for at, _ in there]]
        columns = (
            some, table.correlation_id.values[some], times.values[table.request.values[some]],
            times.values[np.maximum(table.response.values[some], 0)],
        )  # fmt: skip
        lines: list[CarefulLine | None] = [None] * len(rows)
        room = MOST_BYTES
        for (at, found), *facts in zip(there, *(column.tolist() for column in columns), strict=True):
            line = lines[at] = self._line(found, *facts)
            room -= len(line.request) + len(line.response)
            if room < 0:
                break
        return lines

    def _line(self, found: _Messages, row: int, correlation_id: int, asked_ns: int, answered_ns: int) -> CarefulLine:
        session = self._session(row) if found.continues_session else b""
        response = _filled(found.response, answered_ns, correlation_id) + b"}" if found.response else b"null"
        request = _filled(found.request, asked_ns, correlation_id) + session
        return CarefulLine(request, response, found.own_findings, found.message_findings)


def _messages(exchange: Exchange) -> SharedRow[_Messages]:
    request, response = exchange.request, exchange.response
    assert request is not None
    asked = _split(request, exchange.fields.correlation_id)
    answered = () if response is None else _split(response, exchange.fields.correlation_id)
    if asked is None or answered is None:
        return SharedRow(None, 0)
    own = len(exchange.row_findings)
    continues_session = exchange.api_key == ApiKey.FETCH and is_incremental(request.body)
    found = _Messages(asked, answered, exchange.findings[:own], exchange.findings[own:], continues_session)
    return SharedRow(found, sum(map(len, (*asked, *answered))))


def _split(message: ExchangeMessage, correlation_id: int | None) -> tuple[bytes, ...] | None:
    """The JSON of a message without its last brace: what is in front of its time, between that and its correlation id,
    and behind. None where its header could not be read."""
    if correlation_id is None or message.header.get("correlation_id") != correlation_id:
        return None
    texts = []
    rest = dumps(message_object(message))[:-1]
    for key, value in ("time_ns", message.time_ns), ("correlation_id", correlation_id):
        name = f'"{key}":'.encode()
        before, found, rest = rest.partition(b"%b%d" % (name, value))
        if not found or rest[:1] not in (b",", b"}"):
            return None
        texts.append(before + name)
    return *texts, rest


def _filled(texts: tuple[bytes, ...], time_ns: int, correlation_id: int) -> bytes:
    before, between, behind = texts
    return b"%b%d%b%d%b" % (before, time_ns, between, correlation_id, behind)
