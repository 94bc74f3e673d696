"""`kdissect stats` as a user meets it."""

import json
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from dissector.cli.stats import breakdown
from dissector.exchange.row_fields import ROW_FIELDS
from tests.cases import cases
from tests.cli.test_commands import JAVA, TRANSACTIONS, kdissect
from tests.conftest import PCAPS
from tests.needs import needs
from tests.traffic import Turn, capture_of, conversation, request, response

SLOW = str(PCAPS / "trouble-slow.pcapng")


def test_all_tables_fit_80_columns_but_for_long_names() -> None:
    done = kdissect("stats", TRANSACTIONS)
    assert (done.returncode, done.stderr) == (0, b"")
    lines = done.stdout.decode().splitlines()
    assert lines[0] == "64 exchanges; 8.4 kB out, 18 kB in; 4 with errors, 0 unanswered"
    heads = [line.split("  ")[-1] for line in lines if line.lstrip().startswith(("count", "bytes"))]
    names = ["APIs", "Clients", "Connections", "Topics (records)", "Versions", "Errors", "Fields", "Parts"]
    assert heads == names
    assert all(len(line) <= 80 for line in lines if line.lstrip().startswith("count"))
    assert any(line.split()[:3] == ["7", "651", "392"] and line.endswith("AddPartitionsToTxn v5") for line in lines)


def test_one_table_has_all_its_lines() -> None:
    lines = kdissect("stats", TRANSACTIONS, "--by", "api").stdout.decode().splitlines()
    rows = kdissect("show", TRANSACTIONS, "--fields", "api,api_version").stdout.decode().splitlines()
    counts = Counter(" v".join(row.split()) for row in rows)
    assert {line.split("  ")[-1]: int(line.split()[0]) for line in lines[2:]} == counts


@pytest.mark.long
@cases("by", ["api", "client", "connection", "topic", "partition", "version", "error", "field"])
def test_json_is_one_object_a_line(by: str) -> None:
    objects = [
        json.loads(line) for line in kdissect("stats", TRANSACTIONS, "--by", by, "-f", "json").stdout.splitlines()
    ]
    assert objects
    assert {each["by"] for each in objects} == {by}
    if by in ("api", "client", "connection", "version"):
        assert sum(each["exchanges"] for each in objects) == 64
        assert all(
            each["latency_ns"]["min"] <= each["latency_ns"]["p50"] <= each["latency_ns"]["max"] for each in objects
        )


@cases("name", [*ROW_FIELDS])
def test_every_row_field_can_be_counted_by(name: str) -> None:
    assert breakdown(name) is not None


def test_a_field_that_no_row_has_is_told() -> None:
    done = kdissect("stats", JAVA, "--by", "tls.principal")
    assert (done.returncode, done.stdout, done.stderr) == (1, b"", b"kdissect: no row has tls.principal\n")


@pytest.mark.long
@cases("name", ["client_id", "broker", "group", "severity", "kind", "finding"])
def test_rows_are_counted_by_the_values_that_show_prints(name: str) -> None:
    objects = [json.loads(line) for line in kdissect("stats", JAVA, "--by", name, "-f", "json").stdout.splitlines()]
    field = ROW_FIELDS[name]
    printed = kdissect("show", JAVA, "--fields", name).stdout.decode().splitlines()
    expected = Counter(value for line in printed for value in (line.split(",") if line else ()))
    assert {each[field.json_key or field.name]: each["exchanges"] for each in objects} == expected
    assert expected


def test_times_and_latencies_are_counted_in_ranges() -> None:
    for name in ("time", "latency_ns"):
        objects = [json.loads(line) for line in kdissect("stats", JAVA, "--by", name, "-f", "json").stdout.splitlines()]
        assert 1 < len(objects) < 20


def test_a_latency_reads_as_in_the_list() -> None:
    head, *rows = kdissect("show", SLOW).stdout.decode().splitlines()
    end = head.index("Latency") + len("Latency")
    listed = [row[end - 9 : end].strip() for row in rows]
    counted = kdissect("stats", SLOW, "--by", "number").stdout.decode().splitlines()[2:]
    assert sorted(row[52:61].strip() for row in counted) == sorted(listed)


def test_json_of_all_begins_with_the_total() -> None:
    objects = [json.loads(line) for line in kdissect("stats", JAVA, "--format", "json").stdout.splitlines()]
    assert (objects[0]["by"], objects[0]["exchanges"], objects[0]["rows"]) == ("total", 60, {"exchange": 60})
    assert {"api", "topic", "field"} < {each["by"] for each in objects}


def test_bad_use_and_negative_answers_are_one_line(tmp_path: Path) -> None:
    web = conversation([Turn(True, b"GET / HTTP/1.1\r\n\r\n")], server=("10.0.0.2", 80))
    done = kdissect("stats", capture_of(tmp_path, web))
    assert (done.returncode, done.stdout) == (1, b"")
    assert b"no Kafka in it" in done.stderr
    assert kdissect("stats", str(tmp_path / "none.pcap")).returncode == 2
    assert kdissect("stats", JAVA, "--by", "colour").returncode == 2
    assert b"Example" in kdissect("stats", "--help").stdout


def test_no_control_byte_from_the_wire_reaches_the_terminal(tmp_path: Path) -> None:
    hostile = "\x1b]0;owned\x07\x1b[2J\u202e\x9b31m[/bold]\ud800".encode("utf-8", "surrogatepass")
    topic = len(hostile).to_bytes(2, "big") + hostile
    answer = bytes(4) + (1).to_bytes(4, "big") + b"\x00\x03" + topic + bytes(4)
    turns = [
        Turn(True, request(1, client_id=hostile, body=(1).to_bytes(4, "big") + topic)),
        Turn(False, response(1, answer)),
    ]
    path = capture_of(tmp_path, conversation(turns))
    for form in ("text", "json"):
        out = kdissect("stats", path, "-f", form).stdout.decode()
        assert out.count("owned") >= 3
        assert not {c for c in out if (ord(c) < 32 and c != "\n") or 0x7F <= ord(c) < 0xA0 or c in "\u202e\u2028"}


@pytest.mark.long
@pytest.mark.slow
def test_tshark_counts_the_same_requests() -> None:
    needs("tshark")
    tshark = subprocess.run(
        ["tshark", "-r", TRANSACTIONS, "-d", "tcp.port==9092,kafka", "-T", "fields", "-e", "kafka.api_key",
         "-Y", "kafka.request_frame == 0 || (kafka.api_key && tcp.dstport == 9092)"],
        capture_output=True, check=True,
    )  # fmt: skip
    theirs = Counter(int(key) for line in tshark.stdout.split() for key in line.split(b","))
    objects = [
        json.loads(line) for line in kdissect("stats", TRANSACTIONS, "--by", "api", "-f", "json").stdout.splitlines()
    ]
    ours = Counter({each["api_key"]: each["exchanges"] for each in objects})
    assert ours == theirs


def test_a_filter_counts_what_fits_it() -> None:
    done = kdissect("stats", TRANSACTIONS, "-Y", "api == EndTxn", "--by", "client", "-f", "json")
    [line] = [json.loads(line) for line in done.stdout.splitlines()]
    assert (line["client_id"], line["software"], line["exchanges"]) == ("producer-java-mill-1", "apache-kafka-java", 3)
    done = kdissect("stats", TRANSACTIONS, "-Y", "latency > 1h")
    assert (done.returncode, done.stdout) == (1, b"")
    assert b"0 of 64 rows match" in done.stderr
    assert kdissect("stats", TRANSACTIONS, "-Y", "latency >").returncode == 2


def test_responses_alone_are_counted(tmp_path: Path) -> None:
    turns = [Turn(False, response(number, b"\0\0\0\0\0\0")) for number in range(5)]
    done = kdissect("stats", capture_of(tmp_path, conversation(turns)))
    assert done.returncode == 0
    assert done.stdout.startswith(b"5 exchanges")


@pytest.mark.long
def test_a_filter_on_findings_counts_the_rows_that_show_prints() -> None:
    """Findings that only several messages show, too."""
    shown = kdissect("show", SLOW, "-Y", "finding == slow", "-f", "json").stdout.splitlines()
    [line] = kdissect("stats", SLOW, "-Y", "finding == slow", "--by", "api", "-f", "json").stdout.splitlines()
    assert json.loads(line)["exchanges"] == len(shown) > 0
