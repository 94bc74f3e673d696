"""Headers of requests, and `acks` behind them, wherever a frame is cut; each length from both sides."""

import struct
from collections.abc import Iterable

import numpy as np

from dissector.core.batches import NOWHERE, FrameBatch
from dissector.core.store import Store
from dissector.index import message_headers
from dissector.index.acks import expect_response, expects_response
from dissector.index.frame_table import FrameTable
from dissector.index.message_headers import (
    REQUEST_HEAD_SIZE,
    SHORT_CLIENT_ID,
    ClientIds,
    request_headers,
    response_correlation_ids,
)
from dissector.protocol.masking import NEWER
from dissector.protocol.schema.api_keys import ApiKey
from dissector.protocol.schema.loader import api
from tests.cases import cases
from tests.frames import request, response

Pieces = list[bytes | int]
"""Of a frame: what is there, and how many bytes are not."""


def table_of(frames: Iterable[Pieces]) -> tuple[Store, FrameTable]:
    store = Store()
    table = FrameTable(store)
    rows = list(frames)
    pieces = [piece for each in rows for piece in each]
    sizes = [piece if isinstance(piece, int) else len(piece) for piece in pieces]
    addresses = [NOWHERE if isinstance(piece, int) else store.add(piece) for piece in pieces]
    zeros = np.zeros(len(rows), np.int64)
    counts = np.cumsum([0, *map(len, rows)])
    size_of = np.add.reduceat(np.array(sizes), counts[:-1])
    table.extend(
        FrameBatch(
            zeros,
            zeros.astype(np.uint8),
            zeros,
            size_of,
            zeros,
            zeros,
            zeros,
            counts,
            np.array(addresses),
            np.array(sizes),
            zeros > 0,
        )
    )
    return store, table


def client_ids(*frames: Pieces) -> list[str | None]:
    store, table = table_of(frames)
    clients = ClientIds()
    headers = request_headers(store, table, np.arange(len(frames)), clients)
    return [clients.texts[number] for number in headers.client_id.tolist()]


@cases("size", [0, 1, 5, SHORT_CLIENT_ID - 1, SHORT_CLIENT_ID, SHORT_CLIENT_ID + 1, 400])
def test_a_client_id_is_read_in_one_piece_and_in_many(size: int) -> None:
    name = ("name" * size)[:size]
    data = request(7, client_id=name.encode())
    pieces = [[data], *([data[:at], data[at:]] for at in (3, 10, REQUEST_HEAD_SIZE, REQUEST_HEAD_SIZE + size // 2 + 1))]
    for frames in ([each] for each in pieces):
        assert client_ids(*frames) == [name]
    assert client_ids(*pieces) == [name] * 5
    store, table = table_of(pieces)
    headers = request_headers(store, table, np.arange(5), ClientIds())
    assert {*headers.end.tolist()} == {REQUEST_HEAD_SIZE + size}
    assert ({*headers.api_key.tolist()}, {*headers.version.tolist()}, {*headers.correlation_id.tolist()}) == (
        {3},
        {0},
        {7},
    )


@cases("size", [5, 300])
def test_a_client_id_that_runs_past_its_request_or_is_not_all_there_is_masked(size: int) -> None:
    data = request(7, client_id=b"n" * size, body=b"")
    stars = "*" * min(size, SHORT_CLIENT_ID)
    assert client_ids([data]) == ["n" * size]
    assert client_ids([data[:-1]]) == ["*" * min(size - 1, SHORT_CLIENT_ID)]
    if size > SHORT_CLIENT_ID:
        assert client_ids([data[:-1], 1]) == ["*" * SHORT_CLIENT_ID]
        assert client_ids([data[:-1], 1]) == [stars]


@cases(("key", "raw", "shown"), [
    (ApiKey.METADATA, b"a\x01b", "a\x01b"), (ApiKey.METADATA, b"a\0b", "***"),
    (ApiKey.SASL_AUTHENTICATE, b"a\x01b", "***"), (ApiKey.SASL_AUTHENTICATE, b"a b", "a b"),
    (-1, b"a\x01b", "***"), (-1, b"a b", "a b"), (3000, b"a\x01b", "***"),
])  # fmt: skip
def test_a_client_id_is_believed_as_far_as_its_api_has_no_secrets(key: int, raw: bytes, shown: str) -> None:
    assert client_ids([request(1, api_key=key, client_id=raw)]) == [shown]


@cases(("version", "believed"), [(0, True), (-1, False), (NEWER, True), (NEWER + 1, False)])
def test_a_client_id_is_believed_in_versions_that_may_come(version: int, believed: bool) -> None:
    for key in (ApiKey.METADATA, ApiKey.SASL_AUTHENTICATE):
        known = api(key)
        assert known is not None
        high = known.versions.high if version >= NEWER else 0
        assert client_ids([request(1, api_key=key, version=high + version)]) == ["tests" if believed else "*****"]


def test_the_oldest_controlled_shutdown_has_no_client_id_and_others_have() -> None:
    oldest = struct.pack(">ihhii", 12, ApiKey.CONTROLLED_SHUTDOWN, 0, 5, 1)
    store, table = table_of([[oldest], [request(1, api_key=7, version=1)], [request(1, api_key=3, version=0)]])
    clients = ClientIds()
    headers = request_headers(store, table, np.arange(3), clients)
    assert [clients.texts[number] for number in headers.client_id.tolist()] == [None, "tests", "tests"]
    assert headers.end.tolist() == [REQUEST_HEAD_SIZE - 2, REQUEST_HEAD_SIZE + 5, REQUEST_HEAD_SIZE + 5]


def test_a_null_client_id_is_none_and_ends_behind_its_length() -> None:
    data = struct.pack(">ihhih", 14, 3, 1, 5, -1) + bytes(4)
    assert client_ids([data]) == [None]
    store, table = table_of([[data]])
    assert request_headers(store, table, np.arange(1), ClientIds()).end.tolist() == [REQUEST_HEAD_SIZE]


def test_correlation_ids_of_responses_are_read_from_any_pieces() -> None:
    data = response(-9)
    store, table = table_of([[data], [data[:5], data[5:]], [data[:8], 3], [data[:6], 6], [data[:8]]])
    assert response_correlation_ids(store, table, np.arange(5)).tolist() == [-9, -9, -9, -1 << 16 | 0, -9]


def test_what_was_not_captured_reads_as_zeros() -> None:
    data = response(-9)
    store, table = table_of([[data], [9], [12, data], [data]])
    ids = response_correlation_ids(store, table, np.arange(4)).tolist()
    assert (ids[0], ids[1], ids[3]) == (-9, 0, -9)


def test_few_long_ids_are_kept_whole() -> None:
    clients = ClientIds()
    most = message_headers.LONG_CLIENT_IDS
    clients._long_bytes = most - 300
    assert clients.texts[clients.number(b"a" * 300, 0)] == "a" * 300
    assert clients.texts[clients.number(b"b" * 257, 0)] == "b" * 256 + "… (257 bytes)"
    assert clients.texts[clients.number(b"c" * 256, 0)] == "c" * 256


def produce(version: int, acks: int, client: bytes | None, transaction: bytes | None) -> tuple[bytes, int]:
    """The beginning of a request, and where its `acks` are."""
    head = struct.pack(">ihhih", 0, 0, version, 1, -1 if client is None else len(client)) + (client or b"")
    if version >= 9:
        head += b"\0" + (b"\0" if transaction is None else bytes([len(transaction) + 1]) + transaction)
    elif version >= 3:
        head += struct.pack(">h", -1 if transaction is None else len(transaction)) + (transaction or b"")
    return head + struct.pack(">h", acks) + struct.pack(">i", 1000), len(head)


@cases("version", range(14))
def test_acks_are_read_wherever_they_are_and_a_request_cut_before_their_end_is_answered(version: int) -> None:
    frames, expected = [], []
    for client in (None, b"", b"tests"):
        for transaction in (None, b"", b"tx") if version >= 3 else (None,):
            for acks in (0, 1, -1, 256):
                data, at = produce(version, acks, client, transaction)
                for cut in range(REQUEST_HEAD_SIZE, len(data) + 1):
                    assert expects_response(data[:cut], version) == (cut < at + 2 or acks != 0)
                begin, last = data[: at + 2], data[: at + 1]
                for pieces in ([data], [begin], [begin, data[at + 2 :]], [last, data[at + 1 :]], [last, 1]):
                    frames.append(pieces)
                    expected.append(acks != 0 or pieces[-1] == 1)
    store, table = table_of(frames)
    rows = np.arange(len(frames))
    headers = request_headers(store, table, rows, ClientIds())
    assert expect_response(store, table, rows, headers).tolist() == expected
    others = headers._replace(api_key=np.full(len(rows), 3))
    assert expect_response(store, table, rows, others).all()


def test_what_is_not_there_has_no_place_in_memory() -> None:
    _, table = table_of([[b"whole"], [5], [b"a", 4], [3, b"b"]])
    found, _owner = table.pointers(np.arange(4))
    assert (found > 0).tolist() == [True, False, False, False]
    assert table.regions(np.arange(4))[1].tolist() == [5, 1, 1]


@cases(("version", "body"), [(9, b"\0\3\0\0\0\1"), (9, b"\0\3\0\0\xff\xff"), (8, b"\0\2\xff\xff\0\1")])
def test_acks_are_not_read_where_a_transactional_id_stands(version: int, body: bytes) -> None:
    for acks, is_answered in ((body[-2:], True), (b"\0\0", False)):
        store, table = table_of([[request(1, api_key=ApiKey.PRODUCE, version=version, body=body[:-2] + acks)]])
        headers = request_headers(store, table, np.arange(1), ClientIds())
        assert expect_response(store, table, np.arange(1), headers).tolist() == [is_answered]
