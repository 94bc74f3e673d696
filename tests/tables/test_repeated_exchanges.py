"""Exchanges that captures of different runs share are told, with the command that leaves them once."""

import random
import shlex
import struct
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.conftest import some_of

pytest.importorskip("deltalake", reason="NOT TESTED with deltalake: it is not installed")

from dissector.pipeline.ingest_here import ingest_here
from dissector.pipeline.partition_rows import WriteOptions
from dissector.tables.cut_connections import CutConnections, cut_connections
from dissector.tables.delta_log import live_captures
from tests.cli.test_commands import kdissect
from tests.pipeline.contents import rows_that_count
from tests.tables.copied import copy_tables
from tests.traffic import Packet, conversation, ethernet, exchanges

pytestmark = pytest.mark.slow

START_US = 1_700_000_000_000_000
WHOLE = list(enumerate(conversation(exchanges(24))))
"""A packet a millisecond."""
HALF = len(WHOLE) // 2
Numbered = Sequence[tuple[int, Packet]]


def capture(folder: Path, name: str, packets: Numbered, later_us: int = 0, most: int = 1 << 16) -> Path:
    parts = [struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 1 << 16, 1)]
    for number, packet in packets:
        data, time = ethernet(packet), START_US + 1_000 * number + later_us
        cut = data[:most]
        parts.append(struct.pack("<IIII", time // 1_000_000, time % 1_000_000, len(cut), len(data)) + cut)
    path = folder / name
    path.write_bytes(b"".join(parts))
    return path


def ingested(folder: Path, *files: Path, frames: bool = False) -> int:
    """The run's epoch."""
    if not folder.exists():
        copy_tables(folder)
    return ingest_here([str(file) for file in files], str(folder), WriteOptions(frames=frames)).epoch


def found(folder: Path, epoch: int | None = None) -> list[CutConnections]:
    return cut_connections(f"file://{folder}", live_captures(f"file://{folder}"), epoch)


def told(folder: Path, *files: Path) -> str:
    """What the last ingest says, each in a run of its own, and `verify`, too."""
    for file in files:
        done = kdissect("ingest", str(file), "--out", str(folder))
        assert done.returncode == 0, done.stderr
    line = done.stderr.decode().splitlines()[-1]
    verified = kdissect("tables", "verify", str(folder))
    assert verified.returncode == 0
    assert verified.stderr.decode().splitlines()[1:] == [line]
    return line


def done_as_told(folder: Path, line: str) -> int:
    """Run the command that a line tells. How many exchanges there are then, of which nothing is told any more."""
    command = line.partition(": kdissect ")[2].rpartition(" reads " if "reads" in line else " leaves ")[0]
    done = kdissect(*shlex.split(command))
    assert done.returncode == 0, done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert found(folder) == []
    return len(rows_that_count(folder)["exchanges"])


@pytest.mark.long
def test_two_capture_points_are_told_and_replaced(tmp_path: Path) -> None:
    files = [capture(tmp_path, "client side.pcap", WHOLE), capture(tmp_path, "broker.pcap", WHOLE, 300)]
    folder = tmp_path / "tables"
    line = told(folder, *files)
    command = f"kdissect tables replace {folder} 'client side.pcap' broker.pcap reads them together"
    assert line == f"24 exchanges of broker.pcap are also in client side.pcap: {command}"
    assert len(rows_that_count(folder)["exchanges"]) == 48
    assert done_as_told(folder, line) == 24


@pytest.mark.exhaustive
def test_files_that_overlap_are_told_and_replaced(tmp_path: Path) -> None:
    files = [capture(tmp_path, "a.pcap", WHOLE[: HALF + 5]), capture(tmp_path, "b.pcap", WHOLE[HALF - 5 :])]
    line = told(tmp_path / "tables", *files)
    assert line.startswith("5 exchanges of b.pcap are also in a.pcap: kdissect tables replace ")
    assert done_as_told(tmp_path / "tables", line) == 24


OTHER_PARTS = ((10, 30), (10, 31), (0, 20))


@pytest.mark.long
@pytest.mark.parametrize(
    ("first", "end"), [(11, 30), *(pytest.param(*each, marks=pytest.mark.exhaustive) for each in OTHER_PARTS)]
)
def test_a_part_is_told_and_forgotten(tmp_path: Path, first: int, end: int) -> None:
    """Also if it begins or ends between a request and its response; it may come first."""
    files = [capture(tmp_path, "whole.pcap", WHOLE), capture(tmp_path, "part.pcap", WHOLE[first:end])]
    line = told(tmp_path / "tables", *random.Random(first).sample(files, 2))
    assert line.endswith(f": kdissect tables forget {tmp_path}/tables part.pcap leaves them once")
    assert done_as_told(tmp_path / "tables", line) == 24


@pytest.mark.exhaustive
def test_with_skip_known_a_part_is_left_out(tmp_path: Path) -> None:
    whole, part = capture(tmp_path, "whole.pcap", WHOLE), capture(tmp_path, "part.pcap", WHOLE[11:30])
    more = capture(tmp_path, "more.pcap", WHOLE[40:], 1)
    folder = tmp_path / "tables"
    ingested(folder, whole)
    done = kdissect("ingest", "--skip-known", str(part), "--out", str(folder))
    line = f"{part}: left out: other captures in the tables contain everything in it"
    assert (done.returncode, done.stderr.decode().splitlines()[1:]) == (0, [line])
    assert [row["path"] for row in live_captures(f"file://{folder}")] == [str(whole)]
    kdissect("ingest", "--skip-known", str(more), "--out", str(folder))
    assert len(live_captures(f"file://{folder}")) == 2, "it has packets of other times"


def test_skip_known_needs_the_end_of_connections(tmp_path: Path) -> None:
    done = kdissect("ingest", "--follow", "--skip-known", str(tmp_path), "--out", str(tmp_path / "tables"))
    assert done.returncode == 2
    assert b"--skip-known can't be used with --follow" in done.stderr


OTHER = list(enumerate(conversation(exchanges(3), client=("10.0.0.9", 9))))


@pytest.mark.long
@pytest.mark.parametrize(
    ("known", "files", "frames"),
    some_of(
        [
            pytest.param([*WHOLE, *OTHER], [(WHOLE[:20], 0)], True, id="other options"),
            pytest.param(WHOLE, [([*WHOLE[:20], *OTHER], 0)], False, id="another connection"),
            pytest.param(WHOLE[1:], [(WHOLE[:20], 0)], False, id="a SYN"),
            pytest.param(WHOLE, [(WHOLE[:20], 0), (WHOLE[20:], 1)], False, id="it goes on in another file of the run"),
        ],
        "other options",
        "another connection",
        "a SYN",
    ),
)
def test_what_has_more_than_the_other_is_not_spare(
    tmp_path: Path, known: Numbered, files: list[tuple[Numbered, int]], frames: bool
) -> None:
    folder = tmp_path / "tables"
    ingested(folder, capture(tmp_path, "known.pcap", known))
    some = [capture(tmp_path, f"{number}.pcap", *each) for number, each in enumerate(files)]
    [each] = found(folder, ingested(folder, *some, frames=frames))
    assert each.repeated >= 9
    assert not each.spare
    assert not each.is_enough


@pytest.mark.long
def test_what_was_cut_from_packets_is_not_spare_if_the_other_lacks_it(tmp_path: Path) -> None:
    whole = list(enumerate(conversation(exchanges(12, size=200))))
    folder = tmp_path / "tables"
    ingested(folder, capture(tmp_path, "cut.pcap", whole, most=120))
    [each] = found(folder, ingested(folder, capture(tmp_path, "whole.pcap", whole)))
    assert each.repeated == 12
    assert "whole.pcap" not in [Path(row["path"]).name for row in each.spare]


@pytest.mark.long
def test_of_two_with_the_same_the_later_one_is_spare(tmp_path: Path) -> None:
    """Here one has a packet more, that is not Kafka's."""
    folder = tmp_path / "tables"
    ingested(folder, capture(tmp_path, "first.pcap", WHOLE))
    foreign = Packet(True, 1, b"no", client=("10.0.0.5", 5), server=("10.0.0.6", 6))
    [each] = found(folder, ingested(folder, capture(tmp_path, "again.pcap", [*WHOLE, (60, foreign)])))
    assert ([Path(row["path"]).name for row in each.spare], each.is_enough) == (["again.pcap"], True)


@pytest.mark.long
@pytest.mark.parametrize(
    ("first", "second", "later_us"),
    some_of(
        [
            pytest.param(WHOLE, WHOLE, 60_000_000, id="a replay"),
            pytest.param(WHOLE, WHOLE, 1_000_000, id="a replay that begins soon"),
            pytest.param(
                WHOLE, [*enumerate(conversation(exchanges(60)[50:]))], 5_000, id="a host with the same addresses"
            ),
            pytest.param(
                WHOLE, [*enumerate(conversation(exchanges(24), client=("10.0.0.1", 7)))], 0, id="another port"
            ),
            pytest.param(WHOLE, [*enumerate(conversation(exchanges(24), server=("10.0.0.7", 9092)))], 0, id="a broker"),
        ],
        "a replay that begins soon",
        "a host with the same addresses",
    ),
)
def test_other_connections_are_not_told(tmp_path: Path, first: Numbered, second: Numbered, later_us: int) -> None:
    folder = tmp_path / "tables"
    epochs = [
        ingested(folder, capture(tmp_path, "a.pcap", first)),
        ingested(folder, capture(tmp_path, "b.pcap", second, later_us)),
    ]
    assert [found(folder, epoch) for epoch in (*epochs, None)] == [[], [], []]


@pytest.mark.long
def test_one_that_goes_on_without_an_exchange_while_both_last_is_cut(tmp_path: Path) -> None:
    """They overlap by parts of a large message, or by acknowledgments."""
    large = list(enumerate(conversation(exchanges(1, size=20_000) + exchanges(2)[2:])))
    folder = tmp_path / "tables"
    ingested(folder, capture(tmp_path, "a.pcap", large[:9]))
    [each] = found(folder, ingested(folder, capture(tmp_path, "b.pcap", large[7:])))
    assert (each.connections, each.repeated) == (1, 0)
