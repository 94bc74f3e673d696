"""Recent captures and filters, whatever is in the file."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui.folders import state_folder, write_file
from tui.recents import FILES, FILTERS, KEPT, recent, recent_captures, remember, remember_capture


def test_the_latest_is_first_each_once_and_only_so_many_are_kept() -> None:
    for n in range(KEPT + 5):
        remember(FILTERS, f"conn == {n}")
    remember(FILTERS, "conn == 30")
    remember(FILES, "a.pcap")
    assert recent(FILTERS)[:2] == ["conn == 30", f"conn == {KEPT + 4}"]
    assert len(recent(FILTERS)) == len(set(recent(FILTERS))) == KEPT
    assert recent(FILES) == ["a.pcap"]


def test_files_that_were_opened_together_are_remembered_together(tmp_path: Path) -> None:
    one, two = tmp_path / "one.pcap", tmp_path / "two.pcap"
    one.write_bytes(b"1")
    two.write_bytes(b"2")
    remember_capture([str(one), str(two)])
    remember_capture([str(one)])
    remember_capture([str(one), str(tmp_path / "never.pcap")])
    assert recent_captures() == [[str(one)], [str(one), str(two)]]
    two.unlink()
    assert recent_captures() == [[str(one)]]


@given(
    st.binary(max_size=60)
    | st.sampled_from([b"[]", b'{"filters": 3}', b'{"filters": [1, "x", null, ""]}', b"[" * 9999])
)
def test_an_invalid_file_is_an_empty_history(data: bytes) -> None:
    write_file(state_folder() / "recents.json", data)
    assert set(recent(FILTERS)) <= {"x"}
    remember(FILTERS, "api == Fetch")
    assert recent(FILTERS)[0] == "api == Fetch"


def test_a_folder_that_cannot_be_made_is_no_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    remember(FILTERS, "api == Fetch")
    assert recent(FILTERS) == []


def test_a_file_is_whole_or_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "file"
    write_file(path, b"one")
    write_file(path, b"two")
    assert path.read_bytes() == b"two"
    assert [*path.parent.iterdir()] == [path]
    assert path.stat().st_mode & 0o077 == 0
