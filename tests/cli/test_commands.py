"""The command line as a user meets it: in a process of its own, through pipes."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import IO

import pytest

from tests.cases import cases
from tests.conftest import PCAPS
from tests.forked import PipedProgram, run_module
from tests.traffic import Turn, capture_of, conversation, exchanges, request, response

KDISSECT = [sys.executable, "-m", "dissector.cli.main"]
PROMISED = {
    "kind", "number", "connection", "client", "server", "api_key", "api", "api_version", "correlation_id", "client_id",
    "latency_ns", "request_transfer_ns", "wait_ns", "response_transfer_ns", "request", "response", "findings",
}  # fmt: skip
"""The keys of an exchange's line, as the interface promises them."""
JAVA = str(PCAPS / "java.pcapng")
ADMIN = str(PCAPS / "java-admin.pcapng")
TRANSACTIONS = str(PCAPS / "java-transactions.pcapng")


def kdissect(*words: str, data: bytes = b"", file: IO[bytes] | None = None) -> subprocess.CompletedProcess[bytes]:
    """Run it; standard input is a pipe with `data`, or a file."""
    environment = os.environ | {"NO_COLOR": "1", "COLUMNS": "100"}
    return run_module(KDISSECT[-1], words, environment, data=data, file=file)


@pytest.mark.long
@cases("words", [["show", JAVA], [JAVA], ["open", JAVA]])
def test_without_a_terminal_the_rows_are_printed(words: list[str]) -> None:
    done = kdissect(*words)
    assert done.returncode == 0
    assert b"Produce" in done.stdout
    assert not done.stderr


def test_json_is_one_object_an_exchange_with_the_promised_keys() -> None:
    lines = kdissect("show", JAVA, "--format", "json").stdout.splitlines()
    assert len(lines) == len(kdissect("show", JAVA).stdout.splitlines()) - 1
    for number, line in enumerate(lines, 1):
        value = json.loads(line)
        assert value["number"] == number
        assert value.keys() == PROMISED
        assert {"time_ns", "size", "header", "body"} == value["request"].keys() - {"fetch_session"}
        first_byte_ns = value["response"]["time_ns"] - value["request"]["time_ns"]
        assert value["latency_ns"] == first_byte_ns + value["response_transfer_ns"]
        assert value["wait_ns"] == first_byte_ns - value["request_transfer_ns"]


def test_json_holds_records_with_their_bytes() -> None:
    lines = [json.loads(line) for line in kdissect("show", JAVA, "-f", "json").stdout.splitlines()]
    [batch, *_] = [
        batch
        for line in lines if line["api"] == "Produce" and line["request"]["body"]["topic_data"]
        for topic in line["request"]["body"]["topic_data"]
        for partition in topic["partition_data"]
        for batch in partition["records"]["batches"]
    ]  # fmt: skip
    assert batch["crc_valid"] is True
    assert bytes.fromhex(batch["records"][0]["key"]).startswith(b"customer-")
    assert batch["records"][0]["headers"][1] == {"key": "empty", "value": None}


def test_the_tree_names_every_field_with_its_place() -> None:
    text = kdissect("show", JAVA, "--format", "tree", "--limit", "1").stdout.decode()
    assert "request_api_key: 18 (ApiVersions)  [4+2 INT16]" in text
    assert 'client_software_name: "apache-kafka-java"' in text
    assert "error_code: 0 (NONE)" in text


@pytest.mark.long
def test_the_tree_names_numbers_and_json_keeps_them() -> None:
    words = kdissect("show", ADMIN, "--format", "tree").stdout.decode()
    assert re.search(r"  operation: 2 \(ALL\)  \[\d+\+1 INT8\]", words)
    assert re.search(r"  permission_type: 3 \(ALLOW\)  ", words)
    assert re.search(r"  timestamp: -3 \(MAX\)  ", words)
    assert re.search(r"_operations: \d+ \((\w+, )+\w+\)  ", words)
    assert "include_cluster_authorized_operations: true  [" in words
    lines = [json.loads(line) for line in kdissect("show", ADMIN, "--format", "json").stdout.splitlines()]
    created = next(line for line in lines if line["api"] == "CreateAcls")
    assert created["request"]["body"]["creations"][0]["operation"] == 2


@pytest.mark.long
def test_an_error_says_what_it_asks_of_the_client() -> None:
    explanation = "A normal first step of joining: repeat JoinGroup at once"
    words = kdissect("show", JAVA, "--format", "tree").stdout.decode()
    assert re.search(rf"error_code: 79 \(MEMBER_ID_REQUIRED\)  \[.*\]\n +→ {explanation}", words)
    lines = [json.loads(line) for line in kdissect("show", JAVA, "--format", "json").stdout.splitlines()]
    found = [f["message"] for line in lines for f in line["findings"] if f["code"] == "error-response"]
    assert any(message.startswith(f"MEMBER_ID_REQUIRED: {explanation}") for message in found)
    row = next(line for line in kdissect("show", JAVA).stdout.decode().splitlines() if "MEMBER_ID_REQUIRED" in line)
    assert explanation not in row


def test_errors_of_partitions_are_named_whatever_their_field_is_called() -> None:
    rows = kdissect("show", TRANSACTIONS).stdout.decode().splitlines()
    assert [row for row in rows if "AddPartitionsToTxn" in row and "CONCURRENT_TRANSACTIONS" in row]


def test_standard_input_is_a_capture_too() -> None:
    assert kdissect("show", "-", data=Path(JAVA).read_bytes()).stdout == kdissect("show", JAVA).stdout


@cases(
    ("name", "content", "words"),
    [
        ("none.pcap", None, "no such file"),
        ("empty.pcap", b"", "empty file"),
        ("notes.txt", b"buy milk, and tea\n", "not a capture"),
    ],
)
def test_bad_input_is_one_plain_line_and_exit_code_2(
    tmp_path: Path, name: str, content: bytes | None, words: str
) -> None:
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    done = kdissect("show", str(path))
    assert done.returncode == 2
    assert not done.stdout
    [line] = done.stderr.decode().splitlines()
    assert line.startswith(f"kdissect: {path}: {words}")


def test_a_truncated_capture_shows_what_is_there_and_says_what_is_not(tmp_path: Path) -> None:
    path = tmp_path / "cut.pcapng"
    path.write_bytes(Path(JAVA).read_bytes()[:20_000])
    done = kdissect("show", str(path))
    assert done.returncode == 0
    assert len(done.stdout.splitlines()) > 5
    [line] = done.stderr.decode().splitlines()
    assert "the file ends after" in line


def test_a_capture_without_kafka_is_a_negative_answer(tmp_path: Path) -> None:
    web = conversation([Turn(True, b"GET / HTTP/1.1\r\n\r\n")], server=("10.0.0.2", 80))
    done = kdissect("show", capture_of(tmp_path, web))
    assert done.returncode == 1
    assert b"no Kafka in it (3 packets, 1 TCP connection: HTTP 1)" in done.stderr


def test_what_kafka_over_tls_needs_is_said(tmp_path: Path) -> None:
    encrypted = str(tmp_path / "encrypted.pcapng")
    tls = str(PCAPS / "tls" / "rskafka-1.3-scram.pcapng")
    assert kdissect("export", tls, "-w", encrypted, "--no-secrets").returncode == 0
    done = kdissect("show", encrypted)
    assert done.returncode == 1
    assert b"TLS 3); Kafka over TLS needs --keylog FILE" in done.stderr


def test_files_given_together_are_one_capture() -> None:
    both = kdissect("show", JAVA, str(PCAPS / "aiokafka.pcapng")).stdout.splitlines()
    assert len(both) > len(kdissect("show", JAVA).stdout.splitlines())


@pytest.mark.slow
@pytest.mark.parametrize("form", ["text", "tree", "json"])
def test_a_reader_that_goes_away_ends_it_quietly(form: str) -> None:
    with PipedProgram(KDISSECT[-1], "show", JAVA, "-f", form) as process:
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == ""
        assert process.wait(20) == 0


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize(("words", "closed", "code"), [(["show", JAVA], ">&-", 0), (["show", "none.pcap"], "2>&-", 2)])
def test_a_closed_standard_stream_takes_nothing_and_spoils_nothing(words: list[str], closed: str, code: int) -> None:
    line = f"exec {shlex.join([sys.executable, '-m', 'dissector', *words])} {closed}"
    done = subprocess.run(["sh", "-c", line], capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (code, b"", b"")


def test_standard_input_is_one_file_of_a_capture() -> None:
    with Path(JAVA).open("rb") as file:
        done = kdissect("show", "-", "-", file=file)
    message = b"kdissect: standard input: can be read only once\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, b"", message)


@pytest.mark.long
def test_help_has_an_example_and_bad_use_is_code_2() -> None:
    for words in (["--help"], ["show", "--help"], ["open", "--help"]):
        done = kdissect(*words)
        assert done.returncode == 0
        assert b"Example" in done.stdout
    assert kdissect("show").returncode == 2
    assert kdissect("show", JAVA, "--format", "xml").returncode == 2
    assert b"Traceback" not in kdissect("show", JAVA, "--nonsense").stderr


@pytest.mark.long
@cases(
    ("words", "said"),
    [
        (["show"], "missing argument 'FILE…'; see kdissect show --help"),
        (["show", JAVA, "--limt", "3"], "no such option: --limt; did you mean --limit; see kdissect show --help"),
        (["show", JAVA, "--limit", "z"], "--limit: 'z' is not a number; see kdissect show --help"),
        (["tables", "nope"], "no such command 'nope'; see kdissect tables --help"),
    ],
)
def test_bad_use_is_one_plain_line(words: list[str], said: str) -> None:
    done = kdissect(*words)
    assert done.returncode == 2
    assert done.stderr.decode() == f"kdissect: {said}\n"
    assert not done.stdout


@cases("form", ["text", "tree", "json"])
def test_no_control_byte_from_the_wire_reaches_the_terminal(tmp_path: Path, form: str) -> None:
    hostile = "\x1b]0;owned\x07\x1b[2J\u202e\x9b31m[/bold]\ud800".encode("utf-8", "surrogatepass")
    topic = len(hostile).to_bytes(2, "big") + hostile
    body = (1).to_bytes(4, "big") + topic
    answer = bytes(4) + (1).to_bytes(4, "big") + b"\x00\x03" + topic + bytes(4)
    turns = [Turn(True, request(1, client_id=hostile, body=body)), Turn(False, response(1, answer))]
    out = kdissect("show", capture_of(tmp_path, conversation(turns)), "-f", form).stdout.decode()
    assert "owned" in out
    assert not {c for c in out if (ord(c) < 32 and c != "\n") or 0x7F <= ord(c) < 0xA0 or c in "\u202e\u2028"}


def test_rows_of_a_made_capture_read_as_they_should(tmp_path: Path) -> None:
    out = kdissect("show", capture_of(tmp_path, conversation(exchanges(1)))).stdout.decode().splitlines()
    assert out[1].split() == ["1", "0.002000", "C1", "Metadata", "0", "0", "23", "16", "1.0", "ms", "tests:"]
