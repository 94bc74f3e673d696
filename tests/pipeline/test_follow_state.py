"""The state of a follower: read by the version that wrote it, and refused in plain words by any other."""

import random
import stat
from dataclasses import replace
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from dissector.capture_session import Capture
from dissector.capture_session.checkpoint import load
from dissector.core.object_graph import GraphError, Nodes, to_nodes
from dissector.findings.detectors.consumer_lag import FetchLag
from dissector.findings.framework.aggregation import Observation
from dissector.pipeline import state_file
from dissector.pipeline.follow_state import (
    STATE,
    CarryOver,
    FollowState,
    carry_over_folder,
    read_carry_over,
    read_state,
    write_carry_over,
    write_state,
)  # fmt: skip
from dissector.pipeline.observations import observation_of, row_of
from dissector.pipeline.origins import Origin, Sources
from dissector.pipeline.state_file import read_state_file, write_state_file
from dissector.tables.storage import StorageError
from tests.cases import cases
from tests.cli.test_commands import kdissect
from tests.conftest import PCAPS

KEPT = FollowState(
    parts=2, epoch=7, batch=4, packets=99, origins=[Origin(0, "ab", 1, 7)],
    begins={"/ring/a\udcff": 5}, digests=frozenset(["ab"]), has_carry_overs=True,
)  # fmt: skip


@cache
def some() -> CarryOver:
    """That of a capture in the middle of which a file ended."""
    with Capture([PCAPS / "librdkafka.pcapng"]) as capture:
        for _ in capture.pipeline.read_available():
            pass
        return CarryOver(capture.incremental.checkpoint(), frozenset((3, 4)))


def follower(folder: Path, carry_over: CarryOver | None = None) -> Path:
    """A follower's folder with its state and two carry-overs."""
    parts = carry_over_folder(folder, KEPT.batch)
    parts.mkdir()
    for part in range(KEPT.parts):
        write_carry_over(parts, part, carry_over or some())
    write_state(folder, KEPT)
    return parts


def test_a_state_comes_back_as_it_was(tmp_path: Path) -> None:
    assert read_state(tmp_path) is None
    parts = follower(tmp_path)
    found = read_state(tmp_path)
    assert found is not None
    assert vars(found) | {"aggregation": None} == vars(KEPT) | {"aggregation": None}
    assert read_carry_over(parts, 1) == some()
    assert read_carry_over(parts, 2) == CarryOver()


def test_only_its_user_can_read_it_and_any_tool_of_arrow(tmp_path: Path) -> None:
    parts = follower(tmp_path)
    for path in (tmp_path / STATE, parts / "0"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with pa.ipc.open_stream((parts / "0").read_bytes()) as stream:
        assert set(stream.read_all()["graph"].to_pylist()) == {"capture", "connections"}
    assert sorted(each.name for each in tmp_path.iterdir()) == [parts.name, STATE], "no temporary file"


def test_a_state_of_another_version_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(state_file, "version", lambda _: "0.1")
        write_state(tmp_path, KEPT)
    with pytest.raises(StorageError, match=r"state: of kdissect 0\.1: end it by that"):
        read_state(tmp_path)


@pytest.mark.long
@cases("damage", [b"", b"nothing", b"a\nb\nc", bytes(64)])
@cases("name", [STATE, "carry-over-4/1"])
def test_a_damaged_file_is_refused(tmp_path: Path, name: str, damage: bytes) -> None:
    follower(tmp_path)
    path = tmp_path / name
    whole = path.read_bytes()
    middle = len(whole) // 2
    for data in (damage, whole[:-1], whole[:middle] + b"!" + whole[middle + 1 :]):
        path.write_bytes(data)
        with pytest.raises(StorageError, match=f"{name}: damaged: remove"):
            read_state(tmp_path)


def test_a_carry_over_that_is_not_there_is_refused(tmp_path: Path) -> None:
    parts = follower(tmp_path)
    (parts / "1").unlink()
    with pytest.raises(StorageError, match="carry-over-4/1: missing: remove"):
        read_state(tmp_path)


def test_an_observation_comes_back_from_its_row() -> None:
    lag = FetchLag(records=5, time_ns=np.int64(7), path="a[0].\udcff")
    _, cells = row_of(Observation("LagExtractor", ("rdkafka", "orders", 3), 1, 2, 3, lag), Sources())
    found = observation_of(cells)
    assert found == Observation("LagExtractor", ("rdkafka", "orders", 3), 1, 2, 3, lag)
    assert type(found.value) is FetchLag


@cases(
    "wrong",
    [
        {"parts": "x"},
        {"parts": 1 << 40},
        {"parts": 0},
        {"batch": "../../x"},
        {"batch": -2},
        {"packets": -1},
        {"origins": 5},
        {"origins": [5]},
        {"has_carry_overs": None},
        {"begins": {5: 5}},
        {"digests": frozenset([b"a"])},
    ],
)
def test_a_state_with_other_values_is_refused(tmp_path: Path, wrong: dict[str, Any]) -> None:
    follower(tmp_path)
    write_state(tmp_path, replace(KEPT, **wrong))
    with pytest.raises(StorageError, match="state: damaged: remove"):
        read_state(tmp_path)


@cases(
    "carry_over",
    [
        CarryOver(to_nodes((1, "two"))),
        CarryOver(connections=frozenset(("a",))),
        CarryOver(to_nodes([1])._replace(kind=["exec", "int"])),
    ],
)
def test_a_carry_over_that_no_task_could_continue_from_is_refused(tmp_path: Path, carry_over: CarryOver) -> None:
    follower(tmp_path, carry_over)
    with pytest.raises(StorageError, match="carry-over-4/0: damaged: remove"):
        read_state(tmp_path)


@cases("codec", ["zstd", "lz4"])
@cases("name", [STATE, "carry-over-4/1"])
def test_a_compressed_file_is_refused_before_it_is_opened(tmp_path: Path, name: str, codec: str) -> None:
    """A few kilobytes would be some gigabytes."""
    follower(tmp_path)
    path, out = tmp_path / name, pa.BufferOutputStream()
    with pa.ipc.open_stream(path.read_bytes()[:-32]) as stream:
        table = stream.read_all()
    at = table.schema.get_field_index("data")
    zeros = pa.array([bytes(1 << 24)] + [None] * (len(table) - 1), pa.large_binary())
    table = table.set_column(at, table.schema.field(at), zeros)
    with pa.ipc.new_stream(out, table.schema, options=pa.ipc.IpcWriteOptions(compression=codec)) as stream:
        stream.write_table(table)
    data = out.getvalue().to_pybytes()
    assert len(data) < 1 << 18
    path.write_bytes(data + sha256(data).digest())
    before = pa.total_allocated_bytes()
    peak = pa.default_memory_pool().max_memory()
    with pytest.raises(StorageError, match=f"{name}: damaged: remove"):
        read_state(tmp_path)
    assert pa.total_allocated_bytes() == before
    assert pa.default_memory_pool().max_memory() < peak + (1 << 22), "other files are read, which are small"


def test_a_follower_with_a_damaged_state_ends_in_one_line(tmp_path: Path) -> None:
    for name in ("ring", "tables/_follow"):
        (tmp_path / name).mkdir(parents=True)
    follower(tmp_path / "tables/_follow")
    path = tmp_path / "tables/_follow/carry-over-4/1"
    path.write_bytes(path.read_bytes()[:-1])
    done = kdissect("ingest", str(tmp_path / "ring"), "--follow", "--out", str(tmp_path / "tables"))
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.startswith(f"kdissect: {path}: damaged: remove ".encode())
    assert done.stderr.count(b"\n") == 1


@pytest.mark.long
def test_a_checkpoint_with_other_nodes_is_read_or_refused() -> None:
    """Whatever somebody wrote into it, whose digest is right."""
    whole, chance, refused = some().capture, random.Random(1), 0
    assert whole is not None
    for _ in range(40):
        nodes = Nodes(*map(list, whole))
        for _ in range(chance.choice((1, 2, 5))):
            column = chance.choice((nodes.kind, nodes.name, nodes.number, nodes.data, nodes.items))
            column[chance.randrange(len(column))] = chance.choice(column)
        try:
            load(nodes)
        except GraphError:
            refused += 1
    assert refused > 5


def test_equal_names_of_nodes_are_one_object(tmp_path: Path) -> None:
    """A long name in a dictionary, and many nodes with it, would be as many copies."""
    write_state_file(tmp_path / "file", {"one": Nodes(["x" * 99] * 3, [None] * 3, [None] * 3, [None] * 3, [[]] * 3)})
    kinds = read_state_file(tmp_path / "file")["one"].kind
    assert len({id(each) for each in kinds}) == 1


@pytest.mark.long
@pytest.mark.slow
def test_a_changed_file_with_a_right_digest_is_read_or_refused(tmp_path: Path) -> None:
    """Arrow has several kinds of errors for files that are none of its own."""
    follower(tmp_path)
    path, chance, refused = tmp_path / STATE, random.Random(1), 0
    whole = path.read_bytes()[:-32]
    for number in range(100):
        data = bytearray(whole if number else whole[: len(whole) // 2])
        data[chance.randrange(len(data))] = chance.randrange(256)
        path.write_bytes(bytes(data) + sha256(data).digest())
        try:
            read_state(tmp_path)
        except StorageError:
            refused += 1
    assert refused > 25
