"""The colors of rows, the legend, and that hues differ."""

import itertools

import pytest
from textual.color import Color
from textual.theme import Theme
from textual.widgets import Static

from tests.tui.main_driver import JAVA, opened
from tui.row_colors import HUES, ColorBy
from tui.theme import OURS


async def test_v_goes_through_the_colorings_and_the_legend_explains_each() -> None:
    async with opened(JAVA) as screen:
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


async def test_errors_keep_their_color_in_every_coloring() -> None:
    async with opened(JAVA) as screen:
        await screen.press("e", "j", "v")
        capture = screen.main.capture
        error = next(n for n in range(len(capture)) if capture.has_warning(n))
        line = screen.list.render_line(error - screen.list.scroll_offset.y + 1)
        [style] = {segment.style for segment in line if "ConsumerGroupDescribe" in segment.text}
        severity = capture.row(error).severity
        assert severity is not None
        assert style is not None
        assert style.color == screen.list.get_component_rich_style(f"list--{severity.value}", partial=True).color


@pytest.mark.parametrize("theme", OURS, ids=lambda theme: theme.name)
def test_each_hue_is_read_easily_and_is_unlike_the_others(theme: Theme) -> None:
    """Contrast as WCAG 2 defines it: 4.5 for text."""
    surface = Color.parse(theme.surface or "")
    hues = [Color.parse(theme.variables[f"hue{n}"]) for n in range(HUES)]
    texts = [*hues, *(Color.parse(each) for each in (theme.error, theme.warning, theme.foreground) if each)]
    for color in texts:
        assert _contrast(color, surface) >= 4.5, color.hex
    for one, other in itertools.combinations(hues, 2):
        assert sum((a - b) ** 2 for a, b in zip(one.rgb, other.rgb, strict=True)) > 900, (one.hex, other.hex)


def _contrast(one: Color, other: Color) -> float:
    light, dark = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def _luminance(color: Color) -> float:
    parts = [part / 255 for part in color.rgb]
    red, green, blue = (part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


async def test_every_theme_of_textual_works() -> None:
    async with opened(JAVA) as screen:
        await screen.press("v")
        for name in screen.pilot.app.available_themes:
            screen.pilot.app.theme = name
            await screen.settle()
            assert screen.list.hue_style(0).color is not None
