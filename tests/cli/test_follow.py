"""Rows of a capture that still grows: each once, as soon as it is complete, whatever pieces the capture comes in."""

import io
import json
import random
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from dissector.capture import GrowingFile
from dissector.capture_session import Capture
from dissector.cli.formats import Format
from dissector.cli.render.printing import RowRenderer
from dissector.cli.show import follow
from dissector.core.arrays import Int64
from tests.cli.test_commands import JAVA, KDISSECT
from tests.conftest import CAPTURES
from tests.traffic import RST, Packet, Turn, conversation, ethernet, exchanges, pcap, request, response

Line = dict[str, object]


def completed(capture: Capture) -> Iterator[tuple[Capture, Int64]]:
    return ((capture, rows) for rows in capture.completed_rows())


def identity(line: Line) -> str:
    """A line without its number, which says when it was added."""
    return json.dumps({name: value for name, value in line.items() if name != "number"})


@pytest.mark.long
@pytest.mark.slow
def test_every_row_comes_once_however_the_file_grows(bundled: Path, tmp_path: Path) -> None:
    data = bundled.read_bytes()
    pieces = (1, 3, 12)[CAPTURES.index(bundled) % 3]
    cuts = sorted(random.Random(pieces).randrange(1, len(data)) for _ in range(pieces - 1))
    parts = [data[start:end] for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True)]
    path = tmp_path / "growing"
    path.write_bytes(parts.pop(0))
    out = io.BytesIO()

    def grow() -> None:
        if parts:
            with path.open("ab") as file:
                file.write(parts.pop(0))

    with Capture([GrowingFile(str(path), lambda: not parts)]) as capture:
        printed = follow(completed(capture), RowRenderer(Format.JSON), out, step=grow)
        lines = [json.loads(line) for line in out.getvalue().splitlines()]
        assert printed == len(lines) == len(capture)
        assert sorted(line["number"] for line in lines) == [*range(1, len(lines) + 1)]
    with Capture([str(bundled)]) as capture:
        whole = {(row.connection, row.time_ns, row.api, row.latency_ns, row.request_size, row.response_size)
                 for row in (exchange.row for exchange in capture.exchanges())}  # fmt: skip
        assert len(whole) == len(lines) or len({identity(line) for line in lines}) == len(lines)
        assert len(capture) == len(lines)


def steps_of(*batches: list[Packet]) -> list[list[int]]:
    """The rows that each batch of packets completes, and at last the end."""
    with tempfile.NamedTemporaryFile() as file:
        rest = [[ethernet(packet) for packet in batch] for batch in batches]
        file.write(pcap([]))
        found: list[list[int]] = []
        with Capture([GrowingFile(file.name, lambda: not rest)]) as capture:
            seen = -1
            for rows in capture.completed_rows():
                if capture.packets != seen:
                    found.append([])
                    seen = capture.packets
                    if rest:
                        file.write(pcap(rest.pop(0))[24:])
                        file.flush()
                found[-1] += rows.tolist()
        return found[1:]


@pytest.mark.long
def test_a_row_is_complete_with_its_answer_or_its_connection_s_end() -> None:
    talk = conversation(
        [Turn(True, request(1)), Turn(False, response(1)), Turn(True, request(2)), Turn(True, request(3))]
    )
    opened, request_packet, response_packet, more = talk[:2], talk[2:3], talk[3:4], talk[4:]
    ends = [Packet(True, talk[-1].seq + len(talk[-1].payload), b"", RST)]
    assert steps_of(opened + request_packet, response_packet, more, ends) == [[], [0], [], [1, 2]]
    assert steps_of(opened + request_packet, response_packet + more) == [[], [0, 1, 2]]


def test_acks_0_is_complete_at_once() -> None:
    body = b"\x00\x00" + bytes(4) + bytes(4)
    turns = [Turn(True, request(1, api_key=0, version=0, body=body)), Turn(True, request(2))]
    talk = conversation(turns)
    assert steps_of(talk[:3], talk[3:]) == [[0], [1]]


@pytest.mark.long
@pytest.mark.slow
def test_a_pipe_s_rows_are_printed_while_it_is_open() -> None:
    packets = [ethernet(packet) for packet in conversation(exchanges(6))]
    process = subprocess.Popen([*KDISSECT, "show", "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin is not None
    assert process.stdout is not None
    timer = threading.Timer(60, process.kill)
    timer.start()
    process.stdin.write(pcap(packets[:9]))
    process.stdin.flush()
    lines = [process.stdout.readline() for _ in range(4)]
    assert lines[0].startswith(b"   No.")
    assert [line.split()[0] for line in lines[1:]] == [b"1", b"2", b"3"]
    assert process.poll() is None
    process.stdin.write(pcap(packets[9:])[24:])
    process.stdin.close()
    rest = process.stdout.read().splitlines()
    timer.cancel()
    assert [line.split()[0] for line in rest] == [b"4", b"5", b"6"]
    assert process.wait() == 0


@pytest.mark.long
@pytest.mark.slow
def test_a_limit_ends_it() -> None:
    out = io.BytesIO()
    with Path(JAVA).open("rb") as file:
        done = subprocess.run([*KDISSECT, "show", "-", "--limit", "5"], stdin=file, capture_output=True, check=True)
    assert len(done.stdout.splitlines()) == 6
    with Capture([GrowingFile(JAVA, lambda: True)]) as capture:
        assert follow(completed(capture), RowRenderer(Format.TEXT), out, 5) == 5
    assert out.getvalue() == done.stdout
