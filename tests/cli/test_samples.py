"""`kdissect samples` copies captures that can be opened, and overwrites nothing."""

import os
from pathlib import Path

import pytest

import dissector
from dissector.cli.samples import copy_samples
from dissector.samples import FOLDER, SAMPLES
from tests.forked import run_module


def samples(*words: str) -> tuple[int, str, str]:
    done = run_module("dissector.cli.main", ["samples", *words], dict(os.environ))
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def test_every_sample_is_copied_described_and_has_rows(tmp_path: Path) -> None:
    code, printed, errors = samples(str(tmp_path / "some"))
    assert (code, errors) == (0, "")
    assert [line.split()[0] for line in printed.splitlines()] == [str(tmp_path / "some" / name) for name in SAMPLES]
    for name in (name for name in SAMPLES if not name.startswith("schemas/")):
        with dissector.open(tmp_path / "some" / name) as capture:
            assert len(capture)


def test_every_file_of_the_package_is_described() -> None:
    found = {
        str(path.relative_to(FOLDER))
        for path in FOLDER.rglob("*")
        if path.suffix not in (".py", ".md", ".pyc") and path.is_file()
    }
    assert found == set(SAMPLES)


def test_another_file_of_the_same_name_is_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "orders.pcapng").write_bytes(b"mine")
    code, _, errors = samples(str(tmp_path))
    assert code == 2
    assert "a different file of this name exists" in errors
    assert (tmp_path / "orders.pcapng").read_bytes() == b"mine"
    (tmp_path / "orders.pcapng").unlink()
    assert samples(str(tmp_path))[0] == samples(str(tmp_path))[0] == 0


def test_a_folder_that_cannot_be_made_is_one_plain_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    code, _, errors = samples(str(tmp_path / "file"))
    assert code == 2
    assert errors.count("\n") == 1


def test_a_reader_that_ends_early_leaves_no_sample_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def closed(*_: object) -> None:
        raise BrokenPipeError

    monkeypatch.setattr("builtins.print", closed)
    with pytest.raises(BrokenPipeError):
        copy_samples(str(tmp_path))
    assert [name for name in SAMPLES if not (tmp_path / name).exists()] == []
