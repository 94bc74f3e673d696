"""Errors that come again and again, and answers that were held back."""

from typing import ClassVar, Final, NamedTuple

from dissector.core.finding import Severity
from dissector.findings.explanation import Explanation
from dissector.findings.finder import Around, BodyFinder
from dissector.findings.found import Telling
from dissector.findings.noting import ONE, BodyNoter, Maker, Scope
from dissector.findings.recurring import SECOND, Burst, Recent
from dissector.findings.seen import Seen
from dissector.protocol.schema.api_keys import ApiKey
from dissector.protocol.schema.error_codes import ErrorCode
from dissector.protocol.schema.errors import EXPECTED_ERRORS, error_name, is_retriable
from dissector.protocol.schema.loader import api_name

MANY: Final = 10
SPAN_NS: Final = 10 * SECOND
_EVERYDAY_CODES: Final = {code for _, code in EXPECTED_ERRORS}
SESSION_ERRORS: Final = frozenset((
    ErrorCode.FETCH_SESSION_ID_NOT_FOUND, ErrorCode.INVALID_FETCH_SESSION_EPOCH,
    ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR, ErrorCode.SHARE_SESSION_NOT_FOUND, ErrorCode.INVALID_SHARE_SESSION_EPOCH,
))  # fmt: skip


class ErrorTold(NamedTuple):
    """A response bore an error, whatever the number of partitions that did."""

    time_ns: int


class ErrorsNoter(BodyNoter):
    """Retriable errors by client, API and error."""

    any_trouble: ClassVar = True

    def look(self, seen: Seen) -> None:
        """Some errors are told by others."""
        for code in dict.fromkeys(seen.errors):
            if is_retriable(code) and code not in SESSION_ERRORS and seen.key != ApiKey.METADATA:
                scope = (self.around.client(seen.connection), seen.key, code)
                self.note(scope, seen.row, seen.place, ErrorTold(seen.answered_ns))


class ErrorStorm(Maker[ErrorTold]):
    """One retriable error, over and over."""

    noter: ClassVar = ErrorsNoter
    explanation: ClassVar = Explanation(
        "error-storm",
        "The same retriable error again and again",
        Severity.WARNING,
        "A client got the same retriable error from the same API ten times or more, with no ten seconds of quiet.",
        "The client tries again faster than the cause can go away: a leader election, a coordinator that moves or "
        "loads, replicas that are not in sync, a topic that nobody created.",
        "Read what the error asks for (kdissect explain errors). retry.backoff.ms and retry.backoff.max.ms set the "
        "pace; delivery.timeout.ms and default.api.timeout.ms when the client gives up. A client that does not refresh "
        "its metadata after NOT_LEADER_OR_FOLLOWER goes on for ever.",
    )

    def __init__(self, found: Telling, scope: Scope) -> None:
        super().__init__(found, scope)
        self._burst = Burst()

    def make(self, row: int, note: ErrorTold) -> None:
        """One case until there are ten seconds without."""
        _, key, code = self.scope
        if self._burst.is_on(note.time_ns, MANY, SPAN_NS):
            words = f"{error_name(int(code))} from {api_name(int(key))} {self._burst.count:,} times"
            self.burst(self._burst, row, note.time_ns, words, "response.body")


class EverydayErrorAgain(BodyFinder):
    """A step of the protocol that does not lead on."""

    explanation: ClassVar = Explanation(
        "everyday-error-again",
        "An everyday error that does not go away",
        Severity.WARNING,
        "MEMBER_ID_REQUIRED for one group, or UNSUPPORTED_VERSION to ApiVersions, came again on a connection without "
        "a success in between. Once each is a step of the protocol.",
        "The client does not do what the step asks for: it joins without the member id that it was given (KIP-394), or "
        "asks for ApiVersions in another version that the broker has not (KIP-511). Several members of one group that "
        "share a connection look the same.",
        "See what the client sends after the first refusal: JoinGroup must bear the member id of the answer, "
        "ApiVersions a version that the answer names, or 0. Else upgrade the client.",
    )
    apis: ClassVar = frozenset((ApiKey.API_VERSIONS, ApiKey.JOIN_GROUP))

    def __init__(self, found: Telling, around: Around) -> None:
        super().__init__(found, around)
        self._refused: Recent[tuple[int, int, object], list[int]] = Recent(list)
        """By connection, API and group: the error that came last; empty after a success."""

    def look(self, seen: Seen) -> None:
        """One case a connection and error."""
        key = (seen.connection, seen.key, seen.request.get("group_id"))
        refused = self._refused.of(key)
        if not seen.errors:
            refused.clear()
            return
        code = seen.errors[0]
        if code in refused:
            words = f"{error_name(code)} again from {api_name(seen.key)}, on the same connection"
            self.again(key, seen.row, seen.answered_ns, words, "response.body", "times")
        elif code in _EVERYDAY_CODES:
            refused[:] = [code]


class FetchSessionError(BodyFinder):
    """A fetch session that the broker does not have as the client has it."""

    explanation: ClassVar = Explanation(
        "fetch-session-error",
        "A fetch session was lost",
        Severity.WARNING,
        "The broker answered a fetch with FETCH_SESSION_ID_NOT_FOUND, INVALID_FETCH_SESSION_EPOCH or the like: it does "
        "not know the session, or counts its epochs differently.",
        "The broker restarted or dropped the session to make room for others "
        "(max.incremental.fetch.session.cache.slots, 1,000 unless told otherwise), or the client lost count: two "
        "threads on one session, a response that it did not take in.",
        "Once is normal: the client asks for everything anew with epoch 0. Many are wasteful, as each full fetch names "
        "all partitions: raise the slots on brokers with many consumers; and where it is the epoch, look for the fetch "
        "that was sent twice or never answered.",
    )
    any_trouble: ClassVar = True
    quiet_ns: ClassVar = 60 * SECOND

    def look(self, seen: Seen) -> None:
        """One case a connection."""
        for code in sorted(SESSION_ERRORS.intersection(seen.errors)):
            words = f"{error_name(code)}: the session begins anew"
            self.again((seen.connection, code), seen.row, seen.answered_ns, words, "response.body.error_code", "times")


class Held(NamedTuple):
    """A response was held back."""

    throttle_time_ms: int
    time_ns: int


class ThrottleNoter(BodyNoter):
    """Responses held back by client and API."""

    any_trouble: ClassVar = True

    def look(self, seen: Seen) -> None:
        """The server says so itself."""
        throttle = seen.response.get("throttle_time_ms")
        if isinstance(throttle, int) and throttle > 0:
            scope = (self.around.client(seen.connection), seen.key)
            self.note(scope, seen.row, seen.place, Held(throttle, seen.answered_ns))


class Throttled(Maker[Held]):
    """A quota at work."""

    noter: ClassVar = ThrottleNoter
    explanation: ClassVar = Explanation(
        "throttled",
        "Throttled by a quota",
        Severity.WARNING,
        "A response bears throttle_time_ms: the client went over a quota, and the broker will not read more of this "
        "connection for so long.",
        "A quota on bytes (producer_byte_rate, consumer_byte_rate), on request time (request_percentage) or on changes "
        "of topics (controller_mutation_rate) is set for the user or the client id.",
        "Send or fetch less at a time, compress (compression.type), spread the load, or have the quota raised "
        "(kafka-configs --entity-type users or clients). Clients must wait by themselves before they send again "
        "(KIP-219).",
    )
    quiet_ns: ClassVar = 60 * SECOND

    def make(self, row: int, note: Held) -> None:
        """One case until there is a minute without."""
        words = f"{api_name(int(self.scope[1]))} was throttled for {note.throttle_time_ms:,} ms"
        self.again(ONE, row, note.time_ns, words, "response.body.throttle_time_ms", "such responses")
