"""Files and pipes read while they grow: the same packets and findings however the bytes came, and never a long wait."""

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dissector.capture import CaptureError, GrowingFile, open_capture
from dissector.capture.files import CaptureFormat
from dissector.capture.pcap import MAGICS, Pcap
from dissector.capture.pcapng import Pcapng
from dissector.capture_session import Capture
from dissector.core.limits import DEFAULT
from dissector.core.store import Store
from dissector.exchange.to_json import json_line
from tests.capture.test_formats import clean, comparable
from tests.capture.writers import PCAPNGS, PCAPS, Seen, pcap, pcapng
from tests.conftest import PCAPS as BUNDLED
from tests.traffic import conversation, ethernet, exchanges

START = 1_700_000_000_000_000_000
PACKETS = [
    Seen(START + n * 1_000_000, ethernet(packet), len(ethernet(packet)))
    for n, packet in enumerate(conversation(exchanges(6)))
]
FILES = [write(PACKETS) for write, _ in (PCAPS | PCAPNGS).values()]
BROKEN = [0, 1, 2, 3, 6, 12, 16, 0x80, 0xFF]


def read(data: bytes, cuts: list[int]) -> tuple[list[tuple[int, bytes, int]], list[str]]:
    """Packets and problems of a file that was looked at as it had grown to each cut, and at its end."""
    magic = data[:4]
    reader: CaptureFormat = (Pcap if magic in MAGICS else Pcapng)("name", magic, 0, DEFAULT)
    found = []
    for end in [*sorted(cuts), len(data)]:
        seen = np.frombuffer(data[:end], np.uint8)
        for ended in (False, True) if end == len(data) else (False,):
            while (batch := reader.next(seen, ended=ended)) is not None:
                assert batch.number.tolist() == list(range(len(found), len(found) + len(batch)))
                for at, size, time in zip(batch.offset, batch.captured, batch.time_ns, strict=True):
                    found.append((int(time), batch.data[at : at + size].tobytes(), int(at)))
    assert reader.done == len(data)
    return found, [problem.message for problem in reader.problems]


@given(
    base=st.sampled_from(FILES),
    changes=st.lists(st.tuples(st.integers(28, 3000), st.sampled_from(BROKEN)), max_size=6),
    lost=st.none() | st.tuples(st.integers(28, 2000), st.integers(1, 200)),
    cuts=st.lists(st.integers(0, 3000), max_size=8),
)
def test_however_a_file_grew_it_gives_the_same(
    base: bytes, changes: list[tuple[int, int]], lost: tuple[int, int] | None, cuts: list[int]
) -> None:
    data = bytearray(base)
    for at, byte in changes:
        data[at % len(data)] = byte
    if lost is not None:
        del data[lost[0] : lost[0] + lost[1]]
    data[:28] = base[:28]
    assert read(bytes(data), [min(cut, len(data)) for cut in cuts]) == read(bytes(data), [])


@pytest.mark.long
@pytest.mark.slow
@settings(max_examples=10)
@given(cuts=st.lists(st.integers(0, 300_000), max_size=5))
def test_a_file_that_another_process_writes_is_followed_to_its_end(tmp_path: Path, cuts: list[int]) -> None:
    data = (BUNDLED / "librdkafka.pcapng").read_bytes()
    path = tmp_path / "growing"
    path.write_bytes(b"")
    pieces = [data[a:b] for a, b in zip([0, *sorted(cuts)], [*sorted(cuts), len(data)], strict=True)]

    def ended() -> bool:
        """Every time somebody asks, the file has grown."""
        with path.open("ab") as file:
            file.write(pieces.pop(0) if pieces else b"")
        return not pieces

    with Capture([GrowingFile(str(path), ended)]) as capture:
        steps = list(capture.read())
        assert comparable([json_line(exchange) for exchange in capture.exchanges()], 1) == clean()
        assert not capture.problems
    assert steps[-1].done == len(data)
    assert {step.total for step in steps} == {0}


def test_a_followed_file_that_never_was_a_capture_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "growing"
    path.write_bytes(b"")
    with pytest.raises(CaptureError, match="empty file"):
        list(Capture([GrowingFile(str(path), lambda: True)]).read())
    path.write_bytes(b"no capture\n")
    with pytest.raises(CaptureError, match="neither pcap nor pcapng"):
        list(Capture([GrowingFile(str(path), lambda: True)]).read())


def test_a_followed_file_that_shrinks_keeps_its_rows_and_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "growing"
    path.write_bytes(pcap(PACKETS))

    def ended() -> bool:
        os.truncate(path, 4096 if path.stat().st_size > 4096 else path.stat().st_size - 1)
        return False

    reader = open_capture(GrowingFile(str(path), ended), Store())
    assert sum(len(batch) for batch in reader.batches()) in (0, len(PACKETS))
    assert "file-truncated" in [problem.code for problem in reader.problems]


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("make", [pcap, pcapng])
def test_packets_of_a_pipe_are_there_before_the_next_ones_come(tmp_path: Path, make: "type[pcap]") -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    data = make(PACKETS)
    reader = open_capture(str(pipe), Store())
    batches = reader.batches()
    assert not len(next(batches))  # nobody writes yet, and nobody waits
    with pipe.open("wb", buffering=0) as file:
        assert not len(next(batches))
        file.write(data[:-10])
        found = sum(len(batch) for batch in (next(batches), next(batches), next(batches)))
        assert found == len(PACKETS) - 1
        file.write(data[-10:])
        found += sum(len(batch) for batch in (next(batches), next(batches), next(batches)))
        assert found == len(PACKETS)
    assert not any(len(batch) for batch in batches)
    assert not reader.problems
    assert reader.total == 0
    assert reader.done == len(data)


def test_a_pipe_that_is_no_capture_is_reported_in_one_line(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = open_capture(str(pipe), Store())
    descriptor = os.open(pipe, os.O_WRONLY)
    os.write(descriptor, b"just some text")
    os.close(descriptor)
    with pytest.raises(CaptureError, match="neither pcap nor pcapng"):
        list(reader.batches())
