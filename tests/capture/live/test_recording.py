"""The capture process, started for real: what it writes, how it ends, what it says where it can't."""

import os
import resource
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from dissector.capture import CaptureError, GrowingFile
from dissector.capture.live import CaptureSettings, Recording, RingSettings, recording_source
from dissector.capture.live.packet_ring import BLOCK, BLOCKS
from dissector.capture.live.writer import CaptureWriter
from dissector.capture_session import Capture
from dissector.cli.live import summary
from tests.capture.live.loopback import broker, needs_rights, talk
from tests.needs import needs
from tests.probe.servers import serving

PR_CAPBSET_DROP = 24


def wanted(
    port: int, path: Path | str = "", ring: RingSettings | None = None, interface: str = "lo"
) -> CaptureSettings:
    return CaptureSettings(interface, (port,), "", promiscuous=False, path=str(path), ring=ring)


def until(true: Callable[[], object], seconds: float = 20) -> bool:
    """Whether it becomes true; the time is a bound for a hang and not what is tested."""
    end = time.monotonic() + seconds
    while not true():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def rows(capture: Capture) -> list[tuple[str, int | None, int | None]]:
    rows = [exchange.row for exchange in capture.exchanges()]
    return sorted((row.api, row.correlation_id, row.latency_ns) for row in rows)


def finished(recording: Recording) -> None:
    recording.stop()
    recording.join()
    assert recording.ended
    assert not recording.failure


@pytest.mark.long
@pytest.mark.slow
@needs_rights
@pytest.mark.parametrize("interface", ["lo", "any"])
def test_what_is_followed_is_what_the_file_has(tmp_path: Path, interface: str) -> None:
    path = tmp_path / "kept.pcapng"
    with broker() as port, Recording(wanted(port, path, interface=interface)) as recording:
        name = recording.next_path()
        assert name is not None
        with Capture([GrowingFile(name, lambda: recording.ended)]) as capture:
            steps = capture.read()
            talk(port, 30)
            while len(capture) < 30:
                next(steps)
            finished(recording)
            for _ in steps:
                pass
            followed = rows(capture)
            assert capture.packets == recording.captured
            assert not capture.problems
    assert [row[1] for row in followed] == [*range(30)]
    assert recording.dropped == 0
    with Capture([str(path)]) as capture:
        for _ in capture.read():
            pass
        assert rows(capture) == followed
        assert not capture.problems


@pytest.mark.long
@pytest.mark.slow
@needs_rights
def test_each_packet_of_loopback_is_there_once(tmp_path: Path) -> None:
    for interface in ("lo", "any"):
        path = tmp_path / f"{interface}.pcapng"
        with broker() as port, Recording(wanted(port, path, interface=interface)) as recording:
            talk(port, 5)
            finished(recording)
        with Capture([str(path)]) as capture:
            # 3 to open, 5 requests and answers, at most 4 to close and one acknowledgement for each
            assert sum(1 for _ in capture.exchanges()) == 5
            assert 13 <= capture.packets <= 27
            assert len(capture.connections) == 1


@pytest.mark.long
@pytest.mark.slow
@needs_rights
def test_other_programs_read_the_file(tmp_path: Path) -> None:
    needs("capinfos", "tshark")
    path = tmp_path / "kept.pcapng"
    with broker() as port, Recording(wanted(port, path)) as recording:
        talk(port, 10)
        finished(recording)
    capinfos = subprocess.run(["capinfos", "-c", "-M", path], capture_output=True, text=True, check=True).stdout
    assert f"Number of packets:   {recording.captured}" in capinfos
    command = ["tshark", "-r", path, "-d", f"tcp.port=={port},kafka", "-Y", "kafka", "-T", "fields"]
    ids = subprocess.run([*command, "-e", "kafka.correlation_id"], capture_output=True, text=True, check=True).stdout
    assert sorted(map(int, ids.split())) == sorted([*range(10)] * 2)


@pytest.mark.long
@needs_rights
def test_a_capture_without_a_name_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    with broker() as port, Recording(wanted(port)) as recording:
        name = recording.next_path()
        assert name is not None
        assert list(tmp_path.iterdir()) == []
        talk(port, 3)
        finished(recording)
        with Capture([GrowingFile(name, lambda: True)]) as capture:
            assert sum(1 for _ in capture.exchanges()) == 3


@pytest.mark.long
@pytest.mark.slow
@needs_rights
def test_the_capture_process_ends_when_the_other_is_killed(tmp_path: Path) -> None:
    path = tmp_path / "kept.pcapng"
    code = (
        "import sys, time; from dissector.capture.live import *\n"
        f"recording = Recording(CaptureSettings('lo', (int(sys.argv[1]),), '', False, {str(path)!r}))\n"
        "print(recording._process.pid, flush=True); time.sleep(60)"
    )
    with broker() as port:
        analyser = subprocess.Popen([sys.executable, "-c", code, str(port)], stdout=subprocess.PIPE, text=True)
        assert analyser.stdout is not None
        recorder = int(analyser.stdout.readline())
        talk(port, 4)
        analyser.kill()
        analyser.wait()
        assert until(lambda: not Path(f"/proc/{recorder}").exists() or _is_zombie(recorder))
    with Capture([str(path)]) as capture:
        assert sum(1 for _ in capture.exchanges()) == 4
        assert not capture.problems


def _is_zombie(process: int) -> bool:
    return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z"


@pytest.mark.long
@needs_rights
def test_a_terminal_s_signals_are_not_the_capture_process_s(tmp_path: Path) -> None:
    with broker() as port, Recording(wanted(port, tmp_path / "kept.pcapng")) as recording:
        pid = recording._process.pid
        assert os.getpgid(pid) != os.getpgid(0)
        os.kill(pid, signal.SIGINT)
        talk(port, 3)
        finished(recording)
    assert recording.captured >= 9


@pytest.mark.long
@needs_rights
def test_kernel_drops_are_reported_and_written_to_the_file(tmp_path: Path) -> None:
    path = tmp_path / "kept.pcapng"
    with serving(_swallow) as address, Recording(wanted(int(address.rpartition(":")[2]), path)) as recording:
        os.kill(recording._process.pid, signal.SIGSTOP)  # as a machine that is far too busy
        with socket.create_connection(("127.0.0.1", int(address.rpartition(":")[2]))) as client:
            client.sendall(bytes(BLOCK * BLOCKS * 2))
        os.kill(recording._process.pid, signal.SIGCONT)
        finished(recording)
    assert recording.dropped > 0
    with Capture([str(path)]) as capture:
        for _ in capture.read():
            pass
        assert capture.packets == recording.captured
        assert any(f"{recording.dropped:,} packets" in problem.message for problem in capture.problems)
        assert f", {recording.dropped:,} dropped by the kernel (" in summary(capture, recording)


def _swallow(connection: socket.socket) -> None:
    while connection.recv(1 << 20):
        pass


@pytest.mark.long
@pytest.mark.slow
@needs_rights
def test_files_of_a_ring_are_whole_and_as_many_as_configured(tmp_path: Path) -> None:
    path = tmp_path / "ring.pcapng"
    with broker() as port, Recording(wanted(port, path, RingSettings(kilobytes=8, files=3))) as recording:
        for first in range(0, 400, 20):
            talk(port, 20, first=first)
            time.sleep(0.06)  # a file ends with a block of the kernel's
        finished(recording)
    files = sorted(tmp_path.iterdir())
    assert len(files) == 3
    assert [file.name.startswith("ring_0") and file.suffix == ".pcapng" for file in files] == [True] * 3
    assert int(files[0].name.split("_")[1]) > 1
    with Capture([str(file) for file in files]) as capture:
        found = [row[1] for row in rows(capture)] if all(1 for _ in capture.read()) else []
        assert not capture.problems
    # A ring may begin between a request and its response, which is then a row of its own, at the end.
    assert sorted(found) == [*range(400 - len(found), 400)]


@pytest.mark.long
@pytest.mark.slow
@needs_rights
def test_a_ring_is_followed_from_its_first_file_to_its_last(tmp_path: Path) -> None:
    path = tmp_path / "ring.pcapng"
    with broker() as port, Recording(wanted(port, path, RingSettings(kilobytes=8, files=2))) as recording:
        for first in range(0, 400, 20):
            talk(port, 20, first=first)
            time.sleep(0.06)
        finished(recording)
        assert len(list(tmp_path.iterdir())) == 2
        with Capture([recording_source(recording)]) as capture:  # only now: the first files have no names any more
            for _ in capture.read():
                pass
            assert [row[1] for row in rows(capture)] == [*range(400)]
            assert capture.packets == recording.captured
            assert not capture.problems


@pytest.mark.long
def test_a_missing_interface_is_reported_with_the_existing_ones() -> None:
    with pytest.raises(CaptureError, match=r"^unknown interface 'nowhere0'; known are lo, .*any$"):
        Recording(wanted(9092, interface="nowhere0"))


@needs_rights
def test_an_unwritable_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(CaptureError, match="there is no folder"):
        Recording(wanted(9092, tmp_path / "missing" / "kept.pcapng"))


@needs_rights
def test_a_full_disk_is_reported_and_earlier_packets_stay(tmp_path: Path) -> None:
    path = tmp_path / "kept.pcapng"
    packet = (0, 1000, bytes(1000))
    output = CaptureWriter(wanted(9092, path), 1, lambda path: None)
    output.packets([packet] * 10)
    before = path.stat().st_size
    most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (before + 5_000, most[1]))
    try:
        with pytest.raises(OSError, match="File too large"):
            output.packets([packet] * 10)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, most)
    assert output.delivered == 10
    assert path.stat().st_size == before


@pytest.mark.long
@pytest.mark.slow
@needs_rights
def test_without_the_right_to_capture_it_says_what_to_do(tmp_path: Path) -> None:
    code = (
        "import ctypes; from dissector.capture.live import *\n"
        f"for right in (12, 13): assert not ctypes.CDLL(None).prctl({PR_CAPBSET_DROP}, right, 0, 0, 0)\n"
        f"Recording(CaptureSettings('lo', (9092,), '', False, {str(tmp_path / 'kept')!r}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "not allowed to capture on lo: nothing here may have CAP_NET_RAW" in done.stderr


def test_a_capture_is_its_user_s_alone_and_a_file_that_is_there_keeps_its_mode(tmp_path: Path) -> None:
    for mode in (0o600, 0o640):
        path = tmp_path / "kept.pcapng"
        CaptureWriter(wanted(9092, path), 1, lambda _: None).close()
        assert oct(path.stat().st_mode) == oct(0o100000 | mode)
        path.chmod(0o640)
