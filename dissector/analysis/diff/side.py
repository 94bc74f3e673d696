"""A side of a comparison: a capture, or what of it a filter chooses."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from dissector.capture_session import Capture
from dissector.core.arrays import Int64
from dissector.filter import Filter

ROWS_PER_BATCH: Final = 1_024
"""Rows that are looked at together."""


@dataclass(frozen=True, slots=True)
class DiffSide:
    """Exchanges of one capture, of which all is read."""

    capture: Capture
    label: str
    """What people call it: a file's name, and what was chosen of it."""
    filter: Filter | None = None
    """What an exchange must fit to be of this side; None for all of them."""

    def rows(self) -> Iterator[Int64]:
        """Its rows, from 0 and ascending, some at a time."""
        if self.filter is None:
            end = len(self.capture)
            yield from (np.arange(first, min(first + ROWS_PER_BATCH, end)) for first in range(0, end, ROWS_PER_BATCH))
        else:
            yield from (found.rows for found in self.capture.select(self.filter))
