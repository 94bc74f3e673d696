"""Fetches that come back long after the wait that they asked for."""

from typing import ClassVar, Final

from dissector.core.text import duration
from dissector.findings.detectors.slow_response import SLOW
from dissector.findings.framework.decoded_exchange import DecodedExchange
from dissector.findings.framework.detector import ConnectionDetector
from dissector.findings.framework.recurrence import MILLISECOND
from dissector.protocol.schema.api_keys import ApiKey

LATE_NS: Final = 200 * MILLISECOND
"""Behind the wait that a Fetch asked for."""


class LateFetch(ConnectionDetector):
    """Against the wait that a Fetch asked for."""

    explanation: ClassVar = SLOW
    apis: ClassVar = frozenset((ApiKey.FETCH, ApiKey.SHARE_FETCH))
    quiet_ns: ClassVar = 10_000 * MILLISECOND

    def examine_exchange(self, exchange: DecodedExchange) -> None:
        """A broker answers when it has `min_bytes`, and at the latest after `max_wait_ms`."""
        wait = exchange.request.get("max_wait_ms")
        if not exchange.response_ns or not isinstance(wait, int):
            return
        latency = exchange.response_ns - exchange.request_ns
        if latency > max(0, wait) * MILLISECOND * 3 // 2 + LATE_NS:
            words = f"took {duration(latency)}, and asked to wait {wait} ms at most"
            self.report_repeated(
                exchange.connection,
                exchange.row,
                exchange.request_ns,
                words,
                "request.body.max_wait_ms",
                "such answers",
            )
