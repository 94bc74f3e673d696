"""Panes have the sizes of the last time."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tui.main_driver import JAVA, opened
from tests.tui.test_panes_feature import drag
from tui.appearance import PaneLayout
from tui.features.panes import PaneSizes, load_pane_sizes, save_pane_sizes
from tui.folders import state_folder, write_file
from tui.settings import load


@pytest.mark.long
async def test_dragged_borders_are_restored() -> None:
    async with opened(JAVA) as screen:
        usual = screen.list.size.height, screen.bytes.size.width
        await drag(screen, screen.fields, (9, 0), (0, -5))
        await drag(screen, screen.bytes, (0, 4), (9, 0))
        left = screen.list.size.height, screen.bytes.size.width
        assert left == (usual[0] - 5, usual[1] - 9)
    async with opened(JAVA) as screen:
        assert (screen.list.size.height, screen.bytes.size.width) == left
    async with opened(JAVA, size=(60, 20)) as screen:
        assert screen.fields.size.width >= 10
        assert screen.list.size.height >= 3


@pytest.mark.long
async def test_a_key_puts_the_panes_side_by_side_where_there_is_room_and_that_is_kept() -> None:
    async with opened(JAVA, size=(149, 40)) as screen:
        await screen.press("vertical_line")
        assert screen.notifications() == ["three columns need 150 cells; this terminal has 149"]
        assert screen.list.region.right == screen.bytes.region.right, "the list is above the bytes"
        await screen.resize((200, 40))
        await screen.press("vertical_line", "enter", "j", "j")
        places = [pane.region for pane in (screen.list, screen.fields, screen.bytes)]
        assert [place.y for place in places] == [places[0].y] * 3
        assert [place.x for place in places] == [0, places[0].right, places[1].right]
        assert places[2].right == 200
        assert screen.bytes.per_line == 8, "the list needs the room"
        assert load().layout is PaneLayout.COLUMNS
        await drag(screen, screen.fields, (0, 4), (12, 0))
        assert screen.list.region.width == places[0].width + 12
        await drag(screen, screen.fields, (9, 0), (0, 5))
        assert screen.list.region.width == places[0].width + 12, "the upper border stays"
        await screen.press("plus", "minus", "minus")
        assert abs(screen.list.region.width - (places[0].width + 12 - 30)) <= 1
        await screen.press("backslash")
        assert screen.fields.region.width == 200
        await screen.press("backslash")
        left = screen.list.region.width
        await screen.resize((120, 40))
        assert screen.list.region.width == 120, "too narrow: the list is above"
    async with opened(JAVA, size=(260, 40)) as screen:
        assert screen.bytes.region.y == screen.list.region.y
        assert screen.bytes.per_line == 16
        await screen.resize((200, 40))
        assert abs(screen.list.region.width - left) <= 1
        await screen.press("vertical_line")
        assert screen.list.region.width == 200
        assert load().layout is PaneLayout.ROWS


@pytest.mark.long
async def test_a_line_has_16_bytes_where_the_fields_leave_room() -> None:
    async with opened(JAVA) as screen:
        assert screen.bytes.per_line == 16
        assert screen.bytes.region.width + screen.fields.region.width == 120
        assert 'client_software_name "apache-kafka-java"' in screen.lines(), "not cut; its size has no room"
        await screen.press("r")
        assert screen.bytes.per_line == 16
        await screen.press("9", "G")
        assert "(java-orders)" in screen.lines()
        assert screen.bytes.per_line == 8, "a topic by its id and its name is longer"
        await screen.press("g", "j", "k")
        assert screen.bytes.per_line == 8, "a border that moves with each row is restless"
        await screen.press("enter", "tab")
        assert screen.bytes.per_line == 16, "who goes to the bytes gets them"
        screen.list.focus()
        await screen.press("9", "G", "g")
        assert screen.bytes.per_line == 8
        for width, count in ((119, 8), (120, 16)):
            await screen.resize((width, 40))
            assert screen.bytes.per_line == count, width


@pytest.mark.exhaustive
async def test_a_border_has_the_same_place_on_a_terminal_of_another_size() -> None:
    async with opened(JAVA, size=(200, 60)) as screen:
        await drag(screen, screen.bytes, (0, 4), (-45, 0))
        share = screen.bytes.outer_size.width / 200
    async with opened(JAVA, size=(100, 40)) as screen:
        assert abs(screen.bytes.outer_size.width / 100 - share) < 0.02
        await screen.resize((160, 40))
        assert abs(screen.bytes.outer_size.width / 160 - share) < 0.02


@pytest.mark.exhaustive
async def test_default_sizes_are_not_saved() -> None:
    async with opened(JAVA):
        pass
    assert not (state_folder() / "panes.json").exists()


@given(
    st.binary(max_size=40)
    | st.sampled_from(
        [
            b"[]",
            b"[" * 9999,
            b'{"list_share": 1e999, "bytes_share": 1}',
            b'{"list_share": NaN}',
            b'{"list_share": 0.5, "column_share": NaN}',
            b'{"list_share": 0.5, "column_share": 7}',
        ]
    )
    | st.builds(
        lambda height, width: json.dumps({"list_share": height, "bytes_share": width}).encode(),
        st.floats() | st.integers() | st.text(max_size=3) | st.none(),
        st.floats() | st.integers() | st.text(max_size=3) | st.none(),
    )
)
def test_sizes_are_valid_whatever_the_file_has(data: bytes) -> None:
    write_file(state_folder() / "panes.json", data)
    panes = load_pane_sizes()
    assert 0 <= panes.list_share <= 1
    assert 0 <= panes.column_share <= 1
    assert panes.bytes_share is None or 0 <= panes.bytes_share <= 1


def test_a_folder_that_cannot_be_made_is_no_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    save_pane_sizes(PaneSizes(0.2, 0.3))
    assert load_pane_sizes() == PaneSizes()
