"""Rows of the tables become the exchanges that they were: in every form, and for every filter. No Spark in here."""

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from dissector.capture_session import Capture
from dissector.cli.render.lines import row_line
from dissector.cli.render.trees import tree_lines
from dissector.exchange.model import Exchange
from dissector.exchange.to_json import json_line
from dissector.pipeline.cell_json import CONTENTS
from dissector.pipeline.origins import FileOrigins, Origin, Origins, Sources
from dissector.pipeline.partition_rows import RowBuilder, WriteOptions
from dissector.tables.row_to_exchange import exchange_of_row
from tests.cases import cases
from tests.conftest import PCAPS, some_of
from tests.pipeline.test_lone_files import INDEXES, LOGS
from tests.pipeline.without_spark import one_by_one

READ_INDEXES = [path for path in INDEXES if path.suffix != ".txnindex"]


def pairs(path: Path, *, frames: bool = False, records: bool = True) -> Iterator[tuple[Exchange, Exchange]]:
    """Each exchange of a capture, and what comes back from its row."""
    with Capture([str(path)]) as capture:
        for step in (capture.read(), capture.findings.examine()):
            for _ in step:
                pass
        origins = Origins(FileOrigins([Origin(0, "0" * 64, capture.start_ns, 1)], []), Sources())
        findings: defaultdict[object, list[dict[str, Any]]] = defaultdict(list)
        rows: defaultdict[object, dict[str, Any]] = defaultdict(dict)
        for table, row in one_by_one(RowBuilder(capture, origins, WriteOptions(frames=frames, records=records)).rows()):
            if table == "findings":
                findings[row["packet"], row["start"]].append(row)
            elif table in ("exchanges", "bodies"):
                rows[row["packet"], row["start"]] |= row
        packets, starts = capture.frames.positions(range(len(capture)))
        places = list(zip((packets + 1).tolist(), starts.tolist(), strict=True))
        assert sorted(places) == sorted(rows)
        for number, (place, original) in enumerate(zip(places, capture.exchanges(), strict=True)):
            row = rows[place]
            beside = {"number": number + 1, "conn": original.fields.connection, "path": str(path)}
            yield original, exchange_of_row(row | beside | {"findings": findings[row["packet"], row["start"]]})


@pytest.mark.slow
def test_rows_read_as_the_exchanges_that_they_were(bundled: Path) -> None:
    for original, again in pairs(bundled):
        assert json_line(again) == json_line(original)
        assert row_line(again.row, 0) == row_line(original.row, 0)


@pytest.mark.long
@pytest.mark.slow
@cases("path", LOGS + READ_INDEXES, ids=lambda path: f"{path.parent.name}{path.suffix}")
@cases("frames", [False, True])
def test_entries_of_kafka_s_files_read_the_same(path: Path, frames: bool) -> None:
    """Bodies, and the very bytes, of which trees are made."""
    found = list(pairs(path, frames=frames))
    assert found
    for original, again in found:
        assert json_line(again) == json_line(original)
        assert row_line(again.row, 0) == row_line(original.row, 0)
        assert original.request is not None
        assert again.request is not None
        assert again.request.data == original.request.data
        assert values(again) == values(original)


def values(exchange: Exchange) -> list[tuple[str, object]]:
    assert exchange.request is not None
    return [(node.name, node.value) for node in exchange.request.tree.walk()]


def test_a_metadata_log_is_recognized_by_its_first_record_in_any_folder(tmp_path: Path) -> None:
    [path] = (PCAPS / "segments").glob("__cluster_metadata-0/*.log")
    copy = tmp_path / "some.file"
    copy.write_bytes(path.read_bytes())
    found = list(pairs(copy))
    assert [json_line(again) for _, again in found] == [json_line(original) for original, _ in found]
    assert any(b"value_decoded" in json_line(again) for _, again in found[1:])


def test_a_batch_of_which_no_record_was_kept_has_all_the_rest() -> None:
    [path] = (PCAPS / "segments").glob("rdkafka-codecs-0/*.log")
    for original, again in pairs(path, frames=True, records=False):
        row, lost = orjson.loads(json_line(again)), orjson.loads(json_line(original))
        assert row == without_records(lost)
        assert again.request is not None
        assert again.request.data == b""


@pytest.mark.long
def test_what_was_not_kept_of_records_is_missing_and_nothing_else() -> None:
    carriers = 0
    for original, again in pairs(PCAPS / "java.pcapng", records=False):
        row, lost = orjson.loads(json_line(again)), orjson.loads(json_line(original))
        carriers += b'"batches":[{' in orjson.dumps(row)
        assert row["findings"] == lost["findings"]
        assert without_records(row) == without_records(lost)
    assert carriers > 5


def test_what_no_cell_had_room_for_is_missing_and_not_made_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of batches size, count and codec are left."""
    monkeypatch.setattr("dissector.pipeline.cell_json.MAX_BYTES", 1000)
    large = 0
    for original, again in pairs(PCAPS / "java.pcapng"):
        row, whole = orjson.loads(json_line(again)), orjson.loads(json_line(original))
        lost = [finding["path"] for finding in row["findings"] if finding["code"] == "cell-too-large"]
        for side in ("request", "response"):
            if side not in lost:
                assert row[side] == whole[side]
            elif row[side]["body"] and original.fields.api in ("Produce", "Fetch"):
                large += 1
                assert row[side]["size"] == whole[side]["size"]
                assert left_of(row[side]["body"]) == left_of(whole[side]["body"])
    assert large > 3


LEFT = {"base_offset", "batch_length", "compression", "records_count"}


def left_of(value: Any) -> Any:
    """JSON with what is left of batches."""
    if isinstance(value, list):
        return [left_of(each) for each in value]
    if isinstance(value, dict) and "batch_length" in value:
        return {name: inner for name, inner in value.items() if name in LEFT}
    return {name: left_of(inner) for name, inner in value.items()} if isinstance(value, dict) else value


def without_records(value: Any) -> Any:
    """JSON without what batches hold."""
    if isinstance(value, list):
        return [without_records(each) for each in value]
    if isinstance(value, dict):
        return {name: without_records(inner) for name, inner in value.items() if name not in CONTENTS}
    return value


@pytest.mark.long
def test_frames_that_were_kept_give_the_same_trees() -> None:
    for original, again in pairs(PCAPS / "java.pcapng", frames=True):
        for one, other in ((original.request, again.request), (original.response, again.response)):
            assert (one is None) == (other is None)
            assert one is None or other is None or one.data == other.data
        names = [[line.split()[:1] for line in tree_lines(each, 0)] for each in (original, again)]
        assert names[0] == names[1]


@pytest.mark.slow
@pytest.mark.parametrize("name", some_of(["java", "librdkafka-pipelined", "java-sasl-plain", "java-streams"], "java"))
def test_damage_changes_nothing(name: str, tmp_path: Path) -> None:
    # Every ninth packet is missing, and of the others only 250 bytes are there.
    from dissector.capture.file_opening import open_capture
    from dissector.capture.merge import PacketMerger
    from dissector.conversation import Packet, pcapng
    from dissector.core.limits import DEFAULT
    from dissector.core.store import Store

    store = Store()
    merged = PacketMerger([open_capture(str(PCAPS / f"{name}.pcapng"), store, lambda *_: True)], store, DEFAULT)
    kept: list[Packet] = []
    for batch in merged.batches():
        for at in range(len(batch)):
            start, size = int(batch.offset[at]), min(250, int(batch.captured[at]))
            data = batch.data[start : start + size].tobytes()
            kept.append(Packet(int(batch.time_ns[at]), data, int(batch.length[at]), int(batch.link_type[at]), ()))
    path = tmp_path / "damaged.pcapng"
    with path.open("wb") as file:
        file.writelines(pcapng((packet for at, packet in enumerate(kept) if at % 9 != 5), "damaged"))
    damaged = 0
    for original, again in pairs(path):
        assert json_line(again) == json_line(original)
        assert row_line(again.row, 0) == row_line(original.row, 0)
        damaged += bool(original.findings)
    assert damaged
