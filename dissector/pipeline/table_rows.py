"""Rows of tables on their way to files: one by one, or many that have most cells in common."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

Cells = dict[str, Any]
"""A row by column; columns that it does not have are null."""


class RowGroup(NamedTuple):
    """Rows of one table. All rows of a table come like this, and by the same `columns`, or none does."""

    shared: Cells
    """What all of them have."""
    many: int
    size: int
    """Bytes of what is long in them, about."""
    of: Any
    """What else they tell of; made to columns with that of others, as thousands of rows take little longer than one."""
    columns: Callable[[Sequence[Any]], dict[str, Sequence[Any]]]

    @property
    def rows(self) -> list[Cells]:
        """One by one."""
        own = self.columns([self.of])
        return [self.shared | dict(zip(own, values, strict=True)) for values in zip(*own.values(), strict=True)]


TableRow = tuple[str, Cells | RowGroup]
"""A table, and rows of it."""
