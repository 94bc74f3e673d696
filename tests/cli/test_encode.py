"""`kdissect encode` as a user meets it: a transcript on stdout, a capture with -w, one line for what is wrong."""

import json
from pathlib import Path
from typing import Any

import pytest

from dissector.capture_session import Capture
from tests.cases import cases
from tests.cli.test_commands import JAVA, kdissect
from tests.exchange.test_from_json import METADATA
from tests.imprecise import DURATIONS
from tests.traffic import Turn, capture_of, conversation, request, response

pytestmark = pytest.mark.slow


def lines_of(path: str) -> bytes:
    return kdissect("show", path, "-f", "json").stdout


@pytest.mark.long
def test_a_pipe_of_show_and_encode_is_a_transcript_that_show_reads() -> None:
    transcript = kdissect("encode", data=lines_of(JAVA))
    assert transcript.returncode == 0
    assert not transcript.stderr
    again = kdissect("show", "-", "-f", "json", data=transcript.stdout).stdout.splitlines()
    for was, now in zip(lines_of(JAVA).splitlines(), again, strict=True):
        for side in ("request", "response"):
            assert json.loads(was)[side]["body"] == json.loads(now)[side]["body"]


@pytest.mark.long
def test_a_capture_is_written_that_shows_the_same(tmp_path: Path) -> None:
    source, out = tmp_path / "java.json", str(tmp_path / "again.pcapng")
    source.write_bytes(lines_of(JAVA))
    done = kdissect("encode", str(source), "-w", out)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert list(map(at_once, lines_of(out).splitlines())) == list(map(at_once, lines_of(JAVA).splitlines()))


def at_once(line: bytes) -> dict[str, Any]:
    """An exchange without what depends on how its messages were cut into packets: `encode` sends each at once."""
    value: dict[str, Any] = json.loads(line)
    return {name: each for name, each in value.items() if name not in DURATIONS}


def test_gaps_are_holes_and_unknown_versions_come_back_whole(tmp_path: Path) -> None:
    newer = request(3, api_key=3, version=14, body=bytes(20))
    packets = conversation([Turn(True, data) for data in (request(1), request(2), newer, request(4))])
    del packets[3]  # the second request
    source, out = capture_of(tmp_path, packets), str(tmp_path / "again.pcapng")
    done = kdissect("encode", "-w", out, data=lines_of(source))
    assert done.stderr == b""
    before, after = ([json.loads(line) for line in lines_of(path).splitlines()] for path in (source, out))
    assert [line["kind"] for line in before] == ["exchange", "gap", "exchange", "exchange"]
    for name in ("kind", "api", "api_version", "correlation_id", "client_id", "size", "direction"):
        assert [line.get(name) for line in after] == [line.get(name) for line in before]
    assert [line["request"]["size"] for line in after if "request" in line] == [23, 39, 23]
    text = kdissect("encode", data=lines_of(source)).stdout.decode()
    assert "# gap: 23 bytes of a request" in text
    assert "missing" not in text


@pytest.mark.long
def test_a_response_without_a_request_comes_back(tmp_path: Path) -> None:
    source = capture_of(tmp_path, conversation([Turn(True, request(1)), Turn(False, response(9))]))
    out = str(tmp_path / "again.pcapng")
    kdissect("encode", "-w", out, data=lines_of(source))
    [paired, orphan] = (json.loads(line) for line in lines_of(out).splitlines())
    assert paired["correlation_id"] == 1
    assert (orphan["api_key"], orphan["response"]["size"], orphan["correlation_id"]) == (None, 16, 9)
    again = tmp_path / "thrice.pcapng"
    kdissect("encode", "-w", str(again), data=lines_of(out))
    assert lines_of(str(again)) == lines_of(out)


def test_lines_of_other_kinds_are_counted(tmp_path: Path) -> None:
    data = b"\n".join(
        json.dumps(line).encode() for line in (METADATA, {"kind": "tls"}, {"kind": "unparsed"}, {"kind": "tls"})
    )
    done = kdissect("encode", data=data)
    assert done.returncode == 0
    assert done.stderr.decode() == "kdissect: standard input: 3 lines skipped: tls 2, unparsed 1\n"


def test_without_ends_and_times_they_are_made_up(tmp_path: Path) -> None:
    out = tmp_path / "made.pcapng"
    kdissect("encode", "-w", str(out), data=json.dumps(METADATA).encode())
    with Capture([str(out)]) as capture:
        [exchange] = capture.exchanges()
    assert (exchange.row.client, exchange.row.server, exchange.row.time_ns) == ("192.0.2.2:40000", "192.0.2.1:9092", 0)
    assert exchange.request is not None
    assert exchange.request.data == request(7)


@cases(
    ("line", "words"),
    [
        (b"{", "line 2: not JSON: "),
        (b"[]", "line 2: not a JSON object"),
        (json.dumps(METADATA | {"api_version": -1}).encode(), "line 2: request.body: Metadata v-1 is not known"),
        (json.dumps(METADATA | {"client": "here"}).encode(), "line 2: client: "),
        (json.dumps(METADATA | {"client": "[::1]:9"}).encode(), "line 2: server: 192.0.2.1 and the client's ::1"),
        (json.dumps(METADATA | {"connection": "a"}).encode(), "line 2: connection: 'a' is not an integer"),
        (json.dumps(METADATA | {"request": {"time_ns": -1}}).encode(), "line 2: request.time_ns: -1 is not an integer"),
        (b'{"kind": "sasl", "auth_bytes": "0", "direction": "request"}', "line 2: auth_bytes: '0' is not hex"),
        (b'{"kind": "sasl", "auth_bytes": "00"}', "line 2: direction: None is neither request nor response"),
        (b'{"kind": "gap", "size": 0, "direction": "request"}', "line 2: size: 0 is not an integer from 1"),
        (b'{"kind": "gap", "size": 1, "direction": 3}', "line 2: direction: 3 is neither request nor response"),
        (
            b'{"kind": "gap", "size": 1, "direction": "request", "time_ns": 1.5}',
            "line 2: time_ns: 1.5 is not an integer",
        ),
    ],
)
def test_a_bad_line_is_one_plain_line_and_leaves_no_capture(tmp_path: Path, line: bytes, words: str) -> None:
    out = tmp_path / "made.pcapng"
    done = kdissect("encode", "-", "-w", str(out), data=b"\n" + line)
    assert done.returncode == 2
    [error_line] = done.stderr.decode().splitlines()
    assert error_line.startswith(f"kdissect: standard input: {words}")
    assert not out.exists()


def test_nothing_to_encode_is_a_negative_answer(tmp_path: Path) -> None:
    done = kdissect("encode", "-w", str(tmp_path / "made.pcapng"))
    assert (done.returncode, done.stderr.decode()) == (1, "kdissect: standard input: no exchange\n")


def test_unreadable_and_unwritable_files_are_reported(tmp_path: Path) -> None:
    done = kdissect("encode", str(tmp_path / "none"))
    assert (done.returncode, done.stderr.decode()) == (2, f"kdissect: {tmp_path / 'none'}: no such file or directory\n")
    done = kdissect("encode", "-w", str(tmp_path), data=json.dumps(METADATA).encode())
    assert (done.returncode, done.stderr.decode()) == (2, f"kdissect: {tmp_path}: is a directory\n")
