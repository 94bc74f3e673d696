"""Requests without a response: why many of them have none, without decoding one.

Invariant: the finding is the one that `exchange.row_findings` makes of the row (a property test).
"""

from collections.abc import Callable
from typing import Final

import numpy as np

from dissector.core.arrays import Bool, Int64
from dissector.core.finding import Finding
from dissector.core.grouping import by_distinct
from dissector.exchange.row_findings import missing_response
from dissector.index.exchange_table import NO_FRAME, Flag
from dissector.index.indexer import Indexer

NOT_EXPECTED, CLOSED, MISSING = range(3)
"""None is sent; the connection was closed before; none was captured."""
REASONS: Final = 3


class UnansweredRequests:
    """Those of one capture. `is_ended` says whether a connection was closed."""

    def __init__(self, indexer: Indexer, is_ended: Callable[[int], bool]) -> None:
        self._table = indexer.table
        self._is_ended = is_ended

    def lack_response(self, rows: Int64) -> Bool:
        """Return which rows of the index have no response."""
        lack_response: Bool = self._table.response.values[rows] == NO_FRAME
        return lack_response

    def reasons(self, rows: Int64) -> Int64:
        """Return the reasons of rows without a response."""
        is_ended = by_distinct(self._table.connection.values[rows], self._is_ended, np.bool_)
        is_expected = (self._table.flags.values[rows] & Flag.NO_RESPONSE_EXPECTED) == 0
        return np.where(is_expected, np.where(is_ended, CLOSED, MISSING), NOT_EXPECTED)

    def findings(self, rows: Int64) -> list[Finding]:
        """Return the finding of each row without a response."""
        reasons, api_keys = self.reasons(rows).tolist(), self._table.api_key.values[rows].tolist()
        return [
            missing_response(api_key, is_expected=reason != NOT_EXPECTED, is_ended=reason == CLOSED)
            for reason, api_key in zip(reasons, api_keys, strict=True)
        ]
