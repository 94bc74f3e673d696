"""Dimmed text that can be read: Textual mixes it half and half with its background, which is too faint."""

from rich.color import Color as RichColor
from rich.segment import Segment
from rich.style import Style
from textual.color import Color
from textual.filter import LineFilter, dim_color

from tui.theme import DIM

_NOT_DIM = Style(dim=False)


class Dimming(LineFilter):
    """Mixes dimmed text with its background; comes before Textual's filters, which leave it as it is then. The colors
    of a terminal (`ansi_red`) have no known mixture."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        return [
            segment if segment.style is None or not segment.style.dim
            else Segment(segment.text, _mixed(segment.style, background.rich_color), segment.control)
            for segment in segments
        ]  # fmt: skip


def _mixed(style: Style, background: RichColor) -> Style:
    behind = background if style.bgcolor is None or style.bgcolor.is_default else style.bgcolor
    if style.color is None or style.color.triplet is None or behind.triplet is None:
        return style
    return style + Style.from_color(dim_color(behind, style.color, DIM)) + _NOT_DIM
