"""Errors that come again: retriable ones, those of fetch sessions, and steps of the protocol that do not lead on."""

from typing import ClassVar, Final, NamedTuple

import numpy as np

from dissector.core.arrays import Bool
from dissector.core.finding import Severity
from dissector.findings.explanation import Explanation
from dissector.findings.framework.context import FindingContext
from dissector.findings.framework.decoded_exchange import DecodedExchange
from dissector.findings.framework.detector import Aggregator, ConnectionDetector
from dissector.findings.framework.examined_rows import ExaminedRows
from dissector.findings.framework.extractor import Extractor, Scope
from dissector.findings.framework.open_findings import FindingSink
from dissector.findings.framework.recurrence import SECOND, BoundedStates, Burst
from dissector.protocol.schema.api_keys import ApiKey
from dissector.protocol.schema.error_codes import ErrorCode
from dissector.protocol.schema.errors import EXPECTED_ERRORS, error_name, is_retriable
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


_EXPECTED_CODES: Final = {code for _, code in EXPECTED_ERRORS}


class RepeatedExpectedError(ConnectionDetector):
    """A step of the protocol that does not lead on."""

    explanation: ClassVar = Explanation(
        "everyday-error-again",
        "Expected error that does not go away",
        Severity.WARNING,
        "MEMBER_ID_REQUIRED for one group, or UNSUPPORTED_VERSION in response to ApiVersions, came again on a "
        "connection without a success in between. Each of them once is a step of the protocol.",
        "The client does not do what the error asks for: it joins without the member id that it was given (KIP-394), "
        "or sends ApiVersions in another version that the broker does not have (KIP-511). Several members of one "
        "group that share a connection look the same.",
        "See what the client sends after the first error: JoinGroup must have the member id of the response, "
        "ApiVersions a version that the response names, or 0. If it does not, upgrade the client.",
    )
    apis: ClassVar = frozenset((ApiKey.API_VERSIONS, ApiKey.JOIN_GROUP))

    def __init__(self, found: FindingSink, context: FindingContext) -> None:
        super().__init__(found, context)
        self._refused: BoundedStates[tuple[int, int, object], list[int]] = BoundedStates(list)
        """By connection, API and group: the error that came last, until a success."""

    def needed(self, rows: ExaminedRows, is_clean: Bool) -> Bool:
        """Without an error, only what follows an error on its connection."""
        refused = [connection for connection, _, _ in self._refused]
        after = np.concatenate([rows.connection[~is_clean], np.array(refused, np.int64)])
        return ~is_clean | np.isin(rows.connection, after)

    def examine_exchange(self, exchange: DecodedExchange) -> None:
        """One case a connection and error."""
        group = exchange.request.get("group_id") if exchange.api_key == ApiKey.JOIN_GROUP else None
        key = (exchange.connection, exchange.api_key, group)
        if not exchange.errors:
            self._refused.forget(key)
            return
        code, refused = exchange.errors[0], self._refused.of(key)
        if code in refused:
            words = f"{error_name(code)} again from {api_name(exchange.api_key)}, on the same connection"
            self.report_repeated(key, exchange.row, exchange.response_ns, words, "response.body", "times")
        elif code in _EXPECTED_CODES:
            refused[:] = [code]
