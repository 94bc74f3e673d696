"""Fetch sessions that the broker does not have as the client has them."""

from typing import ClassVar

from dissector.core.finding import Severity
from dissector.findings.detectors.error_storm import SESSION_ERRORS
from dissector.findings.explanation import Explanation
from dissector.findings.framework.decoded_exchange import DecodedExchange
from dissector.findings.framework.detector import ConnectionDetector
from dissector.findings.framework.recurrence import SECOND
from dissector.protocol.schema.errors import error_name


class FetchSessionError(ConnectionDetector):
    """A fetch session that the broker does not have as the client has it."""

    explanation: ClassVar = Explanation(
        "fetch-session-error",
        "A fetch session was lost",
        Severity.WARNING,
        "The broker answered a fetch with FETCH_SESSION_ID_NOT_FOUND, INVALID_FETCH_SESSION_EPOCH or the like: it does "
        "not know the session, or counts its epochs differently.",
        "The broker restarted or dropped the session to make room for others "
        "(max.incremental.fetch.session.cache.slots, 1,000 by default), or the client lost count: two "
        "threads on one session, a response that it did not take in.",
        "Once is normal: the client starts again with a full fetch, epoch 0. Many are wasteful, as each names "
        "all partitions: raise the slots on brokers with many consumers; and where it is the epoch, look for the fetch "
        "that was sent twice or never answered.",
    )
    any_error: ClassVar = True
    quiet_ns: ClassVar = 60 * SECOND

    def examine_exchange(self, exchange: DecodedExchange) -> None:
        """One case a connection."""
        for code in sorted(SESSION_ERRORS.intersection(exchange.errors)):
            words = f"{error_name(code)}: the session begins anew"
            self.report_repeated(
                (exchange.connection, code),
                exchange.row,
                exchange.response_ns,
                words,
                "response.body.error_code",
                "times",
            )
