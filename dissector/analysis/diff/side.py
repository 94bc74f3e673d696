"""A side of a comparison: a capture, the rows of it that match a filter or were chosen, or a single row."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

import numpy as np

from dissector.capture_session import Capture
from dissector.core.arrays import Int64
from dissector.index.index_columns import IndexColumns

if TYPE_CHECKING:  # without a filter its parser is not needed
    from dissector.filter import Filter

ROWS_PER_BATCH: Final = 1 << 15
"""Rows read together."""
Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class DiffSide:
    """Exchanges of one capture, which is read to its end or up to a row."""

    capture: Capture
    label: str
    """Its name in reports: the file's name and the filter."""
    filter: "Filter | None" = None
    """Selects the exchanges; None for all."""
    client: str = ""
    """The family of its client, where the user says it (`exchange.client_families`)."""

    stop: int | None = None
    """The row at which it ends, where more may come while it is compared; None if the capture is read to its end."""

    def rows(self) -> Iterator[Int64]:
        """Yield its rows, from 0 and ascending, in batches."""
        end = len(self.capture) if self.stop is None else self.stop
        if self.filter is None:
            yield from (np.arange(first, min(first + ROWS_PER_BATCH, end)) for first in range(0, end, ROWS_PER_BATCH))
        else:
            yield from (found.rows for found in self.capture.select(self.filter, 0, end))

    def ask(self, question: "Callable[[DiffSide], Answer]") -> Answer:
        """Return the answer to a question about its rows, which a profile does not have: a function of a module, with
        what it asks for, as another process may have read the capture."""
        return question(self)

    def numbers(self, rows: Int64) -> IndexColumns:
        """Return the columns of rows."""
        return self.ask(partial(_numbers, rows=rows))


def _numbers(side: DiffSide, rows: Int64) -> IndexColumns:
    return side.capture.index.numbers(rows)


@dataclass(frozen=True, slots=True)
class RowSide(DiffSide):
    """A single exchange."""

    row: int = field(kw_only=True)

    def rows(self) -> Iterator[Int64]:
        yield np.array([self.row])


@dataclass(frozen=True, slots=True)
class RowsSide(DiffSide):
    """Chosen exchanges."""

    chosen: Int64 = field(kw_only=True)
    """Rows, from 0 and ascending."""

    def rows(self) -> Iterator[Int64]:
        yield from (self.chosen[at : at + ROWS_PER_BATCH] for at in range(0, len(self.chosen), ROWS_PER_BATCH))
