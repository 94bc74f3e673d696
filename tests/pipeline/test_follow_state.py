"""The state of a follower: read by the version that wrote it, and refused in plain words by any other."""

from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="NOT TESTED with pyspark: it is not installed")

from dissector.pipeline import micro_batch_run
from dissector.pipeline.micro_batch_run import STATE, FollowState, read_state, write_state
from dissector.tables.storage import StorageError

KEPT = FollowState(parts=3, epoch=7, batch=4, packets=99, digests=frozenset(["ab"]))


def test_a_state_comes_back_as_it_was(tmp_path: Path) -> None:
    assert read_state(tmp_path) is None
    write_state(tmp_path, KEPT)
    found = read_state(tmp_path)
    assert found is not None
    assert (found.parts, found.epoch, found.batch, found.packets) == (3, 7, 4, 99)
    assert (found.digests, found.origins, found.begins) == (KEPT.digests, [], {})


def test_a_state_of_another_version_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(micro_batch_run, "version", lambda _: "0.1")
        write_state(tmp_path, KEPT)
    with pytest.raises(StorageError, match=r"state: of kdissect 0\.1, Python .*: end it by that"):
        read_state(tmp_path)


@pytest.mark.parametrize("damage", [b"", b"nothing", b"a\nb\nc"])
def test_a_damaged_state_is_refused_and_nothing_of_it_is_run(tmp_path: Path, damage: bytes) -> None:
    (tmp_path / STATE).write_bytes(damage)
    with pytest.raises(StorageError, match="damaged: remove"):
        read_state(tmp_path)
    write_state(tmp_path, KEPT)
    whole = (tmp_path / STATE).read_bytes()
    (tmp_path / STATE).write_bytes(whole[:-1])
    with pytest.raises(StorageError, match="damaged: remove"):
        read_state(tmp_path)
