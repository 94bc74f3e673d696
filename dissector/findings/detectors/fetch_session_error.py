"""Fetch sessions that the client and the broker do not agree on."""

from typing import ClassVar

from dissector.core.finding import Severity
from dissector.findings.detectors.error_storm import SESSION_ERRORS
from dissector.findings.explanation import Explanation
from dissector.findings.framework.decoded_exchange import DecodedExchange
from dissector.findings.framework.detector import ConnectionDetector
from dissector.findings.framework.recurrence import SECOND
from dissector.protocol.schema.errors import error_name


class FetchSessionError(ConnectionDetector):
    """Finds fetch sessions that the client and the broker do not agree on."""

    explanation: ClassVar = Explanation(
        "fetch-session-error",
        "Fetch session lost",
        Severity.WARNING,
        "The broker responded to a Fetch with FETCH_SESSION_ID_NOT_FOUND, INVALID_FETCH_SESSION_EPOCH or the "
        "like: it does not know the session, or expects another epoch.",
        "The broker restarted or dropped the session to make room for others "
        "(max.incremental.fetch.session.cache.slots, 1,000 by default), or the client lost track of the epoch: two "
        "threads share a session, or it dropped a response.",
        "One is normal: the client starts again with a full fetch, epoch 0. Many are wasteful, as each full fetch "
        "lists all partitions: raise the slots on brokers with many consumers. If the epoch is wrong, look for a "
        "Fetch that was sent twice or has no response.",
    )
    any_error: ClassVar = True
    quiet_ns: ClassVar = 60 * SECOND

    def examine_exchange(self, exchange: DecodedExchange) -> None:
        """Report one finding for each connection and error."""
        for code in sorted(SESSION_ERRORS.intersection(exchange.errors)):
            words = f"{error_name(code)}: the fetch session starts again"
            self.report_repeated(
                (exchange.connection, code),
                exchange.row,
                exchange.response_ns,
                words,
                "response.body.error_code",
                "times",
            )
