"""What a search finds: the same as looking at everything, but without decoding it."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissector.analysis.search import SearchError, SearchKind, SearchQuery, search_query
from dissector.capture_session import Capture
from tests.conftest import PCAPS


def rows_with(capture: Capture, sought: SearchQuery) -> list[int]:
    """Every row that `first` finds, one after the other."""
    found, rows = [], np.arange(len(capture))
    while (number := sought.first(capture, rows)) is not None:
        found.append(number)
        rows = rows[rows > number]
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "kind"),
    [("java-orders", SearchKind.TEXT), ("teapot", SearchKind.TEXT), ("MEMBER_ID_REQUIRED", SearchKind.TEXT),
     ("6a617661", SearchKind.HEX), ("max_wait_ms", SearchKind.FIELD),
     ("topics.name", SearchKind.FIELD), ("nothing like it", SearchKind.TEXT)],
)  # fmt: skip
def test_rows_are_those_whose_messages_have_it(text: str, kind: SearchKind) -> None:
    with Capture([str(PCAPS / "java.pcapng")]) as capture:
        sought = search_query(text, kind, opens_records=True)
        wanted = [
            exchange.row.number - 1
            for exchange in capture.exchanges()
            if any(hits for _, hits in sought.hits_of(exchange))
        ]
        plain = rows_with(capture, search_query(text, kind))
        assert set(plain) <= set(wanted)
        assert rows_with(capture, sought) == wanted
        assert bool(wanted) == (text != "nothing like it")


def test_compressed_records_are_opened_when_asked_for() -> None:
    with Capture([str(PCAPS / "java.pcapng")]) as capture:
        for _ in capture.read():
            pass
        closed, opened = (
            rows_with(capture, search_query("teapot", SearchKind.TEXT, opens_records=o)) for o in (False, True)
        )
        assert set(closed) < set(opened)


def test_a_hit_is_where_the_bytes_are(bundled: Path) -> None:
    with Capture([str(bundled)]) as capture:
        sought = search_query("a", SearchKind.TEXT)
        for exchange in list(capture.exchanges())[:20]:
            for message in (exchange.request, exchange.response):
                if message is None:
                    continue
                nodes = {node.path: node for node in message.tree.walk()}
                for hit in sought.hits(message):
                    data = message.sources[hit.source].data[hit.start : hit.end]
                    node = nodes[hit.path]
                    assert data in (b"a", b"A") or "a" in f"{node.name} {node.note}".lower()


def test_capitals_make_it_exact() -> None:
    with Capture([str(PCAPS / "java.pcapng")]) as capture:
        for _ in capture.read():
            pass
        assert rows_with(capture, search_query("java-orders", SearchKind.TEXT))
        assert not rows_with(capture, search_query("Java-orders", SearchKind.TEXT))


def test_what_is_masked_is_not_found() -> None:
    path = str(PCAPS / "java-sasl-plain.pcapng")
    with Capture([path], show_secrets=True) as capture:
        token = next(
            bytes(e.request.body["auth_bytes"])
            for e in capture.exchanges()
            if e.request is not None and "auth_bytes" in e.request.body
        )
        sought = search_query(token.hex(), SearchKind.HEX)
        assert rows_with(capture, sought)
    with Capture([path]) as capture:
        for _ in capture.read():
            pass
        assert not rows_with(capture, sought)


@given(st.text(max_size=8), st.sampled_from(SearchKind))
def test_any_words_are_a_needle_or_refused_in_one_line(text: str, kind: SearchKind) -> None:
    said, sought = "", None
    try:
        sought = search_query(text, kind)
    except SearchError as error:
        said = str(error)
    assert "\n" not in said
    assert bool(said) == (sought is None)
