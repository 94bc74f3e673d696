"""Fetch responses that come long after `max_wait_ms`."""

from typing import ClassVar, Final

from dissector.core.text import duration
from dissector.findings.detectors.slow_response import SLOW
from dissector.findings.framework.decoded_exchange import DecodedExchange
from dissector.findings.framework.detector import ConnectionDetector
from dissector.findings.framework.recurrence import MILLISECOND
from dissector.protocol.schema.api_keys import ApiKey

LATE_NS: Final = 200 * MILLISECOND
"""Delay past the wait that a Fetch allows."""


class LateFetch(ConnectionDetector):
    """Finds responses that are later than their Fetch allows."""

    explanation: ClassVar = SLOW
    apis: ClassVar = frozenset((ApiKey.FETCH, ApiKey.SHARE_FETCH))
    quiet_ns: ClassVar = 10_000 * MILLISECOND

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
