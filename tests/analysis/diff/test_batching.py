"""What is known of produced batches, by columns and request by request."""

from collections.abc import Iterator

import pytest

from dissector.analysis.diff import batching
from dissector.analysis.diff.batching import ProducedBatches
from dissector.analysis.diff.side_profile import SideProfile
from dissector.bulk.record_columns import RecordsFields, RecordsOfRows
from tests.analysis.diff.editing import side
from tests.conftest import PCAPS

PRODUCERS = ["java", "java-0.10.2", "java-transactions", "sarama-2.3.0", "librdkafka-acks0"]


def produced(name: str) -> ProducedBatches:
    return SideProfile(side(str(PCAPS / f"{name}.pcapng")), {}, {}).batches


@pytest.mark.parametrize("name", PRODUCERS)
def test_columns_add_what_decoded_requests_add(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def none_is_plain(*_: object) -> Iterator[RecordsFields]:
        return iter(())

    by_columns = produced(name)
    assert by_columns.per_request
    monkeypatch.setattr(RecordsOfRows, "fields", none_is_plain)
    assert produced(name) == by_columns


def test_records_beyond_a_bound_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = produced("java")
    monkeypatch.setattr(batching, "MAX_RECORD_BYTES", sum(whole.sizes) // 2)
    monkeypatch.setattr(batching, "MAX_BATCHES", 2)
    bounded = produced("java")
    assert 0 < bounded.unread < len(whole.sizes)
    assert bounded.read_bytes <= sum(whole.sizes) // 2
    assert bounded.codecs == whole.codecs
    assert [len(numbers) for numbers in (bounded.sizes, bounded.records, bounded.waits_ms)] == [2, 2, 2]
