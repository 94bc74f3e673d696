"""Fetches that come back long after the wait that they asked for."""

from typing import ClassVar, Final

from dissector.core.text import duration
from dissector.findings.detectors.slow import SLOW
from dissector.findings.framework.decoded_exchange import Seen
from dissector.findings.framework.detector import BodyFinder
from dissector.findings.framework.recurrence import MILLISECOND
from dissector.protocol.schema.api_keys import ApiKey

LATE_NS: Final = 200 * MILLISECOND
"""Behind the wait that a Fetch asked for."""


class LateFetch(BodyFinder):
    """Against the wait that a Fetch asked for."""

    explanation: ClassVar = SLOW
    apis: ClassVar = frozenset((ApiKey.FETCH, ApiKey.SHARE_FETCH))
    quiet_ns: ClassVar = 10_000 * MILLISECOND

    def look(self, seen: Seen) -> None:
        """A broker answers when it has `min_bytes`, and at the latest after `max_wait_ms`."""
        wait = seen.request.get("max_wait_ms")
        if not seen.answered_ns or not isinstance(wait, int):
            return
        latency = seen.answered_ns - seen.asked_ns
        if latency > max(0, wait) * MILLISECOND * 3 // 2 + LATE_NS:
            words = f"took {duration(latency)}, and asked to wait {wait} ms at most"
            self.again(seen.connection, seen.row, seen.asked_ns, words, "request.body.max_wait_ms", "such answers")
