"""Fields and bytes: selected and opened with the mouse; sources of bytes."""

import pytest
from textual import events
from textual.pilot import Pilot

from tests.tui.main_driver import JAVA, Screen, opened, to
from tests.tui.shared_screens import SharedScreens
from tui.widgets.bytes_pane import BytesPane
from tui.widgets.field_tree import FieldTree


def place_of(screen: Screen, offset: int) -> tuple[int, int]:
    """Where the bytes pane draws a byte, its border counted in."""
    line = offset // screen.bytes.per_line - screen.bytes.scroll_offset.y
    x = next(x for x in range(200) if screen.bytes.offset_at(x, line) == offset)
    return x + 1, line + 1


async def drag(pilot: Pilot[None], start: tuple[int, int], end: tuple[int, int]) -> None:
    await pilot.mouse_down(BytesPane, offset=start)
    await pilot.hover(BytesPane, offset=end)
    await pilot.mouse_up(BytesPane, offset=end)


@pytest.mark.long
async def test_dragging_selects_bytes_and_shows_their_readings(shared: SharedScreens) -> None:
    async with shared.opened(JAVA) as screen:
        screen.bytes.focus()
        await screen.settle()
        await drag(screen.pilot, place_of(screen, 11), place_of(screen, 8))
        await screen.settle()
        assert screen.main.model.selection == range(8, 12)
        assert "4 bytes selected · i32 " in screen.text("#inspector")
        await screen.press("y", "h")
        assert bytes.fromhex(screen.pilot.app.clipboard) == screen.main.model.source.data[8:12]
        await screen.pilot.click(BytesPane, offset=place_of(screen, 5))
        await screen.settle()
        assert screen.main.model.selection is None
        assert screen.path == "header.request_api_key"


@pytest.mark.exhaustive
async def test_shift_extends_the_selection_from_the_cursor(shared: SharedScreens) -> None:
    async with shared.opened(JAVA) as screen:
        screen.bytes.focus()
        await screen.press("right", "right", "shift+right", "shift+right")
        assert screen.main.model.selection == range(2, 5)
        await screen.press("shift+down")
        assert screen.main.model.selection == range(2, 5 + screen.bytes.per_line)
        await screen.press("shift+up", "shift+left")
        assert screen.main.model.selection == range(2, 4)
        await screen.press("right")
        assert screen.main.model.selection is None


@pytest.mark.exhaustive
async def test_the_wheel_scrolls_the_bytes_and_selects_nothing() -> None:
    async with opened(JAVA, size=(80, 24)) as screen:
        await to(screen, "Produce")
        before = screen.main.place
        await screen.pilot._post_mouse_events([events.MouseScrollDown], BytesPane, button=0)
        await screen.settle()
        assert screen.bytes.scroll_offset.y > 0
        assert screen.main.place == before


@pytest.mark.long
async def test_a_click_selects_a_field_and_a_click_on_the_arrow_or_a_double_click_opens_it(
    shared: SharedScreens,
) -> None:
    async with shared.opened(JAVA) as screen:
        await to(screen, "CreateTopics")
        screen.fields.focus()
        await screen.settle()
        drawn = [screen.fields.get_node_at_line(line) for line in range(30)]
        line, node = next((n, node) for n, node in enumerate(drawn) if node is not None and node.is_expanded)
        x = screen.lines().splitlines()[screen.fields.region.y + 1 + line].index("▾")
        await screen.pilot.click(FieldTree, offset=(x + 6, line + 1))
        await screen.settle()
        assert screen.fields.cursor_node is node
        assert node.is_expanded
        await screen.pilot.click(FieldTree, offset=(x, line + 1))
        await screen.settle()
        assert not node.is_expanded
        await screen.pilot.click(FieldTree, offset=(x + 6, line + 1), times=2)
        await screen.settle()
        assert node.is_expanded
        await screen.press("enter")
        assert not node.is_expanded


@pytest.mark.exhaustive
async def test_b_cycles_through_the_sources_of_bytes(shared: SharedScreens) -> None:
    async with shared.opened(JAVA) as screen:
        model = screen.main.model
        screen.list.cursor = next(n for n in range(len(model.capture)) if "gzip" in model.capture.exchange(n).row.info)
        await screen.settle()
        assert model.traced is not None
        count = len(model.traced.message.sources)
        assert count > 1
        assert str(screen.bytes.border_title) == f"bytes · b: {count - 1} decompressed".replace(" 1 ", " ")
        seen = []
        for _ in range(count):
            await screen.press("b")
            assert model.source is not None
            seen.append(model.source.number)
        assert sorted(seen) == list(range(count))
        await to(screen, "ApiVersions")
        await screen.press("b")
        assert any("no other bytes" in words for words in screen.notifications())


@pytest.mark.exhaustive
async def test_a_high_screen_has_two_lines_about_the_field() -> None:
    async with opened(JAVA, size=(120, 39)) as screen:
        await screen.press("enter", "g", "down", "down")
        for height, lines in [(39, 1), (40, 2)]:
            await screen.resize((120, height))
            inspector = screen.text("#inspector")
            assert inspector.count("\n") == lines - 1
            assert "request.header.request_api_key · 18 = ApiVersions · INT16" in inspector
            assert "versions 0+" in inspector
            assert screen.main.query_one("#inspector").size.height == lines


@pytest.mark.long
async def test_without_colors_cursor_field_and_selection_are_visible(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    async with opened(JAVA) as screen:
        await screen.press("enter", "g", "down")
        node = screen.fields.cursor_node
        assert node is not None
        plain = screen.fields.rich_style
        assert any(
            getattr(span.style, "reverse", False) for span in screen.fields.render_label(node, plain, plain).spans
        )
        screen.bytes.focus()
        await screen.press("shift+right", "shift+right")
        drawn = [s.style for s in screen.bytes.render_line(0) if s.style is not None]
        assert any(style.reverse and style.underline for style in drawn)


@pytest.mark.exhaustive
async def test_sizes_of_fields_move_with_a_scroll_bar_that_appears() -> None:
    async with opened(JAVA, size=(80, 40)) as screen:
        tree = screen.main.query_one(FieldTree)
        for is_there in (False, True, False):
            tree.show_vertical_scrollbar = is_there
            crop = tree.size.region
            lines = [strip.text for strip in tree.render_lines(crop)]
            across = tree.scrollable_content_region.width
            assert lines[1][:across].endswith(" B")  # the first is the border
