"""Frames to rows, one batch after the other: what is paired, what waits, what nothing changes any more."""

from collections.abc import Iterable
from pathlib import Path
from typing import cast

import numpy as np
import pytest

from dissector.capture_session import Capture
from dissector.core.arrays import Int64
from dissector.core.batches import NOWHERE, FrameBatch, FrameKind
from dissector.core.limits import DEFAULT
from dissector.core.store import Store
from dissector.detection.connections import Connections
from dissector.index import exchange_table
from dissector.index.exchange_table import NO_FRAME, ExchangeTable, RowKind, RowsByConnection
from dissector.index.index_columns import index_columns
from dissector.index.indexer import Indexer
from dissector.protocol.schema.api_keys import ApiKey
from tests.cases import cases
from tests.traffic import FIN, RST, Turn, capture_of, conversation, request, response

Sent = tuple[int, int, bytes | int | tuple[bytes, int]]
"""A direction, a packet, and a frame, so many bytes that are missing, or a frame of which so many are."""
HANDSHAKE = request(1, api_key=ApiKey.SASL_HANDSHAKE, version=0, body=b"\0\5PLAIN")


class Ends:
    """What the indexer asks of connections: flags of either side, and those of which more may come."""

    def __init__(self) -> None:
        self.flags: dict[int, tuple[int, int]] = {}
        self.opened: set[int] = set()
        self.seen_whole: set[int] = set()

    def ended(self, connection: int) -> tuple[int, int]:
        return self.flags.get(connection, (0, 0))

    def closed(self, connection: int) -> tuple[int, int]:
        return (100, 0)

    def open(self) -> Int64:
        return np.array(sorted(self.opened), np.int64)

    def syn_sides(self, connections: Int64) -> Int64:
        return np.where(np.isin(connections, sorted(self.seen_whole)), 0, -1)

    def first_packets(self, connections: Int64) -> Int64:
        return np.full(len(connections), -1)

    def ports(self, connection: int) -> tuple[int, int]:
        return (40_000 + connection, 9092)

    def syn_side(self, connection: int) -> int:
        return 0 if connection in self.seen_whole else -1


class Fed:
    """An indexer with a few connections, whose side 0 is the client's."""

    def __init__(self) -> None:
        self.store, self.ends = Store(), Ends()
        self.indexer = Indexer(self.store, cast(Connections, self.ends), DEFAULT)
        self.indexer.detector.client_side.grow(8)
        self.indexer.detector.client_side.values[:] = 0
        self.starts: dict[int, int] = {}

    def feed(self, *sent: Sent) -> "Fed":
        """One batch."""
        rows, pieces = [], []
        for direction, packet, data in sent:
            there, missing = (b"", data) if isinstance(data, int) else data if isinstance(data, tuple) else (data, 0)
            kind = FrameKind.FRAME if there else FrameKind.GAP
            start, size = self.starts.get(direction, 0), len(there) + missing
            rows.append((direction, kind, start, size, 10 * packet, packet, len(pieces)))
            pieces += [(self.store.add(there), len(there))] if there else []
            pieces += [(NOWHERE, missing)] if missing else []
            self.starts[direction] = start + size
        direction, kind, start, size, time, packets, firsts = np.array(rows, np.int64).T
        places, sizes = np.array(pieces, np.int64).T
        counts = np.append(firsts, len(pieces))
        self.indexer.feed(
            FrameBatch(
                direction, kind.astype(np.uint8), start, size, time, time, packets, counts, places, sizes, direction < 0
            )
        )
        return self

    def rows(self) -> list[tuple[int, int, bool, bool]]:
        """Kind, connection, and which sides are there."""
        table = self.indexer.table
        columns = (table.kind, table.connection, table.request, table.response)
        values = zip(*(column.values.tolist() for column in columns), strict=True)
        return [(kind, at, one != NO_FRAME, other != NO_FRAME) for kind, at, one, other in values]


def test_columns_are_the_fields_of_the_rows(tmp_path: Path) -> None:
    asked = [Turn(True, request(1)), Turn(False, response(1)), Turn(True, request(2)), Turn(False, response(9))]
    packets = [
        packet for port in (1, 2) for packet in conversation(asked, client=("10.0.0.1", 40_000 + port), segment=20)
    ]
    del packets[4]
    with Capture([capture_of(tmp_path, packets)]) as capture:
        rows = [exchange.row for exchange in capture.exchanges()]
        indexer = capture.pipeline.indexer
    columns = index_columns(indexer.table, indexer.frames, np.arange(len(rows)))
    assert {(row.request_size is None, row.response_size is None) for row in rows if row.kind == "exchange"} == {
        (False, False), (False, True), (True, False),
    }  # fmt: skip
    assert len({row.kind for row in rows}) > 1
    assert [RowKind(kind).name.lower() for kind in columns.kind.tolist()] == [row.kind for row in rows]
    assert columns.connection.tolist() == [row.connection for row in rows]
    assert columns.request_size.tolist() == [-1 if row.request_size is None else row.request_size for row in rows]
    assert columns.response_size.tolist() == [-1 if row.response_size is None else row.response_size for row in rows]
    assert columns.latency_ns.tolist() == [row.latency_ns or 0 for row in rows]
    assert columns.has_latency.tolist() == [row.latency_ns is not None for row in rows]


def test_each_batch_is_another_generation() -> None:
    fed = Fed()
    generations = [fed.feed((0, number, request(number))).indexer.generation for number in range(3)]
    assert sorted(set(generations)) == generations


def test_rows_of_a_connection_are_found_again_when_there_are_more() -> None:
    fed = Fed()
    by_connection = RowsByConnection(fed.indexer.table)
    assert not len(by_connection.rows(0, fed.indexer.generation))
    for number in range(3):
        fed.feed((0, number, request(number)))
        assert len(by_connection.rows(0, fed.indexer.generation)) == number + 1
        assert not len(by_connection.rows(5, fed.indexer.generation))
    assert not len(RowsByConnection(ExchangeTable()).rows(0, 0))


def test_rows_that_are_sorted_apart_are_those_of_their_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exchange_table, "NEW_ROWS", -80)  # so that all are sorted together about each sixth time
    fed = Fed()
    table, grown = fed.indexer.table, RowsByConnection(fed.indexer.table)
    for number in range(60):
        fed.feed((number % 3 * 2, number, request(number)), (4, number, request(number)))
        fresh = RowsByConnection(table)
        for connection in range(4):
            rows = grown.rows(connection, fed.indexer.generation)
            assert rows.tolist() == fresh.rows(connection, fed.indexer.generation).tolist()
            assert rows.tolist() == np.flatnonzero(table.connection.values == connection).tolist()
    table.retain(np.array([5, 7]))
    kept = [row for connection in range(4) for row in grown.rows(connection, -2).tolist()]
    assert sorted(kept) == [5, 7]


@cases(("lost", "answered"), [(False, [1, 2]), (True, [0, 2])])
def test_a_response_behind_lost_bytes_is_that_of_the_later_request_with_its_id(lost: bool, answered: list[int]) -> None:
    sent: list[Sent] = [
        (2, 1, request(7)),
        (2, 3, request(7)),
        (3, 4, response(7)),
        (2, 5, request(8)),
        (3, 6, response(8)),
    ]
    if lost:
        sent.insert(1, (3, 2, 30))
    fed = Fed().feed(*sent)
    found = [fed.indexer.table.packet.values[n] for n, row in enumerate(fed.rows()) if row[2:] == (True, True)]
    assert found == ([3, 5] if lost else [1, 5])


def test_a_response_that_the_capture_has_before_its_request_is_paired_at_the_end() -> None:
    fed = Fed().feed((1, 1, response(7)), (0, 2, request(7)), (1, 3, response(8)))
    assert fed.rows() == [(RowKind.EXCHANGE, 0, True, False)]
    assert fed.indexer.held_bytes == 2 * len(response(7))
    fed.indexer.end(np.array([0]))
    assert fed.rows() == [(RowKind.EXCHANGE, 0, True, True), (RowKind.EXCHANGE, 0, False, True)]
    assert fed.indexer.held_bytes == 0


@cases(("flags", "is_closed"), [
    ((0, 0), False), ((FIN, 0), False), ((0, FIN), False), ((FIN, FIN), True), ((RST, 0), True), ((0, RST), True),
])  # fmt: skip
def test_a_request_waits_until_its_connection_is_closed(flags: tuple[int, int], is_closed: bool) -> None:
    fed = Fed().feed((0, 1, request(1)), (1, 2, response(1)), (0, 3, request(2)), (0, 4, 9), (2, 5, request(3)))
    fed.ends.flags[0] = flags
    kinds = (RowKind.EXCHANGE, RowKind.EXCHANGE, RowKind.EXCHANGE, RowKind.GAP)
    assert [kind for kind, *_ in fed.rows()] == list(kinds)
    assert fed.indexer.is_complete(np.arange(4)).tolist() == [True, is_closed, False, True]
    assert fed.indexer.is_closed(np.arange(4), 101).tolist() == [is_closed, is_closed, False, is_closed]
    assert not fed.indexer.is_closed(np.arange(4), 100).any()


def final(fed: Fed, opened: Iterable[int]) -> list[bool]:
    fed.ends.opened = {*opened}
    found: list[bool] = fed.indexer.is_final(np.arange(len(fed.rows()))).tolist()
    return found


def test_a_row_is_final_once_nothing_of_its_connection_can_change_it() -> None:
    fed = Fed().feed((0, 1, request(1)), (1, 2, response(1)), (0, 3, request(2)), (2, 4, request(3)))
    assert final(fed, {0, 1}) == [True, False, False]
    assert final(fed, {1}) == [True, True, False]
    assert final(fed, ()) == [True, True, True]


@cases(("answered", "other", "is_final"), [(False, False, False), (True, False, True), (True, True, True)])
def test_a_token_is_final_once_its_handshake_has_a_response(answered: bool, other: bool, is_final: bool) -> None:
    token = b"\0\0\0\5token"
    fed = Fed().feed((2, 1, HANDSHAKE)).feed((2, 3, token))
    if answered:
        fed.feed((3, 4, response(1, b"\0\0\0\0\0\0")))
    if other:
        fed.feed((2, 5, request(9)))
    assert fed.rows()[1] == (RowKind.SASL, 1, True, False)
    assert final(fed, {1})[1] == is_final


def test_a_short_token_of_a_server_is_of_its_connection() -> None:
    fed = Fed().feed((4, 1, HANDSHAKE)).feed((5, 2, bytes(4)))
    assert fed.rows() == [(RowKind.EXCHANGE, 2, True, False), (RowKind.SASL, 2, False, True)]


def test_headers_of_frames_that_end_before_them_are_zeros() -> None:
    data = request(-1)
    fed = Fed().feed((0, 1, data[:9]), (0, 2, data))
    assert fed.indexer.table.correlation_id.values.tolist() == [-(1 << 24), -1]


def test_a_token_of_a_server_is_told_by_the_response_before_it_in_its_stream() -> None:
    token, other = b"\0\0\0\5token", [(2, 1, request(3)), (3, 2, response(3))]
    fed = Fed().feed((0, 1, HANDSHAKE), (1, 2, response(1, bytes(6))), *other)
    fed.feed((0, 3, token), (0, 4, request(9)), (1, 5, token), (3, 6, token))
    fed.indexer.end(np.array([0, 1]))
    assert fed.rows()[-2:] == [(RowKind.SASL, 0, False, True), (RowKind.EXCHANGE, 1, False, True)]
