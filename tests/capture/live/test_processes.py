"""Processes of connections: found on this machine, kept in the file, and read again."""

import os
import socket
from pathlib import Path

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissector.capture.live import CaptureSettings
from dissector.capture.live.local_processes import processes_of
from dissector.capture.live.writer import CaptureWriter
from dissector.capture.process_notes import Process, Processes, ProcessNote, note_of
from dissector.capture_session import Capture
from dissector.capture_session.process_watch import ProcessWatch
from dissector.core.text import endpoint_name
from dissector.filter import parse
from tests.cli.test_commands import kdissect
from tests.traffic import CLIENT, SERVER, conversation, ethernet, exchanges

ENDS = tuple(f"{host}:{port}" for host, port in (CLIENT, SERVER))


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_a_socket_of_ours_is_ours(host: str) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with (
        socket.create_server((host, 0), family=family) as listening,
        socket.create_connection(listening.getsockname()[:2]) as client,
        listening.accept()[0] as server,
    ):
        one, other = (endpoint_name(*each.getsockname()[:2]) for each in (client, server))
        found = processes_of({(one, other), (other, one), ("1.2.3.4:5", "1.2.3.4:6")})
    assert found.keys() == {(one, other), (other, one)}
    assert {(each.pid, each.name) for each in found.values()} == {(os.getpid(), psutil.Process().name())}


notes = st.builds(
    ProcessNote, st.text(max_size=30), st.text(max_size=30), st.integers(0, 1 << 62),
    st.builds(Process, st.text(max_size=60), st.integers(0, 1 << 22), st.text(max_size=12)),
)  # fmt: skip


@given(notes)
def test_a_note_is_one_line_and_comes_back(note: ProcessNote) -> None:
    assert "\n" not in note.comment()
    assert note_of(note.comment()) == note


@given(
    st.text()
    | st.text().map("process {{{}".format)
    | st.sampled_from(["process {}", "process [1]", 'process {"end":1}'])
)
def test_any_other_comment_is_none(text: str) -> None:
    assert note_of(text) is None


def test_ends_that_are_used_again_have_the_process_of_their_time() -> None:
    processes = Processes(lambda _: ())
    first, second = Process("java", 1), Process("python", 2)
    for time_ns, process in ((20, second), (10, first), (10, first)):
        processes.add(ProcessNote("a", "b", time_ns, process))
    assert [processes("a", "b", since) for since in (0, 10, 11, 20, 30)] == [first, first, second, second, second]
    assert processes("b", "a", 0) is None


def written(folder: Path, notes: list[ProcessNote]) -> str:
    """A live capture's file, with comments about processes."""
    path = folder / "live.pcapng"
    output = CaptureWriter(CaptureSettings("lo", (), "", promiscuous=False, path=str(path)), 1, lambda _: None)
    packets = [ethernet(packet) for packet in conversation(exchanges(3))]
    output.packets([(10**18 + n, len(data), data) for n, data in enumerate(packets)])
    output.comments([note.comment() for note in notes])
    output.statistics(1, 0)
    output.close()
    return str(path)


def test_processes_of_a_file_are_fields_filters_and_groups(tmp_path: Path) -> None:
    hostile = Process("j\x1b[31m", 71, "0123456789ab")
    path = written(tmp_path, [
        ProcessNote(ENDS[0], ENDS[1], 10**18, hostile),
        ProcessNote(ENDS[1], ENDS[0], 10**18, Process("broker", 72)),
    ])  # fmt: skip
    done = kdissect("show", path, "--fields", "process,pid,container,server.process,broker.pid", "-Y", "pid == 71")
    assert done.stdout.decode().splitlines() == ["j␛[31m\t71\t0123456789ab\tbroker\t72"] * 3
    copies = [str(tmp_path / "copy.pcapng"), str(tmp_path / "redacted.pcapng")]
    assert kdissect("export", path, "-w", copies[0]).returncode == 0
    assert kdissect("export", path, "-w", copies[1], "--redact").returncode == 0
    kept, redacted = (kdissect("show", copy, "--fields", "pid,server.process").stdout.decode() for copy in copies)
    assert (kept.splitlines(), redacted.strip()) == (["71\tbroker"] * 3, "")
    with Capture([path]) as capture:
        for _ in capture.read():
            pass
        assert sum(len(step.rows) for step in capture.select(parse("server.process == broker"))) == 3
        assert sum(len(step.rows) for step in capture.select(parse("process == broker"))) == 0


def test_each_connection_is_looked_up_when_it_is_new(tmp_path: Path) -> None:
    asked: list[set[tuple[str, str]]] = []

    def find(pairs: set[tuple[str, str]]) -> dict[tuple[str, str], Process]:
        asked.append(set(pairs))
        return {pair: Process("java", 7) for pair in pairs if pair == ENDS}

    comments: list[str] = []
    with Capture([written(tmp_path, [])]) as capture:
        for _ in capture.read():
            pass
        watch = ProcessWatch(capture, comments.append, find)
        for _ in range(4):
            watch.look()
        [exchange, *_] = capture.exchanges("process == java && !server.process")
        assert exchange.connection_facts.process == Process("java", 7)
    assert asked == [{ENDS, ENDS[::-1]}, {ENDS[::-1]}]
    assert [note.process for comment in comments if (note := note_of(comment))] == [Process("java", 7)]
