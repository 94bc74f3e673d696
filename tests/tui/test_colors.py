"""The colors of rows, the legend, the contrast of themes, and that hues differ."""

import itertools
import re

import pytest
from textual.color import Color
from textual.theme import Theme
from textual.widgets import Static

from dissector.exchange.info_column import first_error
from tests.cases import cases
from tests.conftest import some_of
from tests.tui.main_driver import JAVA, opened
from tests.tui.shared_screens import SharedScreens
from tui.row_colors import HUES, ColorBy
from tui.theme import BACKGROUNDS, BRIGHT, CSS, DIM, OURS, PALETTES, TEXT_COLORS
from tui.widgets.bytes_pane import BytesPane
from tui.widgets.cell_list import CellList


@pytest.mark.long
async def test_v_goes_through_the_colorings_and_the_legend_explains_each(shared: SharedScreens) -> None:
    async with shared.opened(JAVA) as screen:
        legend = screen.main.query_one("#legend", Static)
        assert not legend.display
        seen = []
        for way in list(ColorBy)[1:]:
            await screen.press("v")
            assert screen.main.appearance.color_by is way
            assert legend.display
            assert way.value in screen.text("#legend")
            seen.append(tuple(screen.list.render_line(y)._segments[-1].style for y in range(1, 12)))
        assert "produce" not in screen.text("#legend")
        assert len(set(seen)) == len(seen)
        await screen.press("v")
        assert not legend.display


@pytest.mark.long
@pytest.mark.parametrize("coloring", ["v", "t"])
async def test_an_error_colors_its_mark_and_its_name_and_not_the_row(coloring: str) -> None:
    """Also where rows are colored by API."""
    async with opened(JAVA) as screen:
        await screen.press("e", "j", coloring)
        capture = screen.main.capture
        error = next(n for n in range(len(capture)) if capture.has_warning(n))
        line = screen.list.render_line(error - screen.list.scroll_offset.y + 1)
        warning = screen.list.color("warning").color
        alarms = [part.text for part in line if part.style is not None and part.style.color == warning]
        assert [text.strip() for text in alarms] == ["!", first_error(capture.exchange(error))]
        assert alarms[-1].strip() == capture.exchange(error).row.info.partition(" · ")[0], "errors come first"


@cases("theme", OURS, ids=lambda theme: theme.name)
def test_any_text_is_read_easily_on_any_background(theme: Theme) -> None:
    """Contrast as WCAG 2 defines it: AA asks for 4.5. What is drawn on a bright background has the screen's color."""
    colors = {name: Color.parse(color) for name, color in PALETTES[theme.name].items()}
    pairs = [(colors[text], colors[behind]) for text in TEXT_COLORS for behind in BACKGROUNDS]
    pairs += [(colors[behind].blend(colors["foreground"], DIM), colors[behind]) for behind in BACKGROUNDS]
    pairs += [(colors["background"], colors[bright]) for bright in BRIGHT]
    for text, behind in pairs:
        assert _contrast(text, behind) >= 4.5, (text.hex, behind.hex)


def test_style_sheets_use_no_other_colors() -> None:
    sheets = [CSS, *(kind.DEFAULT_CSS for kind in (CellList, BytesPane))]
    rules = [rule for sheet in sheets for rule in re.findall(r"\{([^{}]*)\}", sheet)]
    assert len(rules) > 60
    for rule in rules:
        used = dict(re.findall(r"(?<![\w-])(color|background): ([^;]+);", rule))
        text, behind = used.get("color", "$foreground").removeprefix("$"), used.get("background", "$surface")
        if behind != "$background 60%":  # what a dialog covers
            assert behind.removeprefix("$") in (BACKGROUNDS if text in TEXT_COLORS else BRIGHT), rule
            assert text in (*TEXT_COLORS, "background"), rule


@cases("theme", OURS, ids=lambda theme: theme.name)
def test_each_hue_is_unlike_the_others(theme: Theme) -> None:
    hues = [Color.parse(theme.variables[f"hue{n}"]) for n in range(HUES)]
    for one, other in itertools.combinations(hues, 2):
        assert sum((a - b) ** 2 for a, b in zip(one.rgb, other.rgb, strict=True)) > 900, (one.hex, other.hex)


@pytest.mark.long
async def test_dimmed_text_keeps_enough_of_its_color(shared: SharedScreens) -> None:
    async with shared.opened(JAVA) as screen:
        colors = PALETTES[screen.pilot.app.theme]
        panel, foreground = Color.parse(colors["panel"]), Color.parse(colors["foreground"])
        strips = screen.pilot.app.screen._compositor.render_strips()
        filters = screen.pilot.app.get_line_filters()
        for each in filters:
            strips = [strip.apply_filter(each, panel) for strip in strips]
        [state] = [part.style for part in strips[0] if "100%" in part.text]
        assert state is not None
        assert not state.dim
        assert state.color is not None
        assert state.color.triplet == panel.blend(foreground, DIM).rich_color.triplet


def _contrast(one: Color, other: Color) -> float:
    light, dark = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def _luminance(color: Color) -> float:
    parts = [part / 255 for part in color.rgb]
    red, green, blue = (part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.long
@pytest.mark.parametrize("step", some_of([1, 5], 5))
async def test_every_theme_of_textual_works(step: int) -> None:
    """Each, or in `make test` the first and some of the others."""
    async with opened(JAVA) as screen:
        await screen.press("v")
        for name in sorted(screen.pilot.app.available_themes)[::step]:
            screen.pilot.app.theme = name
            await screen.settle()
            assert screen.list.hue_style(0).color is not None
