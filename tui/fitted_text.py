"""Texts of cells, in exactly the cells of their column."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from rich.cells import set_cell_size
from rich.segment import Segment
from rich.style import Style
from rich.text import Text

from tui.list_columns import ListColumn

_NAMES: Final = ("client_id", "group")
"""Columns whose texts differ at their ends."""


def fitting(text: str, column: ListColumn) -> str:
    """Return the text of a cell as wide as its column."""
    text = text.rjust(column.width) if column.right else text
    if len(text) > column.width:
        end = column.width // 2 if column.field in _NAMES else 0  # a number at its end tells names apart
        text = f"{text[: column.width - 1 - end]}…{text[len(text) - end :]}"
    return set_cell_size(text, column.width)


def fitted(text: Text, width: int, style: Style) -> list[Segment]:
    """Return colored text as wide as a column; the rest of the column has a style of its own."""
    if text.cell_len > width:
        text.truncate(width, overflow="ellipsis")
    return [*_colored(text, style), Segment(" " * (width - text.cell_len), style)]


def _colored(text: Text, style: Style) -> Iterator[Segment]:
    """Yield the pieces of a text, on the style of its cell."""
    ends = sorted({0, len(text), *(end for span in text.spans for end in (span.start, span.end))})
    for start, end in pairwise(ends):
        over = (span.style for span in text.spans if span.start <= start and end <= span.end)
        yield Segment(text.plain[start:end], sum((each for each in over if isinstance(each, Style)), style))
