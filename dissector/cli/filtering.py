"""Options that take a filter, ``-Y FILTER``: what one says, and how a bad filter is told."""

from typing import TYPE_CHECKING, Final

from dissector.capture import CaptureError
from dissector.core.text import counted

if TYPE_CHECKING:  # who has no filter does not pay for importing what parses one
    from dissector.filter import Filter, FilterError

WIDTH: Final = 72
"""Characters of a filter that are shown, around the place that is wrong."""


def wanted(text: str | None, option: str = "-Y") -> "Filter | None":
    """The filter, if there is one. Raises `CaptureError`, with notes that show where it is wrong."""
    if text is None:
        return None
    from dissector.filter import FilterError, parse

    try:
        return parse(text)
    except FilterError as error:
        raise _told(error, option) from None


def _told(error: "FilterError", option: str) -> CaptureError:
    """The filter itself, and a mark below the column."""
    from dissector.core.text import clean

    told = CaptureError(f"{option}: {error}")
    start = max(0, error.column - WIDTH // 2)
    before = clean(error.text[start : error.column])
    told.add_note(f"  {before}{clean(error.text[error.column : start + WIDTH])}")
    told.add_note(f"  {' ' * len(before)}^")
    return told


def nothing_fits(filter: "Filter", rows: int) -> str:
    """One line for a filter that no row fits."""
    return f"-Y {filter.text}: fits none of {counted(rows, 'row')}"
