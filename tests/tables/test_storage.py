"""The place of the tables: paths and URLs, and what is said where nothing can be written."""

from pathlib import Path

import pytest

pytest.importorskip("pyarrow", reason="NOT TESTED with pyarrow: it is not installed")

from dissector.tables.data_files import Output, write_rows
from dissector.tables.storage import Storage, StorageError


def test_a_folder_by_path_and_by_url_is_the_same(tmp_path: Path) -> None:
    odd = tmp_path / "a b#c"
    storage = Storage(str(odd))
    (odd / "_runs" / "one").mkdir(parents=True)
    assert Storage(storage.uri).folders("_runs") == ["one"]
    assert list(write_rows([("observations", {"packet": 1})], Output(storage.uri, "_runs/two", 1)))
    assert len(list(odd.glob("_runs/two/observations/*.parquet"))) == 1
    storage.remove("_runs/two")
    assert storage.folders("_runs") == ["one"]
    storage.remove("never there")
    assert storage.folders("never there") == []
    assert list(odd.glob("*.kdissect")) == []


def test_a_folder_in_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StorageError, match="not a directory"):
        Storage(str(tmp_path / "file" / "in"))


def test_a_path_with_a_percent_sign_is_refused(tmp_path: Path) -> None:
    """The library of Delta's log would write elsewhere."""
    with pytest.raises(StorageError, match="can't have % in its path"):
        Storage(str(tmp_path / "50%20"))
