"""The bytes of both sides on the diff screen."""

import pytest

from dissector.analysis.diff import PairVerdict
from tests.tui.diff_driver import Screen, opened, to_cause, to_pair
from tests.tui.driver import SIZES
from tui.widgets.bytes_pane import BytesPane


@pytest.mark.exhaustive
async def test_moving_in_the_fields_highlights_the_bytes_of_both_sides() -> None:
    async with opened() as screen:
        await to_pair(screen, "ApiVersions", PairVerdict.DIFFERENT)
        screen.diff.differences.focus()
        await screen.press("down")
        values = [side.node.value if side.node is not None else None for side in screen.sides]
        assert values == ["apache-kafka-java", "confluent-kafka-python"]
        assert "client_software_name" in screen.text("#inspector")


@pytest.mark.long
async def test_a_byte_leads_to_its_field_by_key_and_by_click() -> None:
    async with opened() as screen:
        await to_pair(screen, "ApiVersions", PairVerdict.DIFFERENT)
        pane = screen.diff.query_one("#bytes-b", BytesPane)
        node = screen.sides[1].traced.message.tree.find("body.client_software_version")
        assert node is not None
        pane.focus()
        pane.action_go(node.start + 1)
        await screen.settle()
        assert screen.path == "client_software_version"
        assert pane.border_title == f"B · request {node.start:#06x}–{node.end - 1:#06x}"
        name = screen.sides[0].traced.message.tree.find("body.client_software_name")
        assert name is not None
        left = screen.diff.query_one("#bytes-a", BytesPane)
        line, column = divmod(name.start + 1, left.per_line)
        await screen.pilot.click("#bytes-a", offset=(6 + column * 3, 1 + line))
        await screen.settle()
        assert screen.path == "client_software_name"


@pytest.mark.exhaustive
async def test_b_hides_and_shows_the_bytes_also_on_a_small_terminal() -> None:
    async with opened() as screen:
        await screen.press("b")
        assert "0000" not in screen.lines()
        await screen.press("b")
        assert "0000" in screen.lines() or screen.diff.query_one("#both").display
    async with opened(size=(60, 20)) as screen:
        await to_cause(screen, "ApiVersions", "client_software_name")
        await screen.press("b")
        assert "0000" in screen.lines() or "00" in screen.lines()
        assert screen.diff.query_one("#both").display


@pytest.mark.exhaustive
async def test_the_mouse_drags_borders_of_the_bytes_and_a_double_click_resets_them() -> None:
    async with opened() as screen:
        left, right = screen.diff.panes
        before = left.region
        await screen.pilot.mouse_down("#bytes-b", offset=(0, 3))
        await screen.pilot.hover("#bytes-a", offset=(40, 3))
        await screen.pilot.mouse_up("#bytes-a", offset=(40, 3))
        await screen.settle()
        assert left.region.width == 40
        assert right.region.width == 80
        await screen.pilot.mouse_down("#bytes-a", offset=(20, 0))
        await screen.pilot.hover("#differences", offset=(20, 5))
        await screen.pilot.mouse_up("#differences", offset=(20, 5))
        await screen.settle()
        assert left.region.height > before.height
        await screen.pilot.click("#bytes-a", offset=(20, 0), times=2)
        await screen.pilot.click("#bytes-b", offset=(0, 3), times=2)
        await screen.settle()
        assert left.region == before


@pytest.mark.long
@pytest.mark.parametrize("size", [(80, 24), *(pytest.param(size, marks=pytest.mark.exhaustive) for size in SIZES[2:])])
async def test_the_bytes_of_the_field_are_visible_at_first_and_after_every_move_and_resize(
    size: tuple[int, int],
) -> None:
    async with opened(size=size) as screen:
        for key in ("", "j", "j", "j", "G", "v", "j", "j", "j", "tab", "j", "j", "j", "r", "j"):
            await screen.press(*([key] if key else []))
            in_view(screen)
        for width, height in ((100, 30), (80, 24), (200, 60), (80, 24)):
            await screen.pilot.resize_terminal(width, height)
            await screen.settle()
            in_view(screen)
        await screen.press("b", "b")
        in_view(screen)


def in_view(screen: Screen) -> None:
    """The line of each side's cursor is among those that are drawn."""
    for pane in screen.diff.panes:
        line = pane.cursor // pane.per_line
        assert pane.scroll_offset.y <= line < pane.scroll_offset.y + pane.size.height
