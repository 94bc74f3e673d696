"""A search finds the same as decoding every row does, without decoding them."""

from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissector import encode_request
from dissector.analysis.search import SearchError, SearchKind, SearchQuery, search_query
from dissector.capture_session import Capture
from dissector.exchange.model import ExchangeMessage
from dissector.protocol.embedded.context import DecodingContext
from dissector.protocol.message_layout import request_layout
from dissector.protocol.records.batch import Record
from dissector.protocol.schema.api_keys import ApiKey
from dissector.protocol.tree import Node
from tests.conftest import PCAPS
from tests.frames import response
from tests.protocol.records.test_batch import batch
from tests.traffic import Turn, capture_of, conversation


def rows_with(capture: Capture, query: SearchQuery) -> list[int]:
    """Return every row that `first` finds, one after the other."""
    found, rows = [], np.arange(len(capture))
    while (number := query.first(capture, rows)) is not None:
        found.append(number)
        rows = rows[rows > number]
    return found


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "kind"),
    [("java-orders", SearchKind.TEXT), ("teapot", SearchKind.TEXT), ("MEMBER_ID_REQUIRED", SearchKind.TEXT),
     ("6a617661", SearchKind.HEX), ("max_wait_ms", SearchKind.FIELD),
     ("topics.name", SearchKind.FIELD), ("nothing like it", SearchKind.TEXT)],
)  # fmt: skip
def test_found_rows_are_those_with_hits(text: str, kind: SearchKind) -> None:
    with Capture([str(PCAPS / "java.pcapng")]) as capture:
        query = search_query(text, kind)
        wanted = [
            exchange.row.number - 1
            for exchange in capture.exchanges()
            if any(hits for _, hits in query.hits_of(exchange))
        ]
        assert rows_with(capture, query) == wanted
        assert bool(wanted) == (text != "nothing like it")


def searched(folder: Path, text: str, kind: SearchKind = SearchKind.TEXT) -> list[tuple[int, str]]:
    """Rows and paths with hits among Produce requests, one for each codec, none of which has a literal `needle`."""
    values = [b"".join(sha256(b"%d" % n).digest() for n in range(40)).hex().encode() + b" a needle 4711", b"second"]
    frames: list[Turn] = []
    for codec in range(5):
        records = batch([Record(100 + n, 5_000, None, value, []) for n, value in enumerate(values)], codec)
        topic = {"name": "hay", "partition_data": [{"index": 0, "records": records}]}
        body = {"acks": -1, "timeout_ms": 30_000, "topic_data": [topic]}
        frames += [
            Turn(True, encode_request("Produce", 7, body, correlation_id=codec)),
            Turn(False, response(codec, bytes(8))),
        ]
    path = capture_of(folder, conversation(frames))
    with Capture([path]) as capture:
        for _ in capture.read():
            pass
        query = search_query(text, kind)
        rows = rows_with(capture, query)
        wanted = [at for at in range(len(capture)) if any(hits for _, hits in query.hits_of(capture.exchange(at)))]
        assert rows == wanted
        hits = [(at, hit) for at in rows for _, some in query.hits_of(capture.exchange(at)) for hit in some]
        return [(at, hit.path) for at, hit in hits]


def test_text_of_compressed_records_is_found_and_nothing_in_compressed_bytes(tmp_path: Path) -> None:
    found = searched(tmp_path, "a needle")
    assert [row for row, _ in found] == [0, 1, 2, 3, 4]
    assert all(path.endswith("records[0].value") for _, path in found)
    raw = searched(tmp_path, "a needle", SearchKind.RAW)
    assert 0 in {row for row, _ in raw}
    assert {row for row, _ in raw} < {0, 1, 2, 3, 4}  # a codec left no literal of it
    assert {path.rpartition(".")[2] for row, path in raw if row} <= {"(compressed)"}
    assert [row for row, _ in searched(tmp_path, b"a needle".hex(), SearchKind.HEX) if row == 4] == [4]


def test_a_number_is_found_as_a_value_and_inside_text_only(tmp_path: Path) -> None:
    assert {path.rpartition(".")[2] for _, path in searched(tmp_path, "30000")} == {"timeout_ms"}
    assert {path.rpartition(".")[2] for _, path in searched(tmp_path, "4711")} == {"value"}
    assert not searched(tmp_path, "3000")


def test_text_is_not_found_in_numbers(tmp_path: Path) -> None:
    assert (30_000).to_bytes(2, "big") == b"u0"
    assert not searched(tmp_path, "u0")
    assert searched(tmp_path, "u0", SearchKind.RAW)


@pytest.mark.long
def test_a_topic_is_found_by_its_name_where_only_its_id_is_on_the_wire() -> None:
    with Capture([str(PCAPS / "java.pcapng")]) as capture:
        for _ in capture.read():
            pass
        rows = rows_with(capture, search_query("java-orders", SearchKind.TEXT))
        by_id = "api == Produce && version >= 13 && topic == 'java-orders'"
        produced = [exchange.row.number - 1 for exchange in capture.exchanges(by_id)]
        assert produced
        assert set(produced) <= set(rows)


def test_a_hit_has_the_offsets_of_its_bytes(bundled: Path) -> None:
    with Capture([str(bundled)]) as capture:
        query = search_query("a", SearchKind.TEXT)
        for exchange in list(capture.exchanges())[:20]:
            for message in (exchange.request, exchange.response):
                if message is None:
                    continue
                nodes = {node.path: node for node in message.tree.walk()}
                for hit in query.hits(message):
                    data = message.sources[hit.source].data[hit.start : hit.end]
                    node = nodes[hit.path]
                    assert data in (b"a", b"A") or "a" in f"{node.name} {node.note}".lower()


def test_sources_are_searched_in_one_walk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each compressed batch is a source of its own: a walk for each would be the square of their number."""
    walks = 0
    walk = Node.walk

    def counted(node: Node) -> Iterator[Node]:
        nonlocal walks
        walks += 1
        return walk(node)

    sections = 50
    field = batch([Record(100, 5_000, b"teapot", None, [])], codec=2) * sections
    frame = encode_request("Produce", 3, {"topic_data": [{"name": "a", "partition_data": [{"records": field}]}]})
    layout = request_layout(ApiKey.PRODUCE, 3)
    message = ExchangeMessage.of_frame(0, len(frame), frame, len(frame), layout, DecodingContext(), show_secrets=False)
    assert len(message.sources) == 1 + sections
    monkeypatch.setattr(Node, "walk", counted)
    assert len(search_query("teapot", SearchKind.TEXT).hits(message)) >= sections
    assert 0 < walks < 5


def test_capital_letters_make_a_search_case_sensitive() -> None:
    with Capture([str(PCAPS / "java.pcapng")]) as capture:
        for _ in capture.read():
            pass
        assert rows_with(capture, search_query("java-orders", SearchKind.TEXT))
        assert not rows_with(capture, search_query("Java-orders", SearchKind.TEXT))


def test_masked_secrets_are_not_found() -> None:
    path = str(PCAPS / "java-sasl-plain.pcapng")
    with Capture([path], show_secrets=True) as capture:
        token = next(
            bytes(e.request.body["auth_bytes"])
            for e in capture.exchanges()
            if e.request is not None and "auth_bytes" in e.request.body
        )
        query = search_query(token.hex(), SearchKind.HEX)
        assert rows_with(capture, query)
    with Capture([path]) as capture:
        for _ in capture.read():
            pass
        assert not rows_with(capture, query)


@given(st.text(max_size=8), st.sampled_from(SearchKind))
def test_any_text_is_a_query_or_an_error_of_one_line(text: str, kind: SearchKind) -> None:
    error_text, query = "", None
    try:
        query = search_query(text, kind)
    except SearchError as error:
        error_text = str(error)
    assert "\n" not in error_text
    assert bool(error_text) == (query is None)
