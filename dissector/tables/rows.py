"""Rows of tables on their way to files: single rows, or groups of rows that share most cells."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import pyarrow as pa

Cells = dict[str, Any]
"""A row by column; missing columns are null."""


class RowGroup(NamedTuple):
    """Rows of one table. Either all rows of a table come in groups, with the same `columns`, or none does."""

    shared: Cells
    """Cells that all rows share."""
    row_count: int
    size: int
    """Approximate bytes of the long cells."""
    source: Any
    """Source of the other cells. Sources of many groups become columns together: thousands of rows take little longer
    than one."""
    columns: Callable[[Sequence[Any]], dict[str, Sequence[Any]]]
    """Makes columns of sources."""

    @property
    def rows(self) -> list[Cells]:
        """The rows one by one."""
        columns = self.columns([self.source])
        return [self.shared | dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]


TableRow = tuple[str, "Cells | RowGroup | pa.Table"]
"""Name of a table, and a row or rows of it."""
