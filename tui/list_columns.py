"""The columns of the list: which there are, which are shown, their order and width, and texts in exactly the cells of
theirs. Without a screen.

Until the user chooses columns, a list shows those that fit. A column of a message's field is named by its path, as
`show --fields` takes it.

Invariants:
  * no column occurs twice;
  * Info is always there, last, with the remaining width.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import pairwise
from typing import Final, NamedTuple

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from rich.style import Style
from rich.text import Text

from dissector.exchange.row_field import FieldType, RowField
from dissector.exchange.row_fields import ROW_FIELDS, row_fields


class ListColumn(NamedTuple):
    """A column; `least` is the list's width from which it is shown by default, None for never."""

    name: str
    width: int
    field: str
    """The row field, or the path of a field of messages, that it shows."""
    least: int | None = None
    right: bool = False
    words: str = ""

    @property
    def head(self) -> str:
        """The heading: of a path its last part."""
        return self.name.rpartition(".")[2] if self.is_path else self.name

    @property
    def is_path(self) -> bool:
        """Whether it is a field of messages."""
        return self.field not in ROW_FIELDS

    @property
    def is_indexed(self) -> bool:
        """Whether rows can be sorted by it."""
        field = ROW_FIELDS.get(self.field)
        return field is not None and field.is_indexed and not field.has_several_values


INFO: Final = "Info"
_LAYOUT: Final = {
    "number": (7, 0), "time": (11, 60), "connection": (5, 70), "api": (18, 0), "api_version": (2, 0),
    "correlation_id": (8, 138), "request.size": (5, 90), "response.size": (5, 90), "latency": (9, 0),
    "client_id": (14, 118),
}  # fmt: skip
"""Width, and the width of the list from which a column is shown by default, of the default columns in their order.
What is left is Info's, so nothing is wider than it must be."""
_WIDTHS: Final = {FieldType.TEXT: 24, FieldType.TIME: 20, FieldType.FINDING: 24, FieldType.ADDRESS: 15}
_NUMBERS: Final = (
    FieldType.INTEGER, FieldType.SIZE, FieldType.DURATION, FieldType.TIME, FieldType.CONNECTION,
)  # fmt: skip
_WIDTH: Final = 9


@cache
def all_columns() -> tuple[ListColumn, ...]:
    """A column for each row field: the default ones first, in their order."""
    fields = sorted(row_fields(), key=lambda field: [*_LAYOUT, field.name].index(field.name))
    return tuple(_column(field) for field in fields if field.heading != INFO)


_OF_PROCESSES: Final = ("process", "pid", "container", "server.process", "server.pid")


def offered_columns(*, processes: bool) -> tuple[ListColumn, ...]:
    """The columns that are offered; those about processes only where there are any."""
    return tuple(each for each in all_columns() if processes or each.field not in _OF_PROCESSES)


def _column(field: RowField) -> ListColumn:
    width, least = _LAYOUT.get(field.name, (_WIDTHS.get(field.type, _WIDTH), None))
    return ListColumn(field.heading, width, field.name, least, field.type in _NUMBERS, field.description)


PATH_WIDTH: Final = 20
LEAST_WIDTH, MOST_WIDTH = 2, 80
_ROOMY: Final = {"API": 28, "Client": 24}
"""Widths from `_ROOMY_FROM` cells on: whole names."""
_ROOMY_FROM: Final = 158
LEAST_INFO: Final = 4
_INDEX: Final = re.compile(r"\[[^]]*\]")
MARKS_WIDTH: Final = 4
"""Cells before the first column: cursor, mark, severity, a space."""


def column_of(name: str) -> ListColumn:
    """Return a column by its heading, by any name of a row field, or by the path of a field of messages."""
    field = ROW_FIELDS.get(name) or next((field for field in row_fields() if field.heading == name), None)
    return ListColumn(name, PATH_WIDTH, name, words="a field") if field is None else _column(field)


@dataclass
class ListColumns:
    """The columns of a list."""

    chosen: list[ListColumn] | None = None
    """The user's choice, in order; None for the default."""

    @classmethod
    def of(cls, words: list[str]) -> "ListColumns":
        """Parse ``["No.", "API=20", "request.topics.name"]``, as `words` writes it. Raises `ValueError` with a plain
        line."""
        chosen: dict[str, ListColumn] = {}
        for word in words:
            name, given, width = word.partition("=")
            column = column_of(name)
            if column.is_path and not name.startswith(("request.", "response.")):
                known = ", ".join(each.name for each in all_columns())
                raise ValueError(f"unknown column {name!r}; there are {known}, and paths of fields")
            if given and not (width.isdecimal() and LEAST_WIDTH <= int(width) <= MOST_WIDTH):
                raise ValueError(f"column {name!r}: a width is {LEAST_WIDTH} to {MOST_WIDTH}, not {width!r}")
            chosen[column.name] = column._replace(width=int(width)) if given else column
        return cls([*chosen.values()])

    def words(self) -> list[str] | None:
        """Return the choice as strings; None if there is none."""
        if self.chosen is None:
            return None
        return [c.name + (f"={c.width}" if c.width != column_of(c.name).width else "") for c in self.chosen]

    def fitting(self, across: int, needed: Mapping[str, int]) -> list[ListColumn]:
        """Return the columns for `across` cells, Info with the remaining ones. Of the default columns some have the
        width that they need, by name."""
        shown = list(_default(across, tuple(needed.items())) if self.chosen is None else self.chosen)
        while shown and _room(shown, across) < LEAST_INFO:
            shown.pop()
        return [*shown, ListColumn(INFO, max(_room(shown, across), LEAST_INFO), INFO.lower())]

    def choose(self, shown: list[ListColumn]) -> None:
        """Show these from now on."""
        self.chosen = [column for column in shown if column.name != INFO]

    def add(self, path: str, shown: list[ListColumn]) -> bool:
        """Add a column for a field, of all elements of arrays; return whether it was new."""
        path = _INDEX.sub("", path)
        column = column_of(path)
        if any(each.name == column.name for each in shown):
            return False
        self.choose([*shown, column])
        return True


@lru_cache(64)
def _default(across: int, needed: tuple[tuple[str, int], ...]) -> tuple[ListColumn, ...]:
    """Return the columns of a list whose user chose none: each row that is drawn asks for them."""
    columns = (column for column in all_columns() if column.least is not None and across >= column.least)
    needs, roomy = dict(needed), across >= _ROOMY_FROM
    return tuple(column._replace(width=_default_width(column, needs, roomy=roomy)) for column in columns)


def _default_width(column: ListColumn, needs: Mapping[str, int], *, roomy: bool) -> int:
    """Return the width that a column needs; of names, its own at most."""
    most = _ROOMY.get(column.name, column.width) if roomy else column.width
    needed = needs.get(column.name, most)
    return min(most, needed) if column.name in _ROOMY else needed


def _room(columns: list[ListColumn], across: int) -> int:
    """Return the cells that remain for Info."""
    return across - MARKS_WIDTH - sum(column.width + 1 for column in columns)


_NAMES: Final = ("client_id", "group")
"""Columns whose texts differ at their ends."""
SHORTEST_NAME: Final = 16
"""Cells that are left of a name whose middle is left out."""
_LONG_NAME: Final = re.compile(rf"[^\s\[\]]{{{SHORTEST_NAME + 1},}}")
"""Of the info column: partitions in brackets follow a topic's name."""


def fitting(text: str, column: ListColumn) -> str:
    """Return the text of a cell as wide as its column."""
    text = text.rjust(column.width) if column.right else text
    if cell_len(text) > column.width:
        is_name = column.field in _NAMES
        text = elided(text, column.width) if is_name else f"{set_cell_size(text, column.width - 1)}…"
    return set_cell_size(text, column.width)


def elided(name: str, most: int) -> str:
    """Return a name in at most so many cells, without its middle: a number at its end tells names apart."""
    end = most // 2
    return name if cell_len(name) <= most else f"{set_cell_size(name, most - 1 - end).rstrip()}…{ending(name, end)}"


def ending(text: str, most: int) -> str:
    """Return the end of a text, of at most so many cells."""
    return text if cell_len(text) <= most else set_cell_size(text[::-1], most)[::-1].lstrip()


def with_elided_names(text: str, width: int, start: int = 0) -> str:
    """Return a text whose long names have lost their middles as far as it has to for `width` cells, the longest first;
    those from a character on, as before it there are sentences."""
    excess = cell_len(text) - width
    if excess <= 0:
        return text
    names = sorted((cell_len(each[0]) for each in _LONG_NAME.finditer(text, start)), reverse=True)
    most = names[0] if names else 0
    for count, longer in enumerate(names, 1):  # so many are as long as the next one, or as what is left to save allows
        next_length = names[count] if count < len(names) else SHORTEST_NAME
        if count * (longer - next_length) >= excess:
            most = longer - -(-excess // count)
            break
        excess -= count * (longer - next_length)
        most = next_length
    return text[:start] + _LONG_NAME.sub(lambda each: elided(each[0], most), text[start:])


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
