"""The columns of the list: those there are, those that are shown, their order and width. Without a screen.

Until the user chooses, a list shows what it has room for. A column of the user's own is named by the path of a field,
as `show --fields` takes it.

Invariants:
  * no column stands twice;
  * Info is always there, last, with the room that is left.
"""

import re
from dataclasses import dataclass
from typing import Final, NamedTuple


class ListColumn(NamedTuple):
    """A column; `least` is the list's width from which on it is shown unasked."""

    name: str
    width: int
    least: int = 0
    right: bool = False
    fact: str = ""
    """What the index calls it; empty where it has not got it, and rows can't be sorted by it."""
    words: str = ""

    @property
    def head(self) -> str:
        """What stands above it: the last part of a path."""
        return self.name.rpartition(".")[2] if self.is_path else self.name

    @property
    def is_path(self) -> bool:
        """Whether it is a field of messages."""
        return self.name not in BY_NAME and self.name != INFO


COLUMNS: Final = (
    ListColumn("No.", 7, 0, True, "number", "the row's number"),
    ListColumn("Time", 11, 60, True, "time_ns", "when it began; t changes how that is told"),
    ListColumn("Conn", 5, 70, True, "connection", "the TCP connection"),
    ListColumn("API", 24, 0, False, "api", "the request's name"),
    ListColumn("v", 3, 0, True, "api_version", "the request's version"),
    ListColumn("Corr", 8, 110, True, "correlation_id", "the correlation id"),
    ListColumn("Out", 6, 90, True, "request.size", "bytes of the request"),
    ListColumn("In", 6, 90, True, "response.size", "bytes of the response"),
    ListColumn("Latency", 9, 0, True, "latency_ns", "from the request to its response"),
    ListColumn("Client", 24, 140, False, "client_id", "the client id"),
)
BY_NAME: Final = {column.name: column for column in COLUMNS}
INFO: Final = "Info"
PATH_WIDTH: Final = 20
LEAST_WIDTH, MOST_WIDTH = 3, 80
NARROW: Final = {"No.": 5, "Time": 9, "API": 18}
"""Widths below `NARROW_BELOW` cells."""
NARROW_BELOW: Final = 110
LEAST_INFO: Final = 4
_INDEX: Final = re.compile(r"\[[^]]*\]")
MARKS_WIDTH: Final = 4
"""Cells before the first column: cursor, mark, severity, a space."""


def column_of(name: str) -> ListColumn:
    """A column by its name, or by the path of a field."""
    return BY_NAME.get(name, ListColumn(name, PATH_WIDTH, words="a field"))


@dataclass
class ListColumns:
    """What a list shows."""

    chosen: list[ListColumn] | None = None
    """The user's choice, in order; None for what there is room for."""

    @classmethod
    def of(cls, words: list[str]) -> "ListColumns":
        """``["No.", "API=20", "request.topics.name"]``, as `words` gives it. Raises `ValueError` for what is no column,
        with a plain line."""
        chosen: dict[str, ListColumn] = {}
        for word in words:
            name, given, width = word.partition("=")
            column = column_of(name)
            if name not in BY_NAME and not name.startswith(("request.", "response.")):
                raise ValueError(f"there is no column {name!r}; there are {', '.join(BY_NAME)}, and paths of fields")
            if given and not (width.isdecimal() and LEAST_WIDTH <= int(width) <= MOST_WIDTH):
                raise ValueError(f"column {name!r}: a width is {LEAST_WIDTH} to {MOST_WIDTH}, not {width!r}")
            chosen[name] = column._replace(width=int(width)) if given else column
        return cls([*chosen.values()])

    def words(self) -> list[str] | None:
        """The choice in words; None where there is none."""
        if self.chosen is None:
            return None
        return [c.name + (f"={c.width}" if c.width != column_of(c.name).width else "") for c in self.chosen]

    def fitting(self, across: int, time_width: int) -> list[ListColumn]:
        """The columns to show in so many cells, Info with what is left."""
        shown = self._automatic(across, time_width) if self.chosen is None else list(self.chosen)
        while shown and _room(shown, across) < LEAST_INFO:
            shown.pop()
        return [*shown, ListColumn(INFO, max(_room(shown, across), LEAST_INFO))]

    def _automatic(self, across: int, time_width: int) -> list[ListColumn]:
        columns = [column for column in COLUMNS if across >= column.least]
        if across < NARROW_BELOW:
            columns = [column._replace(width=NARROW.get(column.name, column.width)) for column in columns]
        return [c._replace(width=max(c.width, time_width)) if c.name == "Time" else c for c in columns]

    def choose(self, shown: list[ListColumn]) -> None:
        """Show these from now on."""
        self.chosen = [column for column in shown if column.name != INFO]

    def add(self, path: str, shown: list[ListColumn]) -> bool:
        """Show a field, of whichever elements of arrays, beside what is shown; whether it was not yet."""
        path = _INDEX.sub("", path)
        if any(column.name == path for column in shown):
            return False
        self.choose([*shown, column_of(path)])
        return True


def _room(columns: list[ListColumn], across: int) -> int:
    """Cells that are left for Info."""
    return across - MARKS_WIDTH - sum(column.width + 1 for column in columns)
