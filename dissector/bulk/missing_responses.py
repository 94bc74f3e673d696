"""Why rows have no response."""

from collections.abc import Callable
from typing import Final

import numpy as np

from dissector.core.arrays import Int64
from dissector.core.grouping import by_distinct
from dissector.index.exchange_table import Flag
from dissector.index.indexer import Indexer

NOT_EXPECTED: Final = 0
"""None is sent."""
CLOSED: Final = 1
"""The connection was closed before."""
MISSING: Final = 2
"""None was captured."""
RESPONSES: Final = 3
"""From this number on, numbers may stand for responses."""


class MissingResponses:
    """Of one capture; `is_ended` says of a connection whether it was closed."""

    def __init__(self, indexer: Indexer, is_ended: Callable[[int], bool]) -> None:
        self._table = indexer.table
        self._is_ended = is_ended

    def of(self, rows: Int64) -> Int64:
        """What stands for the response of rows that have none."""
        is_ended = by_distinct(self._table.connection.values[rows], self._is_ended, np.bool_)
        expected = (self._table.flags.values[rows] & Flag.NO_RESPONSE_EXPECTED) == 0
        return np.where(expected, np.where(is_ended, CLOSED, MISSING), NOT_EXPECTED)
