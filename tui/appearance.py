"""How the list shows rows: columns, colors, time format, sort order, marks; how the panes stand. Without a screen."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, NamedTuple

import numpy as np

from dissector.capture_session import Capture
from dissector.core.arrays import Bool, Int64
from dissector.exchange.row_field import Value
from tui.list_columns import ListColumns
from tui.row_colors import ColorBy
from tui.row_marks import RowMarks
from tui.saved import Saved
from tui.time_format import TimeFormat

TOGETHER: Final = 1 << 13
"""Rows that are read at once. It bounds how long the screen waits for its turn."""


class SortOrder(NamedTuple):
    """A column, by its name in the list, and whether the largest value is first."""

    column: str
    descending: bool = False

    @property
    def arrow(self) -> str:
        """The arrow in the column's heading."""
        return "▼" if self.descending else "▲"


def sorted_rows(capture: Capture, fact: str, count: int, stopped: Callable[[], bool]) -> tuple[Int64, int] | None:
    """Return the first `count` rows in the ascending order of a row field, from the index, and how many of them have a
    value: the others are last. None if it was stopped."""
    keys, words = np.zeros(count, np.int64), dict[str, int]()
    missing = np.zeros(count, np.bool_)
    for start in range(0, count, TOGETHER):
        if stopped():
            return None
        stop = min(count, start + TOGETHER)
        [values] = capture.index.columns([fact], range(start, stop))
        keys[start:stop], missing[start:stop] = _keys(values, words)
    if words:
        ranks = np.zeros(len(words), np.int64)
        ranks[[words[word] for word in sorted(words)]] = np.arange(len(words))
        keys = ranks[keys]
    there, absent = np.flatnonzero(~missing), np.flatnonzero(missing)
    return np.concatenate([there[np.argsort(keys[there], kind="stable")], absent]), len(there)


def reversed_order(order: Int64, present: int) -> Int64:
    """Return the descending order; rows without a value stay last."""
    return np.concatenate([order[:present][::-1], order[present:]])


def _keys(values: Sequence[Value], words: dict[str, int]) -> tuple[Int64, Bool]:
    """Return a number for each value; for a text the index of its first occurrence."""
    kinds = set(map(type, values))
    if kinds <= {int}:
        return np.array(values, np.int64), np.zeros(len(values), np.bool_)
    missing = np.array([value is None for value in values], np.bool_)
    if str in kinds:
        return np.array([words.setdefault(str(v), len(words)) if v is not None else 0 for v in values]), missing
    return np.array([0 if value is None else value for value in values], np.int64), missing


class PaneLayout(StrEnum):
    """How the panes stand: the value is the name in `config.toml`."""

    ROWS = "rows"
    """The list above fields and bytes."""
    COLUMNS = "columns"
    """List, fields and bytes side by side, where the terminal is wide enough."""


@dataclass
class Appearance:
    """Shared by the panes, which draw by it, and by the features that change it."""

    columns: ListColumns = field(default_factory=ListColumns)
    color_by: ColorBy = ColorBy.SEVERITY
    time: TimeFormat = TimeFormat.START
    reference: int | None = None
    """The row that times count from; None for the first one."""
    sorting: SortOrder | None = None
    held: set[int] = field(default_factory=set)
    """Rows of which a proxy holds a message."""
    layout: PaneLayout = PaneLayout.ROWS
    marks: RowMarks = field(default_factory=RowMarks)
    saved: Saved = field(default_factory=Saved)
    """Filters, profiles and coloring rules."""
