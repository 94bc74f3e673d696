"""Options that take a filter, such as ``-Y FILTER``, and the message for a bad filter."""

from typing import TYPE_CHECKING, Final

from dissector.cli.errors import UsageError
from dissector.core.text import counted

if TYPE_CHECKING:  # who has no filter does not pay for importing what parses one
    from dissector.filter import Filter, FilterError

WIDTH: Final = 72
"""Characters of a filter that are shown, around the place that is wrong."""


def parse_filter(text: str | None, option: str = "-Y") -> "Filter | None":
    """The filter, if there is one. Raises `UsageError`, with notes that show where it is wrong."""
    if text is None:
        return None
    from dissector.filter import FilterError, parse

    try:
        return parse(text)
    except FilterError as error:
        raise _usage_error(error, option) from None


def _usage_error(error: "FilterError", option: str) -> UsageError:
    """The filter itself, and a mark below the column."""
    from dissector.core.text import clean

    error_line = UsageError(f"{option}: {error}")
    start = max(0, error.column - WIDTH // 2)
    before = clean(error.text[start : error.column])
    error_line.add_note(f"  {before}{clean(error.text[error.column : start + WIDTH])}")
    error_line.add_note(f"  {' ' * len(before)}^")
    return error_line


def no_match_message(filter: "Filter", rows: int) -> str:
    """The message for a filter that no row matches."""
    return f"-Y {filter.text}: 0 of {counted(rows, 'row')} match"
