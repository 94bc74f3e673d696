"""A ring that is read by one capture after the other, so that what is over is forgotten."""

import weakref
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from prometheus_client import generate_latest

from dissector.capture_session import Capture
from dissector.cli import live_reading
from dissector.cli.formats import Format
from dissector.cli.live import LiveOutput, _print
from dissector.cli.live_reading import LiveReading, together
from dissector.cli.metering import Metering
from dissector.cli.render.printing import RowRenderer
from dissector.core.addresses import BrokerAddress
from dissector.core.arrays import Int64
from dissector.exchange.to_json import exchange_object
from dissector.proxy_server.settings import ProxySettings
from tests.conftest import PCAPS

CAPTURES = [PCAPS / name for name in ("java-transactions.pcapng", "aiokafka.pcapng", "java-share.pcapng")]
PACKET_BLOCK = 6
PACKETS_A_FILE = 20
OPEN_FILES = Path("/dev/fd")


class Ring:
    """The files of a ring, all written already."""

    is_ring, has_next, ended, captured, dropped, engine = True, True, True, 0, 0, "us"

    def __init__(self, paths: Sequence[Path]) -> None:
        self._paths = iter(paths)

    def next_path(self) -> str | None:
        return next(map(str, self._paths), None)

    def comment(self, text: str) -> None:
        pass

    def messages(self) -> Sequence[str]:
        return ()


def blocks(data: bytes) -> Iterator[bytes]:
    """The blocks of a pcapng file."""
    at = 0
    while at < len(data):
        size = int.from_bytes(data[at + 4 : at + 8], "little")
        yield data[at : at + size]
        at += size


def ring_of(path: Path, folder: Path) -> Ring:
    """The same packets as files of a ring, each a section of its own."""
    found = list(blocks(path.read_bytes()))
    packets = [each for each in found if each[0] == PACKET_BLOCK]
    head = b"".join(found[: found.index(packets[0])])
    paths = []
    for first in range(0, len(packets), PACKETS_A_FILE):
        paths.append(folder / f"{first:05}.pcapng")
        paths[-1].write_bytes(head + b"".join(packets[first : first + PACKETS_A_FILE]))
    assert len(paths) > 6
    return Ring(paths)


def open_capture(source: Any, state: Any) -> Capture:
    return Capture([source], checkpoint=state)


def shown(completed: Iterator[tuple[Capture, Int64]]) -> list[tuple[int, str]]:
    """Each row as anybody sees it when it is complete: its number, packet, and all else. What later packets teach of it
    depends on when it is read: the recordings have no such rows."""
    found: list[tuple[int, int | None, str]] = []
    for capture, rows in completed:
        for _ in capture.findings.examine():
            pass
        found += [(each.fields.number, each.fields.packet, repr(exchange_object(each))) for each in capture.at(rows)]
    return sorted(found)


def open_files() -> int:
    return len([*OPEN_FILES.iterdir()])


@pytest.fixture(params=CAPTURES, ids=lambda path: str(path.stem))
def path(request: pytest.FixtureRequest) -> Path:
    return cast(Path, request.param)


@pytest.fixture
def forgetful(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_reading, "FORGOTTEN_BYTES", 1)


@pytest.mark.usefixtures("forgetful")
def test_rows_are_those_of_one_capture_with_the_same_numbers(path: Path, tmp_path: Path) -> None:
    with Capture([str(path)]) as capture:
        whole = shown((capture, rows) for rows in capture.completed_rows())
        packets = capture.packets
    with LiveReading(cast(Any, ring_of(path, tmp_path)), open_capture, forgets=True) as reading:
        first, opened = weakref.ref(reading.capture), open_files()
        assert shown(reading.completed_rows()) == whole
        assert first() is None, "its memory is free"
        assert reading.capture.packets == packets
        assert len(reading.capture) == len(whole)
        assert open_files() <= opened + 4, "those of one pipe that is read"


@pytest.mark.usefixtures("forgetful")
def test_each_row_is_counted_once(path: Path, tmp_path: Path) -> None:
    counted = []
    for forgets in (False, True):
        folder = tmp_path / str(forgets)
        folder.mkdir()
        meter = Metering("127.0.0.1", 0)
        with LiveReading(cast(Any, ring_of(path, folder)), open_capture, meter=meter, forgets=forgets) as reading:
            seen, rows = weakref.WeakSet[Capture](), 0
            for capture, some in reading.completed_rows():
                seen.add(capture)
                rows += len(some)
            assert [*seen] == [reading.capture], "the memory of all others is free"
            while not meter.has_counted_all():
                pass
        lines = generate_latest(meter._metrics.registry).decode().splitlines()
        counted.append(sorted(line for line in lines if "_created" not in line))
    assert counted[0] == counted[1]
    assert f'kdissect_rows_total{{kind="exchange"}} {float(rows)}' in counted[0]
    assert "kdissect_uncounted_rows 0.0" in counted[0]


@pytest.mark.usefixtures("forgetful")
@pytest.mark.parametrize("prints", [False, True])
def test_one_capture_is_in_memory_at_a_time(*, prints: bool, tmp_path: Path) -> None:
    """When one is opened, all others have gone, whether rows are printed and counted or only counted."""
    others: list[int] = []
    seen = weakref.WeakSet[Capture]()

    def opened(source: Any, state: Any) -> Capture:
        others.append(len(seen))
        seen.add(capture := open_capture(source, state))
        return capture

    meter, settings = Metering("127.0.0.1", 0), ProxySettings((BrokerAddress("localhost", 9092),))
    with LiveReading(cast(Any, ring_of(CAPTURES[0], tmp_path)), opened, meter=meter, forgets=True) as reading:
        rows = RowRenderer.of(Format.TEXT, None) if prints else None
        _print(reading, cast(Any, reading._recording), settings, LiveOutput(False, rows), reads_all=True)
    assert len(others) > 2
    assert not any(others)


def test_a_ring_that_is_looked_back_at_is_one_capture(path: Path, tmp_path: Path) -> None:
    with LiveReading(cast(Any, ring_of(path, tmp_path)), open_capture) as reading:
        first = reading.capture
        rows = sum(len(rows) for _, rows in reading.completed_rows())
        assert reading.capture is first
        assert rows == len(first)


@pytest.mark.parametrize(("seconds", "expected"), [(0, [[4], [], [2, 5], [1]]), (3600, [[4], [], [], [], [1, 2, 5]])])
def test_rows_of_steps_that_follow_soon_come_together(
    seconds: float, expected: list[list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first ones come at once. There is something for each step, and the last rows are not kept."""
    monkeypatch.setattr(live_reading, "TOGETHER_SECONDS", seconds)
    steps = [np.array(rows, np.int64) for rows in ([4], [], [2, 5], [1])]
    assert [rows.tolist() for rows in together(steps)] == expected
