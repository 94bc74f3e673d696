"""Connections whose parts are in captures of different runs are told, with the command that makes them whole."""

import os
import shlex
from pathlib import Path

import pytest

pytest.importorskip("deltalake", reason="NOT TESTED with deltalake: it is not installed")

from dissector.cli.cut_connections import _listed, print_cut_connections
from dissector.pipeline.ingest_here import ingest_here
from dissector.pipeline.partition_rows import WriteOptions
from dissector.tables.cut_connections import LONGEST_PAUSE_NS, CutConnections, cut_connections
from dissector.tables.delta_log import live_captures
from dissector.tables.maintenance import compact
from dissector.tables.run import Run
from tests.cli.test_commands import kdissect
from tests.conftest import PCAPS, some_of
from tests.pipeline.contents import contents, rows_that_count
from tests.pipeline.test_micro_batch import cut
from tests.tables.copied import copy_tables
from tests.traffic import ACK, CLIENT, FIN, Packet, conversation, ethernet, exchanges, pcap

pytestmark = pytest.mark.slow

START = 1_700_000_000
LONGEST_PAUSE = LONGEST_PAUSE_NS // 1_000_000_000
WHOLE = conversation(exchanges(6))
FIRST, SECOND = WHOLE[:8], WHOLE[8:]
"""Without a FIN, and without a SYN."""


def capture(folder: Path, name: str, packets: list[Packet], start: int = START) -> Path:
    path = folder / f"{name}.pcap"
    path.write_bytes(pcap([ethernet(each) for each in packets], start=start))
    return path


def ingested(folder: Path, *files: Path, frames: bool = False) -> int:
    """The run's epoch."""
    if not folder.exists():
        copy_tables(folder)
    return ingest_here([str(file) for file in files], str(folder), WriteOptions(frames=frames)).epoch


def cuts(folder: Path, epoch: int | None = None) -> list[CutConnections]:
    return cut_connections(f"file://{folder}", live_captures(f"file://{folder}"), epoch)


@pytest.mark.long
def test_a_connection_that_crosses_two_runs_is_told_and_the_command_makes_it_whole(tmp_path: Path) -> None:
    files = [capture(tmp_path, "monday", FIRST), capture(tmp_path, "tues day", SECOND, START + 60)]
    folder = tmp_path / "tables"
    ingested(folder, files[0])
    done = kdissect("ingest", str(files[1]), "--out", str(folder))
    command = f"kdissect tables replace {folder} monday.pcap 'tues day.pcap'"
    line = f"1 connection begins in monday.pcap and continues in tues day.pcap: {command} reads them together"
    assert done.returncode == 0
    assert done.stderr.decode().splitlines()[1:] == [line]
    replaced = kdissect(*shlex.split(command)[1:])
    assert replaced.returncode == 0, replaced.stderr
    assert len(replaced.stderr.splitlines()) == 1, "nothing is cut any more"
    ingested(tmp_path / "together", *files)
    assert contents(folder) == contents(tmp_path / "together")


@pytest.mark.exhaustive
def test_captures_may_come_in_any_order(tmp_path: Path) -> None:
    later = ingested(tmp_path / "tables", capture(tmp_path, "later", SECOND, START + 60))
    assert cuts(tmp_path / "tables", later) == []
    [found] = cuts(tmp_path / "tables", ingested(tmp_path / "tables", capture(tmp_path, "before", FIRST)))
    assert [Path(row["path"]).stem for row in (*found.begin_in, *found.continue_in)] == ["before", "later"]
    rows = rows_that_count(tmp_path / "tables")["connections"]
    ends = {row["opened"]: row["end_ns"] // 1_000_000 - 1_000 * START for row in rows}
    assert ends == {True: len(FIRST) - 1, False: 60_000 + len(SECOND) - 1}, "a packet a millisecond"


FINISHED = [*FIRST, Packet(False, 9_000_000, b"", FIN | ACK)]
ELSEWHERE = conversation(exchanges(6), client=("10.0.0.1", CLIENT[1] + 1))[8:]


@pytest.mark.long
@pytest.mark.parametrize(
    ("first", "second", "pause"),
    some_of(
        [
            pytest.param(FIRST, WHOLE, 60, id="its port is used again, with a SYN"),
            pytest.param(FINISHED, SECOND, 60, id="it was closed"),
            pytest.param(FIRST, SECOND, LONGEST_PAUSE + 1, id="a broker would have closed it"),
            pytest.param(FIRST, ELSEWHERE, 60, id="another port"),
            pytest.param(
                FIRST, conversation(exchanges(9)[6:], handshake=False), 0, id="a host with the same addresses"
            ),
            pytest.param(WHOLE, WHOLE, 1, id="a replay"),
        ],
        "it was closed",
        "a broker would have closed it",
        "a host with the same addresses",
    ),
)
def test_what_is_another_connection_is_not_told(
    tmp_path: Path, first: list[Packet], second: list[Packet], pause: int
) -> None:
    epochs = [
        ingested(tmp_path / "tables", capture(tmp_path, name, packets, START + seconds))
        for name, packets, seconds in (("first", first, 0), ("second", second, pause))
    ]
    assert [cuts(tmp_path / "tables", epoch) for epoch in (*epochs, None)] == [[], [], []]


@pytest.mark.long
def test_only_the_last_connection_before_it_can_go_on(tmp_path: Path) -> None:
    """One whose FIN was not captured, and then another one, with all: the third does not continue the first."""
    whole = [*WHOLE, Packet(False, 9_000_000, b"", FIN | ACK)]
    for name, packets, start in (("a", FIRST, 0), ("b", whole, 60), ("c", SECOND, 120)):
        epoch = ingested(tmp_path / "tables", capture(tmp_path, name, packets, START + start))
    assert cuts(tmp_path / "tables", epoch) == cuts(tmp_path / "tables") == []


@pytest.mark.long
def test_captures_that_were_read_together_are_not_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even if they have parts of a connection, which a run forgot between them. Here it never knew, as these are two
    runs of one epoch."""
    folder = tmp_path / "tables"
    ingested(folder, capture(tmp_path, "unrelated", conversation(exchanges(3)), START - 60))
    monkeypatch.setattr(Run, "new", classmethod(lambda cls: cls(7, "host", os.getpid())))
    ingested(folder, capture(tmp_path, "first", FIRST))
    assert ingested(folder, capture(tmp_path, "last", SECOND, START + 60)) == 7
    assert len(rows_that_count(folder)["connections"]) == 3
    assert cuts(folder, 7) == cuts(folder) == []


@pytest.mark.exhaustive
def test_all_captures_of_the_runs_are_read_together_and_each_set_is_told_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Otherwise the cut would only move: from between the second and the third to between the first and the second."""
    folder, pieces = tmp_path / "tables", [Path(scan.path) for scan in cut(PCAPS / "librdkafka.pcapng", tmp_path, 3)]
    ingested(folder, *pieces[:2])
    ingested(folder, capture(tmp_path, "unrelated", FIRST))
    epoch = ingested(folder, pieces[2])
    compact(str(folder))
    [found] = cuts(folder, epoch)
    assert [Path(row["path"]) for row in found.together] == pieces
    assert found.connections > 0
    assert cuts(folder) == [found]
    print_cut_connections(str(folder), epoch)
    assert "piece-0.pcapng piece-1.pcapng piece-2.pcapng reads them together" in capsys.readouterr().err


@pytest.mark.long
def test_names_that_are_not_unique_or_can_not_be_typed_are_digests(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "tables"
    (tmp_path / "other").mkdir()
    ingested(folder, capture(tmp_path, "\x1b[2J", FIRST))
    ingested(folder, capture(tmp_path / "other", "same", SECOND, START + 60))
    ingested(folder, capture(tmp_path, "same", conversation(exchanges(3)), START + 86_400))
    print_cut_connections(str(folder))
    told = capsys.readouterr().err
    digests = [row["capture"] for row in sorted(live_captures(f"file://{folder}"), key=lambda row: row["begin_ns"])]
    assert f"replace {folder} {digests[0]} {digests[1]} reads them together\n" in told
    assert "\x1b" not in told


@pytest.mark.long
def test_captures_with_different_options_have_no_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "tables"
    ingested(folder, capture(tmp_path, "a", FIRST))
    ingested(folder, capture(tmp_path, "b", SECOND, START + 60), frames=True)
    print_cut_connections(str(folder))
    assert capsys.readouterr().err.endswith("b.pcap: ingest these again together, with the same options\n")


@pytest.mark.long
def test_a_failure_to_look_is_told_and_fails_no_ingest(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "tables"
    ingested(folder, capture(tmp_path, "a", FIRST))
    ingested(folder, capture(tmp_path, "b", SECOND, START + 60))
    for file in (folder / "connections").glob("*.parquet"):
        file.write_bytes(b"PAR1")
    print_cut_connections(str(folder))
    [line] = capsys.readouterr().err.splitlines()
    assert "cannot tell which connections are cut" in line


@pytest.mark.parametrize(
    ("count", "words"), [(3, "0, 1 and 2"), (4, "0, 1, 2 and 1 other"), (5, "0, 1, 2 and 2 others")]
)
def test_of_many_captures_the_first_are_named_and_the_others_counted(count: int, words: str) -> None:
    assert _listed([{"path": f"/captures/{number}"} for number in range(count)]) == words
