"""Marks and comments: saved by the contents of the capture, shown in the list, exported."""

import json
import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissector.capture_session import Capture
from dissector.conversation import pcapng
from dissector.export.packets import carrying_packets
from tests.tui.main_driver import JAVA, opened
from tests.tui.test_filter import shown
from tui.folders import state_folder, write_file
from tui.row_marks import SAMPLE, RowMarks, identity


def test_marks_belong_to_the_content_of_a_capture_not_to_its_name(tmp_path: Path) -> None:
    other = tmp_path / "moved.pcapng"
    shutil.copy(JAVA, other)
    marks = RowMarks()
    marks.keep([JAVA], 60)
    assert marks.toggle(3)
    marks.comment(5, "  why so slow?  ")
    again = RowMarks()
    again.keep([str(other)], 60)
    assert (again.marked, again.comments) == ({3}, {5: "why so slow?"})
    assert not again.toggle(3)
    again.comment(5, "")
    assert [*(state_folder() / "marks").iterdir()] == []


def test_a_capture_with_other_content_has_no_marks_of_it(tmp_path: Path) -> None:
    data = bytes(SAMPLE * 3)
    path = tmp_path / "a"
    path.write_bytes(data)
    names = {identity([str(path)])}
    for changed in (data + b"x", b"x" + data[1:], data[:-1] + b"x"):
        path.write_bytes(changed)
        names.add(identity([str(path)]))
    names.add(identity([str(path), str(path)]))
    assert len(names) == 5
    assert None not in names
    assert identity(["-"]) is None
    assert identity([]) is None


ANYTHING = st.recursive(
    st.none() | st.integers() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
)
NEARLY = st.fixed_dictionaries(
    {
        "marked": st.lists(st.integers() | st.text() | st.booleans()),
        "comments": st.dictionaries(st.text() | st.integers(0, 20).map(str), st.text() | st.none()),
    }
)


@given(ANYTHING | NEARLY)
def test_an_invalid_file_of_marks_is_ignored(value: object) -> None:
    name = identity([JAVA])
    write_file(state_folder() / "marks" / f"{name}.json", json.dumps(value).encode())
    marks = RowMarks()
    marks.keep([JAVA], 10)
    assert marks.marked <= set(range(10))
    assert set(marks.comments) <= set(range(10))
    assert all(marks.comments.values())


@pytest.mark.long
async def test_m_marks_a_row_quote_cycles_through_marked_rows_and_shift_m_shows_only_those() -> None:
    async with opened(JAVA) as screen:
        await screen.press("apostrophe", "M")
        assert len(shown(screen)) == len(screen.main.capture)
        await screen.press("j", "j", "m", "8", "G", "m", "g", "apostrophe")
        assert screen.list.number == 2
        assert screen.list.render_line(3).text.startswith("▸◆")
        await screen.press("apostrophe")
        assert screen.list.number == 7
        await screen.press("apostrophe")
        assert screen.list.number == 2
        await screen.press("M")
        assert shown(screen) == [2, 7]
        assert "2 shown" in screen.text("#title")
        await screen.press("m")
        assert shown(screen) == [7]
        await screen.press("M")
        assert len(shown(screen)) == len(screen.main.capture)
    async with opened(JAVA) as screen:
        assert screen.list.render_line(8).text.startswith(" ◆")


@pytest.mark.long
async def test_a_semicolon_comments_a_row() -> None:
    async with opened(JAVA) as screen:
        await screen.pilot.press("j", "semicolon", *"why", "enter")
        await screen.settle()
        line = screen.list.render_line(2).text
        assert line.startswith("▸✎")
        assert "✎ why" in line
        await screen.pilot.press("semicolon", *"not", "escape")
        await screen.settle()
        assert screen.main.appearance.marks.comments == {1: "why"}
        await screen.pilot.press("semicolon", *["backspace"] * 3, "enter")
        await screen.settle()
        assert screen.main.appearance.marks.comments == {}


@pytest.mark.exhaustive
async def test_comments_of_the_user_are_exported_and_seen_in_the_copy(tmp_path: Path) -> None:
    copy = tmp_path / "copy.pcapng"
    with Capture([JAVA]) as capture:
        for _ in capture.read():
            pass
        packets = carrying_packets(capture, [8], {8: "look\x1b[31m here"})
        copy.write_bytes(b"".join(pcapng(packets, "made for a test")))
    async with opened(str(copy)) as screen:
        line = screen.list.render_line(1).text
        assert "✎ look␛[31m here" in line
        assert "kdissect 9" not in line


@pytest.mark.long
async def test_marks_that_cannot_be_saved_are_reported_and_shown(folders: Path) -> None:
    async with opened(JAVA) as screen:
        folders.mkdir(exist_ok=True)
        (folders / "state").write_text("")
        await screen.press("m")
        assert any("not saved" in each.message for each in screen.pilot.app._notifications)
        assert screen.main.appearance.marks.marked == {0}
