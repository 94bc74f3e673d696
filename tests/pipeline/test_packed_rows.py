"""Rows by columns are those that are made one by one, of every capture and of damaged ones."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pyarrow as pa
import pytest

import dissector
from dissector.bulk.record_columns import CarriedColumns
from dissector.conversation import Conversation, End, Turn, packets, pcapng
from dissector.core.arrays import Int64
from dissector.pipeline import packed_rows
from dissector.pipeline.carried_columns import Columns, record_columns
from dissector.pipeline.packed_rows import BYTES_TOGETHER, Made, PackedRowBuilder
from dissector.pipeline.partition_rows import WriteOptions
from dissector.protocol.records.from_json import records_bytes
from dissector.protocol.records.opened_sections import MOST_PLAIN
from dissector.tables.arrow_types import arrow_schema
from dissector.tables.schemas import BY_NAME, FACT_TABLES
from tests.conftest import PCAPS, some_bundled, some_of
from tests.pipeline.without_spark import KEPT, tables

DIGESTS: Final = WriteOptions(records=False)
FRAMES: Final = {
    "masked": WriteOptions(frames=True), "digests": WriteOptions(frames=True, records=False),
    "secrets": WriteOptions(frames=True, secrets=True),
}  # fmt: skip
RECORD: Final = {"offset": 0, "timestamp": 0, "key": None, "value": "01140000", "headers": []}
"""With a NoOpRecord of the metadata log."""
COMMIT: Final = RECORD | {"key": "00000001", "value": "000000000000"}
"""The end of a transaction."""
ZSTD: Final = 4


def none_of(*_: object) -> Iterator[Made]:
    return iter(())


def as_written(table: str, rows: list[dict[str, object]]) -> Counter[str]:
    """Rows as they are in a file."""
    written = pa.Table.from_pylist(rows, arrow_schema(BY_NAME[table]))
    return Counter(map(repr, written.to_pylist()))


def assert_same(files: list[Path], parts: int, monkeypatch: pytest.MonkeyPatch, options: WriteOptions = KEPT) -> int:
    """Compare both ways; return how many rows came by columns."""
    by_columns = 0
    make = PackedRowBuilder.rows

    def counted(builder: PackedRowBuilder, chosen: Int64) -> Iterator[Made]:
        nonlocal by_columns
        for made in make(builder, chosen):
            by_columns += len(made.rows)
            yield made

    monkeypatch.setattr(PackedRowBuilder, "rows", counted)
    found = tables(files, parts=parts, options=options)
    monkeypatch.setattr(PackedRowBuilder, "rows", none_of)
    expected = tables(files, parts=parts, options=options)
    for table in FACT_TABLES:
        assert as_written(table, found[table]) == as_written(table, expected[table]), table
    return by_columns


@pytest.mark.long
@pytest.mark.slow
@some_bundled
@pytest.mark.parametrize("parts", some_of([1, 3], 3))
def test_rows_of_a_capture(bundled: Path, parts: int, monkeypatch: pytest.MonkeyPatch) -> None:
    assert_same([bundled], parts, monkeypatch)


@pytest.mark.long
@pytest.mark.slow
@some_bundled
@pytest.mark.parametrize("parts", some_of([1, 3], 1))
def test_rows_with_digests_of_records(bundled: Path, parts: int, monkeypatch: pytest.MonkeyPatch) -> None:
    assert_same([bundled], parts, monkeypatch, DIGESTS)


@pytest.mark.long
@pytest.mark.slow
@some_bundled
@pytest.mark.parametrize("options", some_of(list(FRAMES), "masked"))
def test_rows_with_the_bytes_of_frames(bundled: Path, options: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert_same([bundled], 1, monkeypatch, FRAMES[options])


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("name", some_of(["librdkafka-pipelined", "librdkafka-acks0"], "librdkafka-acks0"))
def test_most_rows_come_by_columns(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path = PCAPS / f"{name}.pcapng"
    for options in (KEPT, DIGESTS, *FRAMES.values()):
        by_columns = assert_same([path], 1, monkeypatch, options)
        assert by_columns > 0.8 * len(tables([path])["exchanges"])
        monkeypatch.undo()


@pytest.mark.exhaustive
@pytest.mark.slow
def test_records_that_columns_cannot_hold_are_made_one_by_one_and_no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    path = PCAPS / "librdkafka-pipelined.pcapng"
    whole = assert_same([path], 1, monkeypatch)
    monkeypatch.undo()
    refused: set[int] = set()

    def refusing(carried: CarriedColumns, *, keeps_contents: bool) -> Columns:
        if not refused:
            refused.add(int(carried.row[-1]))
        if refused & set(carried.row.tolist()):
            raise pa.ArrowInvalid
        return record_columns(carried, keeps_contents=keeps_contents)

    monkeypatch.setattr(packed_rows, "record_columns", refusing)
    assert whole / 2 < assert_same([path], 1, monkeypatch) < whole


def fetch_of(number: int, topic: str, record: dict[str, object] = RECORD, **head: object) -> list[Turn]:
    """A Fetch of a topic with a record, in a batch with this head."""
    records = records_bytes({"batches": [{"base_offset": 0, "magic": 2, "records": [record]} | head]})
    asked = {"topics": [{"topic": topic, "partitions": [{"partition": 0}]}]}
    answer = {"responses": [{"topic": topic, "partitions": [{"partition_index": 0, "records": records}]}]}
    request = dissector.encode_request("Fetch", 12, asked, correlation_id=number, client_id="broker")
    response = dissector.encode_response("Fetch", 12, answer, correlation_id=number)
    return [Turn(number * 1_000_000, True, request), Turn(number * 1_000_000 + 1, False, response)]


def fetch_of_batches(number: int, sizes: list[int], *, damaged: bool = False) -> list[Turn]:
    """A Fetch of partitions that have a compressed batch each, with a value of so many bytes; one may be damaged."""
    batches = [{"attributes": ZSTD, "records": [RECORD | {"value": bytes(size)}]} for size in sizes]
    fields = [records_bytes({"batches": [{"base_offset": 0, "magic": 2} | batch]}) for batch in batches]
    if damaged:
        fields.append(fields[-1][:-4] + bytes(4))
    partitions = [{"partition_index": at, "records": field} for at, field in enumerate(fields)]
    asked = {"topics": [{"topic": "orders", "partitions": [{"partition": at} for at, _ in enumerate(fields)]}]}
    answer = {"responses": [{"topic": "orders", "partitions": partitions}]}
    request = dissector.encode_request("Fetch", 12, asked, correlation_id=number, client_id="reader")
    response = dissector.encode_response("Fetch", 12, answer, correlation_id=number)
    return [Turn(number * 1_000_000, True, request), Turn(number * 1_000_000 + 1, False, response)]


def fetches(tmp_path: Path, turns: list[Turn]) -> Path:
    path = tmp_path / "fetches.pcapng"
    client = Conversation(End("10.0.0.1", 40_001), End("10.0.0.2", 9092), turns)
    path.write_bytes(b"".join(pcapng(packets([client]), "")))
    return path


@pytest.mark.parametrize(("options", "decoded"), [(KEPT, 1), (DIGESTS, 0)])
def test_records_of_internal_topics_come_by_columns(
    options: WriteOptions, decoded: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # That of others has such a name, and packed records.
    topics = ("orders", "__consumer_offsets", "__transaction_state", "__cluster_metadata", "__of_others")
    turns = [turn for number, topic in enumerate(topics, 1) for turn in fetch_of(number, topic)]
    path = fetches(tmp_path, turns)
    assert assert_same([path], 1, monkeypatch, options) == len(topics) - decoded


def test_digests_of_control_records_come_by_columns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    turns = fetch_of(1, "orders", COMMIT, attributes=0x30)
    path = fetches(tmp_path, [*turns, *fetch_of(2, "orders")])
    [control, _] = tables([path], options=DIGESTS)["batches"]
    assert control["control"]
    assert assert_same([path], 1, monkeypatch, DIGESTS) == 2


@pytest.mark.long
def test_no_more_is_held_than_the_records_of_a_few_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many of few bytes become large."""
    count = 2 * MOST_PLAIN // BYTES_TOGETHER
    path = fetches(tmp_path, [turn for n in range(1, count + 1) for turn in fetch_of_batches(n, [BYTES_TOGETHER])])
    held: list[int] = []

    def noted(carried: CarriedColumns, *, keeps_contents: bool) -> Columns:
        held.append(len(carried.records.data))
        return record_columns(carried, keeps_contents=keeps_contents)

    monkeypatch.setattr(packed_rows, "record_columns", noted)
    assert len(tables([path], options=DIGESTS)["records"]) == count
    assert max(held) <= MOST_PLAIN < sum(held)


def test_the_records_of_a_row_that_needs_a_careful_look_are_there_once(tmp_path: Path) -> None:
    """Where they are so many that what was read first would have been written before."""
    sizes = [BYTES_TOGETHER, BYTES_TOGETHER + 1_000, BYTES_TOGETHER + 2_000]
    turns = [*fetch_of_batches(1, sizes[:1]), *fetch_of_batches(2, sizes, damaged=True), *fetch_of_batches(3, [10])]
    found = tables([fetches(tmp_path, turns)], options=DIGESTS)
    assert sorted(row["value_size"] for row in found["records"]) == sorted([sizes[0], *sizes, 10])
    assert [row["error"] is None for row in found["batches"]].count(False) == 1
