"""Rules on any message: what its schema says, correlation ids, versions that were offered, throttling."""

import re
from collections.abc import Iterator, Sequence
from typing import ClassVar, Final

import numpy as np

from dissector.analysis.conformance.declared_fields import (
    TAGS_OF_REQUEST,
    TAGS_OF_RESPONSE,
    Reads,
    SideFields,
    is_one_of,
    is_positive,
    is_set,
)
from dissector.analysis.conformance.events import MessageEvent
from dissector.analysis.conformance.message_columns import NO_KEY, MessageColumns
from dissector.analysis.conformance.proving import latest, running, since, unless
from dissector.analysis.conformance.rule import REST, Proof, RuleBook, RuleMemory, RuleSide, Verdict
from dissector.core.arrays import Int64
from dissector.core.columns import tuples
from dissector.core.finding import Finding
from dissector.core.text import counted, duration
from dissector.exchange.info_column import READS_AS
from dissector.findings.framework.read_fields import RESPONSE
from dissector.protocol.kernel.shredding import numbered_rows
from dissector.protocol.misplaced_tags import misplaced_tags
from dissector.protocol.schema.error_codes import ErrorCode

RULES: Final = RuleBook()
_MS: Final = 1_000_000
_DAMAGE: Final = {"malformed", "cell-too-large"}
NOT_OFFERED: Final = (0, -1)
"""The range of versions of an API that the broker does not have."""
_RANGE: Final = ("api_key", "min_version", "max_version")
_OFFER: Final[Reads] = {"response.error_code": None, **{f"response.api_keys.{name}": None for name in _RANGE}}


def _trailing(event: MessageEvent) -> Iterator[Verdict]:
    if event.message.layout.body is not None and event.message.whole == event.message.size:
        decoded = event.message.decoded
        rest = len(decoded.rest) if decoded.body or not decoded.findings else 0
        words = f"{counted(rest, 'byte')} that {event.api} v{event.version} does not have"
        yield Verdict(event, not rest, REST, f"{words}{_reads_as(event)}" if rest else "")


def _malformed(event: MessageEvent) -> Iterator[Verdict]:
    damage = [each for each in event.message.decoded.findings if each.code in _DAMAGE]
    if event.message.whole == event.message.size and (damage or event.message.layout.body is not None):
        words = f"it can't be read to its end: {damage[0].message}{_reads_as(event)}" if damage else ""
        yield Verdict(event, not damage, REST if damage and event.message.rest else "", words)


def _reads_as(event: MessageEvent) -> str:
    """As what else a message reads, for which it was searched where it was decoded."""
    part = "request" if event.is_request else "response"
    found = (each for each in event.exchange.row_findings if each.code == READS_AS and each.path == part)
    return next((f"; {each.message}" for each in found), "")


@RULES.request("request-trailing-bytes", "the request's schema; KIP-482 on tagged fields", reads={})
def request_size(event: MessageEvent) -> Iterator[Verdict]:
    """a request has no bytes after its last field."""
    return _trailing(event)


@RULES.response(
    "response-trailing-bytes", "the response's schema; KIP-482 on tagged fields", side=RuleSide.BROKER, reads={}
)
def response_size(event: MessageEvent) -> Iterator[Verdict]:
    """a response has no bytes after its last field."""
    return _trailing(event)


@RULES.request("request-malformed", "the request's schema", reads={})
def request_schema(event: MessageEvent) -> Iterator[Verdict]:
    """a request has the fields of its version."""
    return _malformed(event)


@RULES.response("response-malformed", "the response's schema", side=RuleSide.BROKER, reads={})
def response_schema(event: MessageEvent) -> Iterator[Verdict]:
    """a response has the fields of its version."""
    return _malformed(event)


def _misplaced_tags(event: MessageEvent) -> Sequence[Verdict]:
    body = event.message.body
    if not body:
        return ()
    found = [Verdict(event, False, each.path, each.words) for each in misplaced_tags(event.message.layout, body)]
    return found or (Verdict(event, True, "", ""),)


@RULES.request("request-tag-versions", "the request's schema, taggedVersions; KIP-482", reads={TAGS_OF_REQUEST: is_set})
def request_tags(event: MessageEvent) -> Sequence[Verdict]:
    """a request has tagged fields only in versions that have them."""
    return _misplaced_tags(event)


@RULES.response("response-tag-versions", "the response's schema, taggedVersions; KIP-482", side=RuleSide.BROKER,
                reads={TAGS_OF_RESPONSE: is_set})  # fmt: skip
def response_tags(event: MessageEvent) -> Sequence[Verdict]:
    """a response has tagged fields only in versions that have them."""
    return _misplaced_tags(event)


@RULES.memory("correlation-id-in-use", "RequestHeader.json; Kafka's NetworkClient")
class CorrelationIds(RuleMemory):
    """a correlation id is not used again before its response arrives."""

    def __init__(self) -> None:
        self._open: dict[int, set[int]] = {}

    @classmethod
    def proof(cls, columns: MessageColumns, apis: frozenset[str]) -> Proof:
        """No response to a request before it with the same id, on its connection, is still to come."""
        ids = columns.connection << 32 | (columns.found.correlation_id[columns.exchange] & 0xFFFFFFFF)
        answered = columns.is_answered[columns.exchange]
        waiting = running(ids, np.where(answered, np.where(columns.is_request, 1, -1), 0))
        is_used = columns.is_request & (waiting > answered)  # which counts the request itself
        return unless(columns.is_request.astype(np.int64), is_used, columns.connection)

    def request(self, event: MessageEvent) -> Iterator[Verdict]:
        number = event.exchange.fields.correlation_id
        if number is None:
            return
        used = self._open.setdefault(event.connection, set())
        yield Verdict(event, number not in used, "", f"correlation id {number} waits for a response already")
        if event.exchange.response is not None:  # one that never comes would be in use for ever
            used.add(number)

    def response(self, event: MessageEvent) -> None:
        self._open.get(event.connection, set()).discard(event.exchange.fields.correlation_id or 0)


@RULES.memory(
    "response-order",
    "Kafka's protocol guide, Network: requests of a connection are processed in order",
    side=RuleSide.BROKER,
)
class ResponseOrder(RuleMemory):
    """responses come in the order of their requests."""

    def __init__(self) -> None:
        self._last: dict[int, int] = {}

    @classmethod
    def proof(cls, columns: MessageColumns, apis: frozenset[str]) -> Proof:
        """Responses of a connection are in order if each comes after the one before it."""
        responses = columns.is_response
        before = latest(np.where(responses, columns.connection, -1), responses)
        is_late = responses & (before >= 0) & (columns.exchange <= columns.exchange[before])
        return unless(responses.astype(np.int64), is_late, columns.connection)

    def response(self, event: MessageEvent) -> Iterator[Verdict]:
        last = self._last.get(event.connection, 0)
        yield Verdict(event, event.number > last, "", f"exchange {last:,}, a later request, was answered before")
        self._last[event.connection] = max(last, event.number)


def _offers(columns: MessageColumns, exchanges: Int64) -> tuple[Int64, dict[int, dict[int, tuple[int, int]]]]:
    """Number the offers of ApiVersions exchanges from 1, `(e,)`: 0 for what is none; and what is in each."""
    keys = columns.keys(frozenset({"ApiVersions"}), SideFields.of(_OFFER, RESPONSE))[exchanges]
    keys = np.where(keys == NO_KEY, -1 - columns.same(exchanges, is_request=False), keys)
    which, first = numbered_rows(keys)
    numbers = np.zeros(len(first), np.int64)
    ranges: dict[int, dict[int, tuple[int, int]]] = {}
    for at, exchange in enumerate(columns.decoded(exchanges[first])):
        offer = _offer(MessageEvent.of(exchange, is_request=False))
        if offer is not None:
            numbers[at] = len(ranges) + 1
            ranges[len(ranges) + 1] = offer
    found = np.zeros(len(columns.rows), np.int64)
    found[exchanges] = numbers[which]
    return found, ranges


def _offer(event: MessageEvent) -> dict[int, tuple[int, int]] | None:
    """What an ApiVersions response offers; None for one with an error."""
    if event.error_code != ErrorCode.NONE:
        return None
    return {each["api_key"]: (each["min_version"], each["max_version"]) for each in event.body.get("api_keys", ())}


@RULES.memory("version-not-offered", "KIP-35")
class OfferedVersions(RuleMemory):
    """a request has a version that the broker offered."""

    def __init__(self) -> None:
        self._offers: dict[int, dict[int, tuple[int, int]]] = {}

    @classmethod
    def proof(cls, columns: MessageColumns, apis: frozenset[str]) -> Proof:
        """A version is looked up once for each offer that is different; an offer stands until the next one."""
        of_versions = columns.of({"ApiVersions"})
        answers = columns.is_response & columns.messages_of(of_versions)
        offers, ranges = _offers(columns, np.flatnonzero(of_versions & columns.is_answered))
        offer = offers[columns.exchange]
        before = latest(columns.connection, answers & (offer > NO_KEY))
        asks = np.flatnonzero(columns.is_request & columns.messages_of(~of_versions) & (before >= 0))
        found = columns.found.where(columns.exchange[asks])
        kinds = offer[before[asks]], found.api_key, found.version
        which, first = numbered_rows(*kinds)
        is_offered = [low <= version <= high for number, key, version in tuples(*(each[first] for each in kinds))
                      for low, high in (ranges[number].get(key, NOT_OFFERED),)]  # fmt: skip
        is_kept = np.array(is_offered, np.bool_)[which] & columns.is_request_readable[columns.exchange[asks]]
        kept, is_open = np.zeros((2, len(answers)), np.int64)
        kept[asks], is_open[asks] = is_kept, ~is_kept
        is_open[before[asks[~is_kept]]] = True
        return Proof(is_open != 0, kept)

    def request(self, event: MessageEvent) -> Iterator[Verdict]:
        offered = self._offers.get(event.connection)
        key = event.message.header.get("request_api_key")
        if offered is None or event.api == "ApiVersions" or not isinstance(key, int):
            return
        low, high = offered.get(key, NOT_OFFERED)
        words = f"the broker offers v{low} to v{high}" if high >= low else "the broker does not offer it"
        yield Verdict(event, low <= event.version <= high, "", f"{event.api} v{event.version}: {words}")

    def response(self, event: MessageEvent) -> None:
        offer = _offer(event) if event.api == "ApiVersions" else None
        if offer is not None:
            self._offers[event.connection] = offer


@RULES.memory("version-refused", "KIP-35; brokers close the connection on versions that they do not have")
class RefusedVersions(RuleMemory):
    """a client that does not ask for versions (ApiVersions) uses versions that its broker has."""

    def __init__(self) -> None:
        self._asked: set[int] = set()

    @classmethod
    def proof(cls, columns: MessageColumns, apis: frozenset[str]) -> Proof:
        """A request with a response is of a version that the broker has."""
        answered = columns.is_answered & ~columns.has_asked
        kept = columns.messages_of(answered) & columns.is_request
        return Proof(np.zeros_like(kept), kept.astype(np.int64))

    def request(self, event: MessageEvent) -> Sequence[Verdict]:
        if event.api == "ApiVersions":
            self._asked.add(event.connection)
        elif event.connection not in self._asked and event.exchange.response is not None:
            return (Verdict(event, True, "", ""),)
        return ()

    def closed(self, event: MessageEvent, causes: Sequence[Finding]) -> Iterator[Verdict]:
        for each in causes:
            yield Verdict(event, False, "", each.message)


@RULES.response("offered-ranges", "KIP-35; ApiVersionsResponse.json", {"ApiVersions"}, side=RuleSide.BROKER,
                reads=_OFFER)  # fmt: skip
def offered_ranges(event: MessageEvent) -> Iterator[Verdict]:
    """ApiVersions has each API once, its lowest version not above its highest."""
    seen: set[int] = set()
    for n, each in enumerate(event.body.get("api_keys", ())):
        key, low, high = each["api_key"], each["min_version"], each["max_version"]
        if low <= high and key not in seen:
            yield Verdict(event, True, "", "")
        else:
            again = ", again" if key in seen else ""
            yield Verdict(event, False, f"api_keys[{n}]", f"API {key}: v{low} to v{high}{again}")
        seen.add(key)


@RULES.memory("api-versions-fallback", "KIP-511", {"ApiVersions"})
class VersionFallback(RuleMemory):
    """after UNSUPPORTED_VERSION, ApiVersions is sent again in a lower version."""

    def __init__(self) -> None:
        self._refused: dict[int, int] = {}

    @classmethod
    def proof(cls, columns: MessageColumns, apis: frozenset[str]) -> Proof:
        """The first request after such a response has a lower version."""
        unsupported = is_one_of(ErrorCode.UNSUPPORTED_VERSION)
        refused = columns.is_response & columns.messages_of(columns.tested(apis, {"response.error_code": unsupported}))
        asks = columns.is_request & columns.messages_of(columns.of(apis))
        before = latest(columns.connection, refused)
        asks &= before > latest(columns.connection, asks)
        version = columns.found.version[columns.exchange]
        is_odd = (asks | refused) & columns.messages_of(~columns.is_request_readable)
        is_odd |= asks & (version >= version[before])
        found = unless(asks.astype(np.int64), is_odd, columns.connection)
        return found._replace(open=found.open & columns.messages_of(columns.of(apis)))

    def request(self, event: MessageEvent) -> Iterator[Verdict]:
        refused = self._refused.pop(event.connection, None)
        if refused is not None:
            yield Verdict(event, event.version < refused, "", f"v{event.version} after v{refused} was refused")

    def response(self, event: MessageEvent) -> None:
        if event.error_code == ErrorCode.UNSUPPORTED_VERSION:
            self._refused[event.connection] = event.version


_LEGAL: Final = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9.-]*[a-zA-Z0-9])?")


@RULES.request("client-software-name", "KIP-511; ApiVersionsRequest.json", {"ApiVersions"},
               reads={"request.client_software_name": None, "request.client_software_version": None})  # fmt: skip
def software_names(event: MessageEvent) -> Iterator[Verdict]:
    """name and version of the client's software have only letters, digits, dots and dashes."""
    for name in ("client_software_name", "client_software_version"):
        value = event.body.get(name)
        if isinstance(value, str) and event.version >= 3:
            yield Verdict(event, bool(_LEGAL.fullmatch(value)), name, f"{value!r} is refused by brokers")


@RULES.memory("throttle-time", "KIP-219")
class ThrottleTime(RuleMemory):
    """a client that is throttled waits for throttle_time_ms."""

    _SINCE: ClassVar = {"Produce": 6, "Fetch": 8, "Metadata": 6, "FindCoordinator": 2, "OffsetCommit": 4}

    def __init__(self) -> None:
        self._until: dict[int, tuple[int, int]] = {}

    @classmethod
    def proof(cls, columns: MessageColumns, apis: frozenset[str]) -> Proof:
        """It begins with a time to wait."""
        return since(columns, columns.tested(apis, {"response.throttle_time_ms": is_positive}), apis)

    def request(self, event: MessageEvent) -> Iterator[Verdict]:
        answered, wait_ns = self._until.pop(event.connection, (0, 0))
        if wait_ns:
            waited = event.time_ns - answered
            words = f"asked to wait {duration(wait_ns)}, it waited {duration(waited)}"
            yield Verdict(event, waited >= wait_ns, "", words)

    def response(self, event: MessageEvent) -> None:
        wait = event.body.get("throttle_time_ms", 0)
        if wait > 0 and event.version >= self._SINCE.get(event.api, 1 << 15):
            self._until[event.connection] = event.time_ns, wait * _MS
