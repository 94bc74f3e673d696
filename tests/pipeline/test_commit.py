"""Staged files are in place once, wherever a commit was interrupted: new files, and rewritten ones."""

from pathlib import Path

import pytest

from dissector.pipeline.commit import COMMITTED, COMPLETE, STAGE, carry_over_folder, commit_staged


def staged(tables: Path, *, complete: bool) -> Path:
    folder = tables / "_follow"
    stage = folder / STAGE
    for name in ("exchanges/day=1/capture=a/0.parquet", "exchanges/day=1/capture=a/1.parquet",
                 "exchanges/day=1/capture=b/2.parquet", "captures/3.parquet",
                 f"{carry_over_folder(4)}/0", COMMITTED):  # fmt: skip
        (stage / name).parent.mkdir(parents=True, exist_ok=True)
        (stage / name).write_text("new")
    (stage / "exchanges" / "_SUCCESS").touch()
    for name in (COMMITTED, f"{carry_over_folder(3)}/0"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("old")
    (tables / "exchanges" / "day=1" / "capture=a").mkdir(parents=True)
    (tables / "exchanges" / "day=1" / "capture=a" / "0.parquet").write_text("old")
    if complete:
        (stage / COMPLETE).touch()
    return folder


def files(tables: Path) -> dict[str, str]:
    return {str(path.relative_to(tables)): path.read_text() for path in tables.rglob("*") if path.is_file()}


BEFORE = {
    "_follow/committed": "old", "_follow/carry-over-3/0": "old", "exchanges/day=1/capture=a/0.parquet": "old",
}  # fmt: skip
AFTER = {
    "_follow/committed": "new", "_follow/carry-over-4/0": "new", "exchanges/day=1/capture=a/0.parquet": "new",
    "exchanges/day=1/capture=a/1.parquet": "new", "exchanges/day=1/capture=b/2.parquet": "new",
    "captures/3.parquet": "new",
}  # fmt: skip


def test_a_stage_that_is_complete_is_put_in_place(tmp_path: Path) -> None:
    commit_staged(staged(tmp_path, complete=True))
    assert files(tmp_path) == AFTER


def test_one_that_is_not_leaves_nothing(tmp_path: Path) -> None:
    commit_staged(staged(tmp_path, complete=False))
    assert files(tmp_path) == BEFORE


class KilledError(Exception):
    """In place of a kill."""


@pytest.mark.parametrize("steps", range(9))
def test_it_goes_on_wherever_it_was_broken_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, steps: int) -> None:
    folder = staged(tmp_path, complete=True)
    left = steps

    def until_killed(step: str) -> None:
        whole = getattr(Path, step)

        def stopping(path: Path, *to: Path) -> object:
            nonlocal left
            if not left:
                raise KilledError
            left -= 1
            return whole(path, *to)

        monkeypatch.setattr(Path, step, stopping)

    with monkeypatch.context(), pytest.raises(KilledError) if steps < 7 else monkeypatch.context():
        for step in ("rename", "replace", "unlink"):
            until_killed(step)
        commit_staged(folder)
    monkeypatch.undo()
    commit_staged(folder)
    assert files(tmp_path) == AFTER
