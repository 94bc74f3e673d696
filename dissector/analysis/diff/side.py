"""A side of a comparison: a capture, or the rows of it that match a filter."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from dissector.capture_session import Capture
from dissector.core.arrays import Int64

if TYPE_CHECKING:  # without a filter its parser is not needed
    from dissector.filter import Filter

ROWS_PER_BATCH: Final = 8_192
"""Rows read together."""


@dataclass(frozen=True, slots=True)
class DiffSide:
    """Exchanges of one capture that has been read to its end."""

    capture: Capture
    label: str
    """Its name in reports: the file's name and the filter."""
    filter: "Filter | None" = None
    """Selects the exchanges; None for all."""
    client: str = ""
    """The family of its client, where the user says it (`client_settings.FAMILIES`)."""

    def rows(self) -> Iterator[Int64]:
        """Yield its rows, from 0 and ascending, in batches."""
        if self.filter is None:
            end = len(self.capture)
            yield from (np.arange(first, min(first + ROWS_PER_BATCH, end)) for first in range(0, end, ROWS_PER_BATCH))
        else:
            yield from (found.rows for found in self.capture.select(self.filter))
