"""Rows of tables on their way to files: one by one, or many that have most cells in common."""

from collections.abc import Sequence
from typing import Any, NamedTuple

Cells = dict[str, Any]
"""A row by column; columns that it does not have are null."""


class Several(NamedTuple):
    """Rows of one table. All rows of a table come like this, and with the same columns of their own, or none does."""

    shared: Cells
    """What all of them have."""
    own: dict[str, Sequence[Any]]
    """By column, a value for each."""
    many: int

    @property
    def rows(self) -> list[Cells]:
        """One by one."""
        return [
            self.shared | dict(zip(self.own, values, strict=True)) for values in zip(*self.own.values(), strict=True)
        ]


Made = tuple[str, Cells | Several]
"""A table, and rows of it."""
