"""Retriable errors that repeat."""

from typing import ClassVar, Final, NamedTuple

from dissector.core.finding import Severity
from dissector.findings.explanation import Explanation
from dissector.findings.framework.decoded_exchange import DecodedExchange
from dissector.findings.framework.detector import Aggregator
from dissector.findings.framework.extractor import Extractor, Scope
from dissector.findings.framework.open_findings import FindingSink
from dissector.findings.framework.recurrence import SECOND, Burst
from dissector.protocol.schema.api_keys import ApiKey
from dissector.protocol.schema.error_codes import ErrorCode
from dissector.protocol.schema.errors import error_name, is_retriable
from dissector.protocol.schema.loader import api_name

MANY: Final = 10
SPAN_NS: Final = 10 * SECOND
SESSION_ERRORS: Final = frozenset((
    ErrorCode.FETCH_SESSION_ID_NOT_FOUND, ErrorCode.INVALID_FETCH_SESSION_EPOCH,
    ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR, ErrorCode.SHARE_SESSION_NOT_FOUND, ErrorCode.INVALID_SHARE_SESSION_EPOCH,
))  # fmt: skip


class RetriableError(NamedTuple):
    """A response with an error, in however many partitions."""

    time_ns: int


class ErrorExtractor(Extractor):
    """Observes retriable errors by client, API and error."""

    any_error: ClassVar = True

    def examine_exchange(self, exchange: DecodedExchange) -> None:
        """Observe the errors that no other detector reports."""
        for code in dict.fromkeys(exchange.errors):
            if is_retriable(code) and code not in SESSION_ERRORS and exchange.api_key != ApiKey.METADATA:
                scope = (self.context.client(exchange.connection), exchange.api_key, code)
                self.observe(scope, exchange.row, exchange.position, RetriableError(exchange.response_ns))


class ErrorStorm(Aggregator[RetriableError]):
    """Retriable errors that repeat."""

    extractor: ClassVar = ErrorExtractor
    explanation: ClassVar = Explanation(
        "error-storm",
        "Same retriable error again and again",
        Severity.WARNING,
        "A client got the same retriable error from the same API ten times or more, without a pause of ten seconds.",
        "The client retries faster than the cause goes away: a leader election, a coordinator that moves or is "
        "loading, replicas that are not in sync, a topic that does not exist.",
        "See what the error requires (kdissect explain errors). retry.backoff.ms and retry.backoff.max.ms set the "
        "pace of retries, delivery.timeout.ms and default.api.timeout.ms when the client gives up. A client that does "
        "not refresh its metadata after NOT_LEADER_OR_FOLLOWER never succeeds.",
    )

    def __init__(self, found: FindingSink, scope: Scope) -> None:
        super().__init__(found, scope)
        self._burst = Burst()

    def add(self, row: int, observed: RetriableError) -> None:
        """Report one finding for each burst: it ends after ten seconds without the error."""
        _, key, code = self.scope
        if self._burst.is_on(observed.time_ns, MANY, SPAN_NS):
            words = f"{error_name(int(code))} from {api_name(int(key))} {self._burst.count:,} times"
            self.report_burst(self._burst, row, observed.time_ns, words, "response.body")
