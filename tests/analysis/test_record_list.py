"""Records of many exchanges: read natively where that may be, and the same as those of each exchange."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dissector.analysis import record_list
from dissector.analysis.record_list import NONE, RecordList, RecordPlaces
from dissector.capture_session import Capture
from dissector.core.arrays import Int64
from dissector.filter import parse
from dissector.records.record import ExchangeRecord, records_of
from tests.cases import cases
from tests.conftest import PCAPS
from tests.exchange.test_metadata_fetches import LOG_ID, fetch
from tests.traffic import capture_of, conversation

RECORDINGS = [
    *(PCAPS / f"{name}.pcapng" for name in ("java", "two-brokers", "plain-socket-message-sets", "java-share")),
    *(PCAPS / f"{name}.pcapng" for name in ("records/orders", "tls/java-1.3", "java-streams")),
    PCAPS / "segments/rdkafka-codecs-0/00000000000000000000.log",
    PCAPS / "segments/__cluster_metadata-0/00000000000000000000.log",
]  # fmt: skip


def opened(path: Path) -> Capture:
    capture = Capture([str(path)])
    for _ in capture.read():
        pass
    return capture


def contents(row: int, place: int, record: ExchangeRecord) -> tuple[object, ...]:
    it = record
    return (
        row, place, it.topic, it.partition, it.offset, it.timestamp, it.key, it.value, tuple(it.headers), it.is_control,
        it.is_produced,
    )  # fmt: skip


def or_none(number: int) -> int | None:
    return None if number == NONE else number


def one_by_one(capture: Capture) -> Iterator[tuple[object, ...]]:
    for row, exchange in enumerate(capture.at(range(len(capture)))):
        for place, record in enumerate(records_of(exchange)):
            yield contents(row, place, record)


@pytest.mark.slow
@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_records_of_many_exchanges_are_those_of_each(path: Path) -> None:
    with opened(path) as capture:
        listed = RecordList(capture)
        every = list(one_by_one(capture))
        assert [contents(*found) for found in listed.records()] == every
        steps = list(listed.steps())
        assert steps[-1].upto == len(capture)
        places = RecordPlaces.joined([step.places for step in steps])
        columns = zip(*(column.tolist() for column in places), strict=True)
        assert [
            (row, place, listed.topics[topic], or_none(partition), offset, or_none(time))
            for row, place, offset, time, topic, partition, *_ in columns
        ] == [record[:6] for record in every]  # fmt: skip
        assert places.value_size.tolist() == [-1 if record[7] is None else len(record[7]) for record in every]


@cases("most", [0, 1_000, 20_000])
def test_few_records_are_held_at_once_and_all_come(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    """Of rows that are few bytes on the wire and many without their compression."""
    with opened(PCAPS / "records/orders.pcapng") as capture:
        every = [contents(*found) for found in RecordList(capture).records()]
        held: list[int] = []
        read = RecordList._read_natively

        def spy(listed: RecordList, rows: Int64) -> Any:
            found = read(listed, rows)
            held.append(0 if isinstance(found, int) else len(found[0]))
            return found

        monkeypatch.setattr(record_list, "CONTENTS_TOGETHER", most)
        monkeypatch.setattr(RecordList, "_read_natively", spy)
        assert [contents(*found) for found in RecordList(capture).records()] == every
        assert most or max(held) < sum(held)  # a step of the native reader at a time


def test_rows_behind_a_large_one_are_read_together_again(monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(PCAPS / "java.pcapng") as capture:
        asked: list[int] = []
        read = RecordList._read_natively

        def spy(listed: RecordList, rows: Int64) -> Any:
            asked.append(len(rows))
            return 1 if len(asked) == 1 else read(listed, rows)

        monkeypatch.setattr(RecordList, "_read_natively", spy)
        assert len(list(RecordList(capture).records())) == 200
        assert asked[:4] == [asked[0], 1, 2, 4]


@pytest.mark.long
@pytest.mark.slow
@cases("text", [
    "record.offset > 2 && !(topic == java-orders)", "record.key == customer-1 || api == Fetch", "partition == 1",
    "api == Fetch", "record", "!record", "record.control", "latency > 1ms && record.key exists",
])  # fmt: skip
def test_a_filter_is_asked_for_each_record(text: str) -> None:
    with opened(PCAPS / "java.pcapng") as capture:
        wanted = parse(text)
        listed = RecordList(capture, wanted)
        rows = {}

        class Subject:
            def __init__(self, row: int, record: ExchangeRecord) -> None:
                self.record, self.exchange = record, rows.setdefault(row, capture.exchange(row))

        expected = [
            (found.row, found.place) for found in RecordList(capture).records()
            if wanted.matches_record(Subject(found.row, found.record), capture.start_ns)
        ]  # fmt: skip
        assert [(found.row, found.place) for found in listed.records()] == expected
        places = RecordPlaces.joined([step.places for step in listed.steps()])
        assert list(zip(places.row.tolist(), places.place.tolist(), strict=True)) == expected
        exchanges = [row for step in capture.select(wanted) for row in step.rows.tolist()]
        assert text.startswith("!") or {row for row, _ in expected} <= set(exchanges)


def test_what_is_masked_has_no_records(tmp_path: Path) -> None:
    """A fetch of the metadata log, whose records may be secrets."""
    with Capture([capture_of(tmp_path, conversation(fetch(18, "", LOG_ID, b"secret")))]) as capture:
        masked = [row for row, it in enumerate(capture.exchanges()) if it.response and it.response.masked]
        assert masked == [0]
        assert not list(RecordList(capture).records())
        assert not len(RecordList(capture).places(np.array(masked)).row)
