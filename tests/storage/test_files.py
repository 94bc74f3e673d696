"""Kafka's files: a real broker's agree with each other; generated ones are rows to the byte; damage is reported."""

import json
import re
import struct
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissector.capture import CaptureError
from dissector.capture_session import Capture
from dissector.exchange.model import Exchange
from dissector.protocol.codec.writer import write
from dissector.protocol.message import Traced
from dissector.protocol.records.batch import Record
from tests.cases import cases
from tests.cli.test_commands import kdissect
from tests.conftest import PCAPS
from tests.protocol.records.test_batch import batch, many_records
from tests.protocol.records.test_legacy import Made, many, message, wrapper
from tests.protocol.trees import assert_tiled
from tests.traffic import capture_of, conversation, exchanges

pytestmark = pytest.mark.slow

SEGMENTS = PCAPS / "segments"
"""Files of a real broker, and beside each what Kafka's own DumpLogSegments prints of it."""
CODECS = str(SEGMENTS / "rdkafka-codecs-0" / "00000000000000000000.log")
LEDGER = str(SEGMENTS / "rdkafka-ledger-0" / "00000000000000000000.log")
LOGS = [path for path in sorted(SEGMENTS.glob("*/*")) if path.suffix in (".log", ".checkpoint")]
INDEXES = [path for path in sorted(SEGMENTS.glob("*/*index")) if path.suffix != ".txnindex" and path.stat().st_size]
WORDS = re.compile(r"([A-Za-z]+): (\[.*?\]|\S+)")
PREALLOCATED = bytes(12 * 2000)


def rows_of(*paths: str) -> list[Exchange]:
    with Capture(paths, show_secrets=True) as capture:
        found = list(capture.exchanges())
        assert not capture.problems
    return found


def body(exchange: Exchange) -> dict[str, Any]:
    assert exchange.request is not None
    return exchange.request.body


def of(folder: Path, data: bytes) -> str:
    """A file with a name that says nothing."""
    path = folder / "some.file"
    path.write_bytes(data)
    return str(path)


def last_offset(values: dict[str, Any]) -> int:
    return int(values["base_offset"]) + int(values["last_offset_delta"])


def dumped(path: Path, beginning: str) -> list[dict[str, str]]:
    """What Kafka's tool says: a dictionary for each line that begins so."""
    lines = path.with_name(f"{path.name}.dump.txt").read_text().splitlines()
    return [dict(WORDS.findall(line)) for line in lines if line.startswith(beginning)]


@cases("path", LOGS, ids=lambda path: f"{path.parent.name}{path.suffix}")
def test_batches_and_records_are_those_that_kafkas_tool_finds(path: Path) -> None:
    rows = rows_of(str(path))
    batches = [body(exchange) for exchange in rows]
    for values, truth in zip(batches, dumped(path, "baseOffset: "), strict=True):
        ours = {
            "baseOffset": values["base_offset"], "lastOffset": last_offset(values), "count": values["records_count"],
            "producerId": values["producer_id"], "producerEpoch": values["producer_epoch"],
            "baseSequence": values["base_sequence"], "partitionLeaderEpoch": values["partition_leader_epoch"],
            "isTransactional": values["transactional"], "isControl": values["control"], "crc": values["crc"],
            "position": values["position"], "CreateTime": values["max_timestamp"], "magic": values["magic"],
            "compresscodec": values["compression"], "isvalid": values["crc_valid"],
        }  # fmt: skip
        assert {name: str(value).lower() for name, value in ours.items()} == {name: truth[name] for name in ours}
    assert [str(exchange.row.request_size) for exchange in rows] == [t["size"] for t in dumped(path, "baseOffset: ")]
    records = [record for values in batches for record in values["records"]]
    for record, truth in zip(records, dumped(path, "| offset: "), strict=True):
        sizes = [-1 if record[name] is None else len(record[name]) for name in ("key", "value")]
        ours = [str(number) for number in (record["offset"], record["timestamp"], *sizes)]
        assert ours == [truth[name] for name in ("offset", "CreateTime", "keySize", "valueSize")]
        assert "[" + ",".join(header["key"] for header in record["headers"]) + "]" == truth["headerKeys"]


@cases("path", INDEXES, ids=lambda path: f"{path.parent.name}{path.suffix}")
def test_entries_of_indexes_are_those_that_kafkas_tool_finds(path: Path) -> None:
    names = {"timestamp": "timestamp", "relative_offset": "offset", "position": "position"}
    entries = [{names[name]: str(value) for name, value in body(exchange).items()} for exchange in rows_of(str(path))]
    first = "timestamp: " if path.suffix == ".timeindex" else "offset: "
    assert entries == dumped(path, first)


@pytest.mark.long
@cases("path", LOGS, ids=lambda path: f"{path.parent.name}{path.suffix}")
def test_batches_of_a_real_broker_tile_their_file(path: Path) -> None:
    at = 0
    for exchange in rows_of(str(path)):
        assert exchange.request is not None
        assert not exchange.findings
        assert_tiled(Traced(exchange.request.tree, exchange.request.sources, []))
        assert body(exchange)["position"] == at
        at += exchange.request.size
    assert at == path.stat().st_size


@cases(
    ("folder", "words"),
    [
        ("__consumer_offsets-0", "OffsetCommitValue"),
        ("__transaction_state-0", "TransactionLogValue"),
        ("__cluster_metadata-0", "TopicRecord"),
        ("__share_group_state-0", "ShareSnapshotValue"),
        ("__cluster_metadata-0/*.checkpoint", "SnapshotHeaderRecord"),
        ("rdkafka-ledger-0", "EndTxnMarker"),
    ],
)
def test_records_of_internal_topics_are_decoded(folder: str, words: str) -> None:
    [path] = SEGMENTS.glob(folder if "*" in folder else f"{folder}/*.log")
    notes = {node.note.split(" v")[0] for e in rows_of(str(path)) if e.request for node in e.request.tree.walk()}
    assert words in notes
    assert any("value_decoded" in record for e in rows_of(str(path)) for record in body(e)["records"])


@pytest.mark.parametrize("show_secrets", [True, False])
def test_secrets_of_the_metadata_log_are_masked(tmp_path: Path, show_secrets: bool) -> None:
    credential = {
        "name": "alice",
        "mechanism": 1,
        "salt": b"salt",
        "stored_key": b"hidden one",
        "server_key": b"hidden two",
    }
    value = b"\x01\x0b\x00" + write("UserScramCredentialRecord", 0, {**credential, "iterations": 4096})
    folder = tmp_path / "__cluster_metadata-0"
    folder.mkdir()
    path = of(folder, batch([Record(100, 5_000, None, value, [])]))
    with Capture([path], show_secrets=show_secrets) as capture:
        [exchange] = capture.exchanges()
        assert exchange.request is not None
        assert (b"hidden" in exchange.request.data) == show_secrets
        assert ("hidden" in str(body(exchange))) == show_secrets
        assert any("masked" in node.note for node in exchange.request.tree.walk()) != show_secrets
        assert body(exchange)["records"][0]["value_decoded"]["name"] == "alice"
        assert not exchange.findings


def test_the_metadata_log_is_recognized_by_its_content(tmp_path: Path) -> None:
    [path] = SEGMENTS.glob("__cluster_metadata-0/*.log")
    there = [body(exchange) for exchange in rows_of(str(path))]
    assert [body(exchange) for exchange in rows_of(of(tmp_path, path.read_bytes()))] == there


def test_what_producers_and_transactions_leave_is_in_the_words() -> None:
    words = [exchange.row.info for exchange in rows_of(LEDGER)]
    assert words[0] == "offsets 0–4 · 5 records · producer 0 epoch 0 sequence 0 · transactional"
    assert words[1].endswith("transactional · control")


@given(data=st.data(), magic=st.integers(0, 1), blank=st.sampled_from([b"", bytes(5), PREALLOCATED]))
def test_made_segments_are_rows_to_the_byte(tmp_path: Path, data: st.DataObject, magic: int, blank: bytes) -> None:
    old: list[Made] = data.draw(many)
    parts = [wrapper(old, magic, 1), *(message(made, magic) for made in old)]
    parts += [batch(records, codec) for codec, records in enumerate(data.draw(st.lists(many_records, max_size=4)))]
    if data.draw(st.booleans()):
        parts.reverse()
    found = rows_of(of(tmp_path, b"".join(parts) + blank))
    assert [exchange.request.data for exchange in found if exchange.request] == parts
    for exchange in found:
        assert exchange.request is not None
        assert_tiled(Traced(exchange.request.tree, exchange.request.sources, []))
        assert body(exchange)["crc_valid"]


@given(base=st.sampled_from(LOGS), cut=st.integers(1, 2_000), change=st.integers(0, 2_000), byte=st.integers(0, 255))
def test_damage_is_reported_and_nothing_escapes(tmp_path: Path, base: Path, cut: int, change: int, byte: int) -> None:
    data = bytearray(base.read_bytes()[:2_000])
    data[min(change, len(data) - 1)] = byte
    folder = tmp_path / base.parent.name
    folder.mkdir(exist_ok=True)
    path = of(folder, bytes(data[:cut]))
    words = ""
    try:
        with Capture([path]) as capture:
            for exchange in capture.exchanges():
                assert exchange.request is not None
                assert body(exchange)["position"] >= 0
                assert exchange.request.tree
    except CaptureError as error:
        words = str(error)
    assert "\n" not in words


def test_a_wrong_checksum_is_a_finding(tmp_path: Path) -> None:
    [exchange] = rows_of(of(tmp_path, batch([], crc=7)))
    assert [(finding.code, finding.path) for finding in exchange.findings] == [("bad-crc", "crc")]
    assert exchange.row.severity is not None


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (batch([])[:-1], "at byte 61: the file ends inside a batch; 60 bytes are left out"),
        (b"\xff" * 100, "at byte 61: this is no batch; 100 bytes are left out"),
    ],
)
def test_bytes_after_the_last_batch_are_reported(tmp_path: Path, more: bytes, words: str) -> None:
    path = of(tmp_path, batch([]) + more)
    done = kdissect("show", path)
    assert (done.returncode, len(done.stdout.splitlines())) == (0, 2)
    assert done.stderr.decode() == f"kdissect: {path}: {words}\n"


INDEX = struct.pack(">iiii", 5, 100, 9, 300)
TIMES = struct.pack(">qiqi", 1_700_000_000_000, 0, 1_700_000_000_000, 4)


@cases(
    ("data", "entries"),
    [
        (INDEX, [{"relative_offset": 5, "position": 100}, {"relative_offset": 9, "position": 300}]),
        (INDEX[:8] + PREALLOCATED, [{"relative_offset": 5, "position": 100}]),
        (TIMES + PREALLOCATED, [{"timestamp": 1_700_000_000_000, "relative_offset": n} for n in (0, 4)]),
    ],
)
def test_indexes_are_recognized_by_their_entries(tmp_path: Path, data: bytes, entries: list[dict[str, int]]) -> None:
    assert [body(exchange) for exchange in rows_of(of(tmp_path, data))] == entries


@cases(
    "data",
    [
        INDEX[8:] + INDEX[:8], INDEX + PREALLOCATED + INDEX, INDEX[:12], PREALLOCATED, TIMES[::-1], b"\0" * 7 + b"\1",
        struct.pack(">qi", 4_200_000_000_000, 1), batch([])[:16], b"\xff" + batch([])[1:],
    ],
)  # fmt: skip
def test_what_is_no_file_of_kafka_is_refused(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(CaptureError, match="not a capture"):
        Capture([of(tmp_path, data)])


@given(st.binary(max_size=200))
def test_any_file_is_rows_or_one_plain_error(tmp_path: Path, data: bytes) -> None:
    words = ""
    try:
        with Capture([of(tmp_path, data)]) as capture:
            assert all(exchange.row.info for exchange in capture.exchanges())
    except CaptureError as error:
        words = str(error)
    assert "\n" not in words


def test_files_and_captures_stand_beside_each_other(tmp_path: Path) -> None:
    path = capture_of(tmp_path, conversation(exchanges(2)))
    with Capture([path, LEDGER, path, CODECS]) as capture:
        found = [exchange.row for exchange in capture.exchanges()]
        assert [capture.rows.connection_of(n) for n in range(len(found))] == [row.connection for row in found]
        assert capture.start_ns == found[0].time_ns
    assert [row.number for row in found] == list(range(1, len(found) + 1))
    assert [row.kind for row in found[-2:]] == ["exchange", "exchange"]
    assert {row.server for row in found} == {LEDGER, CODECS, "10.0.0.2:9092"}
    assert {row.connection for row in found if row.kind == "exchange"} == {3}


def test_every_format_prints_them() -> None:
    line = json.loads(kdissect("show", LEDGER, "-f", "json", "--limit", "1").stdout)
    assert (line["kind"], line["number"], line["file"], line["size"], line["position"]) == ("batch", 1, LEDGER, 131, 0)
    assert bytes.fromhex(line["records"][0]["value"]) == b"entry 0"
    tree = kdissect("show", LEDGER, "-f", "tree", "--limit", "1").stdout.decode()
    assert "batch, 131 bytes" in tree
    assert " (valid)  [17+4 UINT32]" in tree


@cases("path", [CODECS, str(INDEXES[0]), str(INDEXES[-1])], ids=lambda path: Path(path).suffix)
@cases("again", [b"", b"\xff" * 4_096], ids=["shorter", "written again"])
def test_entries_that_their_file_has_lost_are_shown_as_lost(path: str, again: bytes, tmp_path: Path) -> None:
    copy = Path(of(tmp_path, Path(path).read_bytes()))
    left = copy.stat().st_size - 100 if path == CODECS else 5
    with Capture([str(copy)]) as capture:
        before = [body(exchange) for exchange in capture.exchanges()]
        with copy.open("r+b") as file:
            file.truncate(left)
            file.seek(left)
            file.write(again)
        after = list(capture.exchanges())
        assert again or "became shorter" in capture.problems[0].message
    assert len(after) == len(before)
    assert path != CODECS or body(after[0]) == before[0]
    for exchange in after:
        assert exchange.request is not None
        assert_tiled(exchange.request.traced)
    codes = {finding.code for finding in after[-1].findings}
    if not again:
        assert codes == {"file-truncated"}
        assert "any more" in after[-1].row.info
    elif path == CODECS:
        assert codes == {"bad-crc"}


def test_what_a_metadata_log_was_overwritten_with_is_masked(tmp_path: Path) -> None:
    folder = tmp_path / "__cluster_metadata-0"
    folder.mkdir()
    path = Path(of(folder, batch([Record(100, 5_000, None, b"hidden", [])])))
    with Capture([str(path)]) as capture:
        assert len(list(capture.exchanges())) == 1
        with path.open("r+b") as file:
            file.seek(8)
            file.write(b"a secret")
        [exchange] = capture.exchanges()
        assert exchange.request is not None
        assert set(exchange.request.data) == {ord("*")}
        assert b"secret" not in repr(body(exchange)).encode()
