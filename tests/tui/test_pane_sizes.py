"""Panes have the sizes of the last time."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tui.main_driver import JAVA, opened
from tests.tui.test_panes_feature import drag
from tui.features.panes import PaneSizes, load_pane_sizes, save_pane_sizes
from tui.folders import state_folder, write_whole


@pytest.mark.long
async def test_dragged_borders_are_restored() -> None:
    async with opened(JAVA) as screen:
        usual = screen.list.size.height, screen.bytes.size.width
        await drag(screen, screen.fields, (9, 0), (0, -5))
        await drag(screen, screen.bytes, (0, 4), (-7, 0))
        left = screen.list.size.height, screen.bytes.size.width
        assert left == (usual[0] - 5, usual[1] + 7)
    async with opened(JAVA) as screen:
        assert (screen.list.size.height, screen.bytes.size.width) == left
    async with opened(JAVA, size=(60, 20)) as screen:
        assert screen.fields.size.width >= 10
        assert screen.list.size.height >= 3


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
    | st.sampled_from([b"[]", b"[" * 9999, b'{"list_share": 1e999, "bytes_share": 1}', b'{"list_share": NaN}'])
    | st.builds(
        lambda height, width: json.dumps({"list_share": height, "bytes_share": width}).encode(),
        st.floats() | st.integers() | st.text(max_size=3) | st.none(),
        st.floats() | st.integers() | st.text(max_size=3) | st.none(),
    )
)
def test_sizes_are_valid_whatever_the_file_has(data: bytes) -> None:
    write_whole(state_folder() / "panes.json", data)
    panes = load_pane_sizes()
    assert 0 <= panes.list_share <= 1
    assert panes.bytes_share is None or 0 <= panes.bytes_share <= 1


def test_a_folder_that_cannot_be_made_is_no_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    save_pane_sizes(PaneSizes(0.2, 0.3))
    assert load_pane_sizes() == PaneSizes()
