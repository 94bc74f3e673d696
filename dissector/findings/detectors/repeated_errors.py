"""Errors that come again: the same error of an API, those of fetch sessions, and steps of the protocol that do not
lead on."""

from collections.abc import Callable, Iterator
from typing import ClassVar, Final, NamedTuple, cast

import numpy as np

from dissector.core.arrays import Bool
from dissector.core.columns import is_in
from dissector.core.finding import Severity
from dissector.core.times import SECOND
from dissector.findings.explanation import Explanation
from dissector.findings.framework.context import FindingContext
from dissector.findings.framework.decoded_exchange import DecodedExchange
from dissector.findings.framework.detector import Aggregator, ConnectionDetector
from dissector.findings.framework.examined_rows import ExaminedRows
from dissector.findings.framework.extractor import Extractor, Scope
from dissector.findings.framework.open_findings import FindingSink
from dissector.findings.framework.recurrence import BoundedStates, Burst
from dissector.protocol.message import Values
from dissector.protocol.schema.api_keys import ApiKey
from dissector.protocol.schema.error_codes import ErrorCode
from dissector.protocol.schema.errors import EXPECTED_ERRORS, advice, error_name, is_expected, is_retriable
from dissector.protocol.schema.field_names import ERROR_CODES
from dissector.protocol.schema.loader import api, api_name

MANY: Final = 10
SPAN_NS: Final = 10 * SECOND
SESSION_ERRORS: Final = frozenset((
    ErrorCode.FETCH_SESSION_ID_NOT_FOUND, ErrorCode.INVALID_FETCH_SESSION_EPOCH,
    ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR, ErrorCode.SHARE_SESSION_NOT_FOUND, ErrorCode.INVALID_SHARE_SESSION_EPOCH,
))  # fmt: skip


SLOW_MANY: Final = 20
SLOW_PAUSE_NS: Final = 30 * SECOND
"""So many errors are a storm too, if no pause between them is longer: of a client that tries every few seconds."""
OF_REBALANCES: Final = frozenset((ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.MEMBER_ID_REQUIRED))
"""Not retriable, and steps of the protocol: `rebalance-loop` and `everyday-error-again` count them."""
NAMED: Final = 3
"""Topics, partitions or groups that are named."""


class RepeatedError(NamedTuple):
    """A response with an error, in however many partitions."""

    time_ns: int


class ErrorExtractor(Extractor):
    """Observes errors by client, API and error; those that are not retriable also by what they are about, as another
    topic with the same error is another request and no repetition."""

    any_error: ClassVar = True

    def examine_exchange(self, exchange: DecodedExchange) -> None:
        """Observe the errors that no other detector reports."""
        if exchange.api_key == ApiKey.METADATA:
            return
        for code in dict.fromkeys(exchange.errors):
            if code in SESSION_ERRORS or code in OF_REBALANCES or is_expected(self._name(exchange), code):
                continue
            about = "" if is_retriable(code) else self._about(exchange, code)
            scope = (self.context.client(exchange.connection), exchange.api_key, code, about)
            self.observe(scope, exchange.row, exchange.position, RepeatedError(exchange.response_ns))

    @staticmethod
    def _name(exchange: DecodedExchange) -> str | None:
        known = api(exchange.api_key)
        return None if known is None else known.response

    def _about(self, exchange: DecodedExchange, code: int) -> str:
        """What has the error, as text: the topics, partitions or other things beside it in the response, else the group
        or transaction of the request."""
        offsets = _fetch_offsets(exchange.request, self.context.topic) if code == ErrorCode.OFFSET_OUT_OF_RANGE else {}
        found = [*dict.fromkeys(_things(exchange.response, code, "", self.context.topic))]
        named = [f"{each} at offset {offsets[each]:,}" if each in offsets else each for each in found if each]
        if not named:
            named = [
                str(exchange.request[name]) for name in ("group_id", "transactional_id") if name in exchange.request
            ]
        more = f" and {len(named) - NAMED:,} others" if len(named) > NAMED else ""
        return ", ".join(named[:NAMED]) + more


def _things(value: object, code: int, inside: str, topic: Callable[[Values], str]) -> Iterator[str]:
    """Yield the names of what has an error in a part of a response: ``orders[0]``, a group."""
    if isinstance(value, list):
        for each in value:
            yield from _things(each, code, inside, topic)
    elif isinstance(value, dict):
        number = next((value[name] for name in ("partition_index", "partition", "index") if name in value), None)
        if number is not None and isinstance(number, int):
            inside = f"{inside}[{number}]"
        elif any(name in value for name in ("name", "topic", "topic_id")):
            inside = topic(value)
        elif any(name in value for name in ("group_id", "resource_name", "key")):
            inside = str(value.get("group_id") or value.get("resource_name") or value.get("key"))
        if any(value.get(name) == code for name in ERROR_CODES):
            yield inside
        for each in value.values():
            if isinstance(each, list | dict):
                yield from _things(each, code, inside, topic)


def _fetch_offsets(request: Values, topic: Callable[[Values], str]) -> dict[str, int]:
    """The offset that a Fetch asks for, by partition as text."""
    found: dict[str, int] = {}
    for each in cast(list[Values], request.get("topics") or []):
        for partition in cast(list[Values], each.get("partitions") or []):
            offset = partition.get("fetch_offset")
            if isinstance(offset, int):
                found[f"{topic(each)}[{partition.get('partition')}]"] = offset
    return found


class ErrorStorm(Aggregator[RepeatedError]):
    """Errors that repeat."""

    extractor: ClassVar = ErrorExtractor
    explanation: ClassVar = Explanation(
        "error-storm",
        "Same error repeated",
        Severity.WARNING,
        "A client got the same error from the same API at least ten times without a pause of ten seconds, or twenty "
        "times without a pause of thirty seconds. An error that is not retriable counts if it is about the same "
        "topic, partition or group: the client repeats a request that can't succeed.",
        "A retriable error: the client retries faster than the cause goes away, such as a leader election, a "
        "coordinator that moves or is loading, replicas that are not in sync, a topic that does not exist; or it asks "
        "the same broker again without refreshing its metadata. Any other error: the client does not handle it, such "
        "as an offset out of range that it does not reset, or a missing permission.",
        "Do what the error requires (kdissect explain errors). retry.backoff.ms and retry.backoff.max.ms set the pace "
        "of retries, delivery.timeout.ms and default.api.timeout.ms when the client gives up. A client that does not "
        "refresh its metadata after NOT_LEADER_OR_FOLLOWER, or look for its coordinator after NOT_COORDINATOR, never "
        "succeeds.",
    )

    def __init__(self, found: FindingSink, scope: Scope) -> None:
        super().__init__(found, scope)
        self._burst = Burst()
        self._slow = Burst()

    def add(self, row: int, observed: RepeatedError) -> None:
        """Report one finding for each burst: it ends after ten seconds without the error; or for each slow one, which
        ends after thirty, and which no burst is part of."""
        is_burst = self._burst.is_on(observed.time_ns, MANY, SPAN_NS)
        is_slow = self._slow.is_on(observed.time_ns, SLOW_MANY, SLOW_PAUSE_NS, by_pauses=True)
        if is_burst:
            self._slow.end()
            self._report(self._burst, row, observed.time_ns)
        elif is_slow:
            self._report(self._slow, row, observed.time_ns)

    def _report(self, burst: Burst, row: int, time_ns: int) -> None:
        _, key, code, about = self.scope
        of = f" for {about}" if about else ""
        words = f"{error_name(int(code))} from {api_name(int(key))} {burst.count:,} times{of}"
        self.report_burst(burst, row, time_ns, words, "response.body", _asked(int(code), str(about)))


def _asked(code: int, about: str) -> str:
    """What the error asks for, as the end of a sentence."""
    if code == ErrorCode.OFFSET_OUT_OF_RANGE and "at offset -" in about:
        return "; no log has a negative offset: the client took one from a response with an error"
    words = advice(code)
    return f"; {words[:1].lower()}{words[1:].removesuffix('.')}" if words else ""


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
        "One is normal: the client starts again with a full fetch, epoch 0. Many are wasteful, because each full "
        "fetch lists all partitions: raise the slots on brokers with many consumers. If the epoch is wrong, look for "
        "a Fetch that was sent twice or has no response.",
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
        "connection without a success in between. If it comes once, either error is a normal step of the protocol.",
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
        return ~is_clean | is_in(rows.connection, after)

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
