"""A stream that is no capture is refused by its first bytes: it may never end, and would fill the disk."""

import gzip
import os
import random
import threading
from pathlib import Path
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissector.capture import CaptureError, open_capture, text_capture
from dissector.capture.text_capture import begins_text
from dissector.core.arrays import UInt8
from dissector.core.limits import Limits
from dissector.core.store import Store
from dissector.storage.files import KafkaFiles
from tests.cases import cases
from tests.cli.test_commands import kdissect
from tests.conftest import PCAPS

MEGABYTE: Final = 1 << 20
SEARCHED: Final = 1 << 16
"""For most tests, how much of a stream is searched for bytes: the cost grows with it, and nothing else changes."""
CHANCE: Final = random.Random(7)
PIECES: Final = {
    "zeros": bytes(MEGABYTE),
    "random bytes": b"\xff" + CHANCE.randbytes(MEGABYTE),
    "text": b"2026-11-22 INFO nothing of interest\n" * 30_000,
    "blank lines": b"\n" * MEGABYTE,
    "comments": b"# nothing\n" * 100_000,
    "one line": b"abcdefgh" * (MEGABYTE // 8),
}
BOMBS: Final = {"gzip of zeros": b"\0", "gzip of text": b"y\n"}
"""What is repeated to 64 MB, and compressed."""
TEXTS: Final = (
    "# a comment\n\n> 0000 0010\n  0012\n< 00\n", "0000 000d 0012 0000 0000 0007 0003 6465 76\n\n",
    "00000000: 0000 000d 0012 0000 0000 0007 0003 6465  ..............de\n00000010: 76\n\n",
)  # fmt: skip


def endless(path: Path, piece: bytes) -> tuple[threading.Thread, list[int]]:
    """Write to a pipe until nobody reads it; the list has the size of each write."""
    os.mkfifo(path)
    sizes: list[int] = []

    def write() -> None:
        descriptor = os.open(path, os.O_WRONLY)
        try:
            while sum(sizes) < 256 * MEGABYTE:
                sizes.append(os.write(descriptor, piece))
        except BrokenPipeError:
            pass
        finally:
            os.close(descriptor)

    writer = threading.Thread(target=write)
    writer.start()
    return writer, sizes


@pytest.mark.long
@pytest.mark.slow
@cases("name", [*PIECES, *BOMBS])
def test_an_endless_stream_is_refused_by_its_first_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    searched = text_capture._SEARCHED // 8 if name == "text" else SEARCHED
    monkeypatch.setattr(text_capture, "_SEARCHED", searched)
    text = BOMBS.get(name, b"")
    piece = PIECES.get(name) or gzip.compress(text * (64 * MEGABYTE // len(text)), 1)
    writer, sizes = endless(tmp_path / "pipe", piece)
    reader = open_capture(str(tmp_path / "pipe"), Store(), KafkaFiles(show_secrets=False))
    refused = r"not a capture: (it begins with|neither pcap nor pcapng, but text)"
    with pytest.raises(CaptureError, match=refused) as caught:
        for _ in reader.batches():
            pass
    reader.close()
    writer.join()
    assert "\n" not in str(caught.value)
    assert sum(sizes) < 16 * MEGABYTE  # a step or two


@pytest.mark.long
@pytest.mark.slow
def test_hex_without_an_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_capture, "_SEARCHED", SEARCHED)
    line = b"0000 000d 0012 0000 0000 0007 0003 6465 76\n\n"
    writer, sizes = endless(tmp_path / "pipe", line * 1000)
    reader = open_capture(str(tmp_path / "pipe"), Store(), limits=Limits(pasted_bytes=2 * MEGABYTE))
    with pytest.raises(CaptureError, match="more than 2,097,152 bytes of text"):
        for _ in reader.batches():
            pass
    reader.close()
    writer.join()
    assert sum(sizes) < 16 * MEGABYTE


@pytest.mark.long
@pytest.mark.slow
@cases("command", ["show", "stats", "open"])
def test_a_device_without_an_end_is_one_line(command: str) -> None:
    done = kdissect(command, "/dev/zero")
    assert (done.returncode, done.stdout) == (2, b"")
    [line] = done.stderr.splitlines()
    assert b"/dev/zero: not a capture" in line
    with Path("/dev/zero").open("rb") as zeros:
        assert kdissect(command, "-", file=zeros).returncode == 2


@pytest.mark.slow
def test_json_lines_without_an_end_are_one_line() -> None:
    done = kdissect("encode", "/dev/zero")
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"line 1: not JSON" in done.stderr


@given(st.sampled_from(TEXTS), st.data())
def test_the_beginning_of_hex_may_be_hex(text: str, data: st.DataObject) -> None:
    whole = (text * data.draw(st.integers(1, 50))).encode()
    head = whole[: data.draw(st.integers(0, len(whole)))]
    assert begins_text(head, None) is not False


def kafka_files() -> list[Path]:
    kinds = ("log", "index", "timeindex", "checkpoint")
    found = (each for kind in kinds for each in PCAPS.rglob(f"*.{kind}"))
    return sorted(each for each in found if not each.match("*.group.log"))  # a broker's own words


@cases("path", kafka_files(), ids=lambda path: f"{path.parent.name}/{path.name}")
def test_the_beginning_of_a_file_of_kafka_may_be_one(path: Path) -> None:
    data = as_bytes(path)
    files = KafkaFiles(show_secrets=False)
    for size in (*range(0, min(200, len(data))), *range(200, len(data), max(1, len(data) // 50)), len(data)):
        assert files.may_take(data[:size]), size


def as_bytes(path: Path) -> UInt8:
    import numpy as np

    return np.frombuffer(path.read_bytes(), np.uint8)
