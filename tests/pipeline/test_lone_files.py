"""Files of every kind: Kafka's own, transcripts, compressed ones, damaged ones, and those that are no captures."""

import bz2
import gzip
import hashlib
import json
import lzma
import random
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lz4.frame
import pytest

from dissector.capture import CaptureError
from dissector.capture_session import Capture
from dissector.conversation.transcript import frame_lines
from dissector.pipeline.file_scan import FileScan
from dissector.pipeline.lone_files import KEPT_BYTES
from dissector.pipeline.partition_rows import WriteOptions
from dissector.protocol.records.batch import Record
from tests.cases import cases
from tests.conftest import PCAPS, some_of
from tests.networks import traffic, write_pcap
from tests.pipeline.rolling import packets, pcap, pcapng
from tests.pipeline.without_spark import Tables, problems, shown, shown_by_tables, tables
from tests.protocol.records.test_batch import batch
from tests.traffic import Turn, conversation, ethernet, request, response
from tests.traffic import pcap as made_pcap
from tests.transport.wrapping import ethernet as framed
from tests.transport.wrapping import fragments
from tests.zstd_library import zstd

LOGS = [path for path in sorted((PCAPS / "segments").glob("*/*")) if path.suffix in (".log", ".checkpoint")]
INDEXES = [path for path in sorted((PCAPS / "segments").glob("*/*index")) if path.stat().st_size]
JAVA = PCAPS / "java.pcapng"


def plans(made: Tables) -> list[FileScan]:
    return [each["plan"] for each in made["plans"]]


def of(folder: Path, data: bytes, name: str = "some.file") -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


@pytest.mark.long
@pytest.mark.slow
@cases("path", LOGS + INDEXES, ids=lambda path: f"{path.parent.name}{path.suffix}")
def test_kafka_s_files_are_what_show_prints(path: Path) -> None:
    try:
        expected = shown([path])
    except CaptureError:
        assert path.suffix == ".txnindex"
        return
    made = tables([path])
    assert shown_by_tables(made) == expected
    [plan] = plans(made)
    assert plan.packets == expected.total() == len(made["exchanges"])
    assert {each["capture"] for each in made["exchanges"]} == {hashlib.sha256(path.read_bytes()).hexdigest()[:16]}
    assert not made["connections"]
    assert bool(made["records"]) == (path in LOGS)


def test_a_log_under_another_name_has_the_same_rows(tmp_path: Path) -> None:
    """Its folder names the topic; the file's name, and where the folder lies, do not matter."""
    [path] = (PCAPS / "segments").glob("rdkafka-codecs-0/*.log")
    folder = tmp_path / path.parent.name
    folder.mkdir()
    again = of(folder, path.read_bytes(), "00000000000000000007.log")
    one, other = tables([path]), tables([again])
    for name in ("exchanges", "records", "findings"):
        assert one[name] == other[name]


def transcript() -> str:
    lines = []
    for number in range(5):
        lines += frame_lines(request(number), from_client=True, connection=1)
        lines += frame_lines(response(number), from_client=False, connection=1)
    return "".join(f"{line}\n" for line in lines)


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize(
    "form", some_of(["gzip", "hex", "pcap, no times", "raw IP", "two at once"], "gzip", "two at once")
)
def test_files_of_any_form_are_what_show_prints(tmp_path: Path, form: str) -> None:
    found = packets(JAVA)
    files = {
        "gzip": lambda: [of(tmp_path, gzip.compress(JAVA.read_bytes()))],
        "hex": lambda: [of(tmp_path, transcript().encode())],
        "pcap, no times": lambda: [of(tmp_path, pcap([each._replace(time_ns=0) for each in found]))],
        "raw IP": lambda: [of(tmp_path, made_pcap([each.ip() for each in traffic().packets], link_type=101))],
        "two at once": lambda: [of(tmp_path, pcap(found[::2]), "a"), of(tmp_path, pcapng(found[1::2]), "b")],
    }[form]()
    expected = shown(files)
    assert expected.total() > 4
    for parts in (1, 3):
        assert shown_by_tables(tables(files, parts=parts, size=1 << 14, most=50)) == expected


def damaged(data: bytes, chance: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(3):
        at = chance.randrange(100, len(changed) - 100)
        changed[at : at + 60] = bytes(60)
    return bytes(changed)


SAMPLES = {
    "cut": lambda: JAVA.read_bytes()[:-30],
    "damaged": lambda: damaged(JAVA.read_bytes(), random.Random(7)),
    "damaged pcap": lambda: damaged(pcap(packets(JAVA)), random.Random(5)),
    "gzip, damaged inside": lambda: gzip.compress(damaged(JAVA.read_bytes(), random.Random(7))),
    "gzip, cut": lambda: gzip.compress(JAVA.read_bytes())[:-3000],
    "log, cut": lambda: LOGS[-1].read_bytes()[:-9],
    "log, then others": lambda: LOGS[-1].read_bytes() + bytes(range(250)),
    "link type that nobody knows": lambda: made_pcap([bytes(60)] * 7, link_type=147),
    "a packet cut off": lambda: made_pcap([ethernet(each) for each in traffic().packets], snaplen=40),
    "a fragment lost": lambda: made_pcap(
        [framed(part) for number, each in enumerate(traffic().packets)
         for part in fragments(each.ip(), number, 24)[number == 30 :]]
    ),
    "no packets": lambda: pcapng([]),
}  # fmt: skip
"""What is wrong with files: each has its lines, and what can be kept of it in quarantine."""
KEPT_OF = {"cut", "damaged", "damaged pcap", "gzip, damaged inside", "gzip, cut", "log, cut", "log, then others"}


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize(
    "name", some_of(SAMPLES, "cut", "gzip, damaged inside", "log, cut", "a fragment lost", "no packets")
)
def test_problems_are_reported_as_show_reports_them(tmp_path: Path, name: str) -> None:
    data = SAMPLES[name]()
    path = of(tmp_path, data)
    made = tables([path], parts=3, size=1 << 14, most=50, options=WriteOptions(secrets=True))
    with Capture([str(path)]) as capture:
        expected = sum(1 for _ in capture.exchanges())
    assert [each.message for each in plans(made)[0].problems + problems(made)] == [
        each.message for each in capture.problems
    ]
    assert len(made["exchanges"]) == expected
    assert bool(made["quarantine"]) == (name in KEPT_OF)
    plain = zlib.decompressobj(wbits=31).decompress(data) if name.startswith("gzip") else data
    for each in made["quarantine"]:
        assert each["size"] > 0
        assert each["data"] == plain[each["at"] : each["at"] + each["size"]]
    for options in (WriteOptions(), WriteOptions(secrets=True, records=False)):
        unkept = tables([path], options=options)["quarantine"]
        assert unkept == [row | {"data": None} for row in made["quarantine"]]


def with_checksum(data: bytes) -> bytes:
    """As zstd's own program writes it."""
    return zstd.compress(data, options={zstd.CompressionParameter.checksum_flag: 1})


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize(
    "packed",
    some_of(
        [gzip.compress, bz2.compress, lzma.compress, with_checksum, lz4.frame.compress], gzip.compress, with_checksum
    ),
)
def test_what_cant_be_decompressed_is_kept_beside_its_line(tmp_path: Path, packed: Callable[[bytes], bytes]) -> None:
    """In the second of two members; where it is noticed may be behind the damage."""
    plain = (PCAPS / "kraft-quorum.pcapng").read_bytes()
    good, bad = packed(plain[:60_000]), packed(plain[60_000:])
    at = len(bad) // 2
    data = good + bad[:at] + b"\xff" * 300 + bad[at + 300 :]
    path = of(tmp_path, data)
    made = tables([path], parts=2, options=WriteOptions(secrets=True))
    [row] = [each for each in made["quarantine"] if "data damaged" in each["reason"]]
    assert len(good) - 8_192 < row["at"] < len(data)
    assert row["size"] == len(data) - row["at"]
    assert row["data"] == data[row["at"] :][:KEPT_BYTES]
    assert any("data damaged" in each.message for each in plans(made)[0].problems)
    assert row["packet"] == plans(made)[0].packets + 1
    assert shown_by_tables(tables([path], parts=2)) == shown([path])


def test_of_much_that_cant_be_read_the_beginning_is_kept(tmp_path: Path) -> None:
    data = pcap(packets(JAVA)) + b"\xff" * (3 * KEPT_BYTES)
    made = tables([of(tmp_path, data)], options=WriteOptions(secrets=True))
    assert [(len(each["data"]), each["size"] > KEPT_BYTES) for each in made["quarantine"]] == [(KEPT_BYTES, True)]


@cases("data", [b"", b"nothing that anybody knows", b"\xd4\xc3\xb2\xa1cut", b"\x00" * 70_000])
def test_of_a_file_that_is_no_capture_nothing_is_kept(tmp_path: Path, data: bytes) -> None:
    """It may be a key log, or anything that lies in the folder."""
    path = of(tmp_path, data)
    made = tables([path], options=WriteOptions(secrets=True))
    with pytest.raises(CaptureError) as error, Capture([str(path)]):
        pass
    [row] = made["quarantine"]
    assert (row["at"], row["size"], row["data"], row["reason"]) == (None, len(data), None, str(error.value))
    assert [each.message for each in plans(made)[0].problems] == [str(error.value)]


def test_what_is_not_there_or_a_folder_has_a_line_and_no_row(tmp_path: Path) -> None:
    made = tables([tmp_path / "absent", tmp_path])
    assert [len(each.problems) for each in plans(made)] == [1, 1]
    assert not made["quarantine"]


[OUTBOX] = (PCAPS / "segments").glob("java-outbox-0/*.log")


@pytest.mark.long
@cases("path", [JAVA, OUTBOX], ids=["a capture", "a log"])
@cases("kept", [True, False])
@cases("frames", [True, False])
def test_with_hashes_nothing_that_a_record_holds_is_in_any_table(path: Path, kept: bool, frames: bool) -> None:
    made = tables([path], options=WriteOptions(frames=frames, records=kept))
    whole = repr({name: rows for name, rows in made.items() if name not in ("plans", "tallies")})
    assert ("teapot" in whole or b"teapot".hex() in whole) == kept
    assert made["records"]
    for each in made["records"]:
        assert (each.get("value") is None) or kept
        assert each["value_size"] is None or kept == (each.get("value_sha256") is None)
        assert not kept or each["value_size"] == (None if each["value"] is None else len(each["value"]))


def large(folder: Path, size: int, port: int = 40_001) -> Path:
    """A Produce request with one batch of about `size` bytes, a record a MiB."""
    records = [Record(100 + n, 5_000, b"k", bytes([n]) * (1 << 20), []) for n in range(size >> 20)]
    field = batch(records)
    body = struct.pack(">hhii", -1, -1, 1000, 1)
    body += struct.pack(">h", 6) + b"orders" + struct.pack(">iii", 1, 0, len(field)) + field
    turn = Turn(True, request(0, api_key=0, version=3, body=body))
    packets = conversation([turn], segment=60_000, client=("10.0.0.1", port))
    return write_pcap(folder, f"large {port}", map(ethernet, packets))


@pytest.mark.exhaustive
@pytest.mark.slow
def test_a_body_too_large_for_a_cell_is_reported_and_its_records_are_kept(tmp_path: Path) -> None:
    made = tables([large(tmp_path, 40 << 20)])
    [body], [finding] = made["bodies"], [each for each in made["findings"] if each["code"] == "cell-too-large"]
    assert finding["path"] == "request"
    request_value: dict[str, Any] = json.loads(body["request"])
    [field] = [each["partition_data"][0]["records"] for each in request_value["body"]["topic_data"]]
    assert field["batches"][0]["records_count"] == 40
    assert "records" not in field["batches"][0]
    assert [(each["topic"], each["value_size"]) for each in made["records"]] == [("orders", 1 << 20)] * 40
