"""Files that become shorter while they are read: nothing ends the process, rows are kept, and a finding says so.

Each case has a process of its own, as SIGBUS would end this one.
"""

import mmap
import os
import sys
from collections.abc import Callable
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest

from dissector.capture import GrowingFile
from dissector.capture_session import Capture
from dissector.core.mapped_files import intact_size, survive_truncation
from dissector.exchange.to_json import json_line
from tests.capture.writers import Seen, pcap
from tests.conftest import PCAPS
from tests.forked import PipedProgram
from tests.terminal import HANGS, terminal
from tests.traffic import capture_of, conversation, ethernet, exchanges

SAMPLE = PCAPS / "librdkafka-pipelined.pcapng"
LEFT = 50_000


def survives(work: Callable[[Path], None], path: Path) -> None:
    process = get_context("fork").Process(target=work, args=(path,))
    process.start()
    process.join(60)
    assert process.exitcode == 0


def large(path: Path) -> Path:
    """A capture of more than one batch of packets."""
    packets = [ethernet(packet) for packet in conversation(exchanges(40))]
    count = 20_000 // len(packets)
    path.write_bytes(pcap([Seen(n, data, len(data)) for n, data in enumerate(packets * count)]))
    return path


def check_rows(capture: Capture, whole: int) -> None:
    codes = [{finding.code for finding in exchange.findings} for exchange in capture.exchanges()]
    assert len(codes) == whole
    assert sum("incomplete-frame" in each for each in codes) > 10
    assert not codes[0]
    [problem] = [problem for problem in capture.problems if problem.code == "file-truncated"]
    assert "became shorter" in problem.message


def after_reading(path: Path) -> None:
    with Capture([str(path)]) as capture:
        list(capture.read())
        os.truncate(path, LEFT)
        check_rows(capture, len(capture))
        for exchange in capture.exchanges():
            json_line(exchange)
            for message in filter(None, (exchange.request, exchange.response)):
                assert message.tree.end == len(message.data)


def grown_again(path: Path) -> None:
    with Capture([str(path)]) as capture:
        list(capture.read())
        size = path.stat().st_size
        os.truncate(path, LEFT)
        list(capture.exchanges())
        os.truncate(path, size)
        check_rows(capture, len(capture))


def while_reading(path: Path) -> None:
    with Capture([str(path)]) as capture:
        reading = capture.read()
        next(reading)
        packets = capture.packets
        os.truncate(path, LEFT)
        for _ in reading:
            pass
        assert capture.packets >= packets > 0
        assert "file-truncated" in {problem.code for problem in capture.problems}
        list(capture.exchanges())


def while_followed(path: Path) -> None:
    looks = 0

    def ended() -> bool:
        nonlocal looks
        looks += 1
        if looks == 2:
            os.truncate(path, LEFT)
        return looks > 4

    with Capture([GrowingFile(str(path), ended)]) as capture:
        for _ in capture.read():
            pass
        assert len(capture) > 0
        list(capture.exchanges())
        assert "file-truncated" in {problem.code for problem in capture.problems}


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("work", [after_reading, grown_again, while_reading, while_followed])
def test_a_file_that_becomes_shorter_keeps_its_rows(work: Callable[[Path], None], tmp_path: Path) -> None:
    path = tmp_path / "capture"
    if work is while_reading:
        large(path)
    else:
        path.write_bytes(SAMPLE.read_bytes())
    survives(work, path)


def with_bytes(path: Path) -> None:
    with path.open("rb") as file:
        region = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    survive_truncation(region)
    os.truncate(path, 10)
    assert region[:12] == b"\x01" * 10 + bytes(2)
    assert region[-5000:] == bytes(5000)
    assert intact_size(region) == 10


def test_missing_bytes_are_zeros(tmp_path: Path) -> None:
    path = tmp_path / "bytes"
    path.write_bytes(b"\x01" * 100_000)
    survives(with_bytes, path)


def at_the_same_address(path: Path) -> None:
    """Closed maps are still referred to, as by whoever showed them last."""
    other = path.with_name("other")
    other.write_bytes(path.read_bytes())
    with path.open("rb") as file, other.open("rb") as whole:
        short = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        survive_truncation(short)
        address = np.frombuffer(short, np.uint8).ctypes.data
        os.truncate(path, 10)
        assert intact_size(short) == 10
        short.close()
        for is_watched in (False, True, False):
            region = mmap.mmap(whole.fileno(), 0, access=mmap.ACCESS_READ)
            assert np.frombuffer(region, np.uint8).ctypes.data == address
            if is_watched:
                survive_truncation(region)
            assert intact_size(region) == len(region)
            region.close()


def test_a_map_in_place_of_a_shorter_one_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "bytes"
    path.write_bytes(b"\x01" * 100_000)
    survives(at_the_same_address, path)


@pytest.mark.long
def test_show_of_a_file_that_becomes_shorter_says_so(tmp_path: Path) -> None:
    """It prints more than a pipe holds, so it waits for its reader, and then decodes rows that the file has lost."""
    path = Path(capture_of(tmp_path, conversation(exchanges(3_000))))
    with PipedProgram("dissector.cli.main", "show", "-f", "json", str(path)) as process:
        assert process.stdout.readline().startswith("{")
        os.truncate(path, 4096)
        process.stdout.read()
        words = process.stderr.read()
        assert process.wait() >= 0, "ended by a signal"
    assert "became shorter" in words


@pytest.mark.long
@pytest.mark.slow
def test_the_screen_outlives_a_file_that_becomes_shorter(tmp_path: Path) -> None:
    path = tmp_path / "capture"
    path.write_bytes(SAMPLE.read_bytes())
    state = {"XDG_STATE_HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path)}
    with terminal([sys.executable, "-m", "dissector.cli.main", str(path)], **state) as its:
        its.until("100%")
        os.truncate(path, 4096)
        its.press("G")
        its.until("shorter")  # wherever the line breaks, as the path may be long
        its.send("q")
        its.rest()  # a program can't end while nobody reads what it draws
        assert its.process.wait(HANGS) == 0
