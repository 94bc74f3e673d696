"""Two exchanges field by field, as the wire has them."""

from itertools import pairwise

import pytest

from dissector.analysis.diff import DiffResult, ExchangePair, diff
from dissector.analysis.diff.exact_fields import ExactField, exact_fields
from dissector.analysis.diff.formatting import format_path
from dissector.analysis.diff.side import RowSide
from dissector.capture_session import Capture
from dissector.exchange.model import Exchange
from tests.conftest import PCAPS

CAPTURES = ("java-classic", "java-transactions", "kafka-python", "librdkafka", "java-sasl-plain", "java-admin")


def opened(name: str) -> Capture:
    capture = Capture([str(PCAPS / f"{name}.pcapng")])
    for _ in capture.read():
        pass
    return capture


def compared(capture: Capture, a: int, b: int) -> DiffResult:
    """Compare two rows, from 0, as the screen does."""
    sides = [RowSide(capture, str(row), stop=len(capture), row=row) for row in (a, b)]
    return diff(sides[0], sides[1], (), ((a, b),))


def fields(capture: Capture, a: int, b: int) -> dict[tuple[str, str], ExactField]:
    result = compared(capture, a, b)
    [pair] = result.pairs
    found = exact_fields(capture.exchange(a), capture.exchange(b), result.differences(pair))
    return {(each.part, format_path(each.where[0] or each.where[1] or ())): each for each in found}


def bodies(exchange: Exchange) -> list[bytes | None]:
    """Return the bytes behind the headers; None for a message that was not seen."""
    found: list[bytes | None] = []
    for message in (exchange.request, exchange.response):
        body = None if message is None else next((n for n in message.tree.children if n.name == "body"), None)
        found.append(None if message is None else b"" if body is None else message.data[body.start : body.end])
    return found


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("name", CAPTURES)
def test_an_exchange_is_equal_to_itself_and_no_other_is_unless_its_bytes_are(name: str) -> None:
    with opened(name) as capture:
        by_api: dict[str, list[Exchange]] = {}
        for exchange in capture.exchanges():
            if exchange.row.kind == "exchange" and exchange.request is not None:
                by_api.setdefault(exchange.row.api, []).append(exchange)
        assert by_api
        for found in by_api.values():
            for one in found[:4]:
                assert all(each.is_equal for each in exact_fields(one, one, ()))
            for one, other in pairwise(found[:6]):
                there, back = exact_fields(one, other, ()), exact_fields(other, one, ())
                assert {(f.part, f.where, f.texts, f.is_equal) for f in there} == {
                    (f.part, f.where[::-1], f.texts[::-1], f.is_equal) for f in back
                }
                if all(each.is_equal for each in there):
                    assert bodies(one) == bodies(other)
                if bodies(one) == bodies(other) and one.row.version == other.row.version:
                    assert all(each.is_equal for each in there)


def test_offsets_partitions_and_records_count_and_partitions_stand_beside_their_own() -> None:
    with opened("java-classic") as capture:
        found = fields(capture, 19, 20)
        topic = "topics[java-classic].partitions"
        offset = found["request", f"{topic}[1].fetch_offset"]
        assert not offset.is_equal
        assert all(where is not None and where[-2] == offset.where[0][-2] for where in offset.where if offset.where[0])
        assert found["request", f"{topic}[0].fetch_offset"].where[1] is None
        assert ("request", f"{topic}[0].high_watermark") not in found  # an absent tagged field
        assert found["request", f"{topic}[1].partition_max_bytes"].is_equal
        assert found["request", topic].texts == ("4 elements", "3 elements")
        assert found["response", "responses"].texts == ("1 element", "empty")
        session = found["request", "session_id"]
        assert session.difference is not None
        assert session.difference.reason.value == "value"
        assert found["response", "responses[java-classic].partitions[1].records"].where[1] is None


def test_the_engine_compares_two_rows_as_one_pair() -> None:
    with opened("java-classic") as capture:
        result = compared(capture, 28, 29)
        assert result.is_same
        assert [(pair.a, pair.b) for pair in result.pairs] == [(28, 29)]
        assert isinstance(result.pairs[0], ExchangePair)


@pytest.mark.long
def test_the_properties_of_batches_and_their_bytes_are_compared() -> None:
    with opened("encoder") as capture:
        produced = [n for n in range(len(capture)) if capture.exchange(n).row.api == "Produce"]
        seen = set()
        for a, b in pairwise(produced[:12]):
            for (_, path), field in fields(capture, a, b).items():
                if not field.is_equal and None not in field.where:
                    seen.add((path.rpartition(".")[2], field.texts))
        assert any(name == "compression" and len(set(texts)) == 2 and all(texts) for name, texts in seen)
        assert any(name == "records" and all("bytes" in text for text in texts) for name, texts in seen)
