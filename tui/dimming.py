"""Dimmed text that can be read: Textual mixes it half and half with its background, which is too faint."""

from collections.abc import Sequence
from functools import lru_cache

from rich.color import Color as RichColor
from rich.style import Style
from textual.filter import ANSIToTruecolor, LineFilter, dim_color

from tui.theme import DIM

_NOT_DIM = Style(dim=False)


class Dimming(ANSIToTruecolor):
    """Textual's filter of a terminal's colors, which dims too, with our share of the color. One filter, as each costs
    a pass over all that is drawn. The colors of a terminal itself (`ansi_red`) have no known mixture."""

    @lru_cache(1024)  # noqa: B019  # as Textual's, which lives as long as the application
    def truecolor_style(self, style: Style, background: RichColor) -> Style:
        return super().truecolor_style(_mixed(style, background) if style.dim else style, background)


def with_dimming(filters: Sequence[LineFilter]) -> list[LineFilter]:
    """Return filters of an application with ours in place of Textual's."""
    return [_dimming(each) if type(each) is ANSIToTruecolor else each for each in filters]


@lru_cache(4)
def _dimming(filter: ANSIToTruecolor) -> Dimming:
    return Dimming(filter._terminal_theme, enabled=filter.enabled)


def _mixed(style: Style, background: RichColor) -> Style:
    behind = background if style.bgcolor is None or style.bgcolor.is_default else style.bgcolor
    if style.color is None or style.color.triplet is None or behind.triplet is None:
        return style
    return style + Style.from_color(dim_color(behind, style.color, DIM)) + _NOT_DIM
