"""Fetch responses that come long after `max_wait_ms`."""

from typing import ClassVar, Final

import numpy as np

from dissector.core.arrays import Bool
from dissector.core.text import duration
from dissector.findings.detectors.slow_response import SLOW
from dissector.findings.framework.context import FindingContext
from dissector.findings.framework.decoded_exchange import DecodedExchange
from dissector.findings.framework.detector import ConnectionDetector
from dissector.findings.framework.examined_rows import ExaminedRows
from dissector.findings.framework.fetched_partitions import FetchedPartitions
from dissector.findings.framework.open_findings import FindingSink
from dissector.findings.framework.recurrence import MILLISECOND
from dissector.protocol.schema.api_keys import ApiKey

LATE_NS: Final = 200 * MILLISECOND
"""Delay past the wait that a Fetch allows."""


class LateFetch(ConnectionDetector):
    """Finds responses that are later than their Fetch allows."""

    explanation: ClassVar = SLOW
    apis: ClassVar = frozenset((ApiKey.FETCH, ApiKey.SHARE_FETCH))
    quiet_ns: ClassVar = 10_000 * MILLISECOND

    examines_fetches: ClassVar = True

    def __init__(self, found: FindingSink, context: FindingContext) -> None:
        super().__init__(found, context)
        self._may_be_late = np.zeros(0, np.int64)
        """The rows with a Fetch that came last, without those that surely are in time."""

    def examine_fetches(self, fetched: FetchedPartitions) -> None:
        """Look for those that may be late."""
        exchanges, wait = fetched.exchanges, fetched.max_wait_ms
        latency = exchanges.response_ns - exchanges.request_ns
        allowed = np.maximum(np.where(wait.is_there, wait.values, 0), 0) * MILLISECOND * 3 // 2 + LATE_NS
        self._may_be_late = exchanges.row[latency > allowed]

    def needed(self, rows: ExaminedRows, _is_clean: Bool) -> Bool:
        """Only those that may be late."""
        is_late = rows.response_ns - rows.request_ns > LATE_NS
        needed: Bool = is_late & ((rows.api_key != ApiKey.FETCH) | np.isin(rows.row, self._may_be_late))
        return needed

    def examine_exchange(self, exchange: DecodedExchange) -> None:
        """Compare the latency with `max_wait_ms`: a broker responds once it has `min_bytes`, or after that time."""
        latency = exchange.response_ns - exchange.request_ns
        if not exchange.response_ns or latency <= LATE_NS:
            return
        wait = exchange.request.get("max_wait_ms")
        if isinstance(wait, int) and latency > max(0, wait) * MILLISECOND * 3 // 2 + LATE_NS:
            words = f"took {duration(latency)}, although max_wait_ms is {wait:,}"
            self.report_repeated(
                exchange.connection,
                exchange.row,
                exchange.request_ns,
                words,
                "request.body.max_wait_ms",
                "such responses",
            )
