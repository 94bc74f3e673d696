"""Rules on any message: what its schema says, correlation ids, versions that were offered, throttling."""

import re
from collections.abc import Iterator, Sequence
from typing import ClassVar, Final

from dissector.analysis.conformance.events import MessageEvent
from dissector.analysis.conformance.rule import REST, RuleBook, RuleMemory, RuleSide, Verdict
from dissector.core.finding import Finding
from dissector.core.text import counted, duration
from dissector.exchange.info_column import READS_AS
from dissector.protocol.misplaced_tags import misplaced_tags
from dissector.protocol.schema.error_codes import ErrorCode

RULES: Final = RuleBook()
_MS: Final = 1_000_000
_DAMAGE: Final = {"malformed", "cell-too-large"}


def _trailing(event: MessageEvent) -> Iterator[Verdict]:
    if event.message.layout.body is not None and event.message.whole == event.message.size:
        decoded = event.message.decoded
        rest = len(decoded.rest) if decoded.body or not decoded.findings else 0
        words = f"{counted(rest, 'byte')} that {event.api} v{event.version} does not have" if rest else ""
        yield Verdict(event, not rest, REST, words + _reads_as(event))


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


@RULES.request("request-trailing-bytes", "the request's schema; KIP-482 on tagged fields")
def request_size(event: MessageEvent) -> Iterator[Verdict]:
    """a request has no bytes after its last field."""
    return _trailing(event)


@RULES.response("response-trailing-bytes", "the response's schema; KIP-482 on tagged fields", side=RuleSide.BROKER)
def response_size(event: MessageEvent) -> Iterator[Verdict]:
    """a response has no bytes after its last field."""
    return _trailing(event)


@RULES.request("request-malformed", "the request's schema")
def request_schema(event: MessageEvent) -> Iterator[Verdict]:
    """a request has the fields of its version."""
    return _malformed(event)


@RULES.response("response-malformed", "the response's schema", side=RuleSide.BROKER)
def response_schema(event: MessageEvent) -> Iterator[Verdict]:
    """a response has the fields of its version."""
    return _malformed(event)


def _misplaced_tags(event: MessageEvent) -> Sequence[Verdict]:
    body = event.message.body
    if not body:
        return ()
    found = [Verdict(event, False, each.path, each.words) for each in misplaced_tags(event.message.layout, body)]
    return found or (Verdict(event, True, "", ""),)


@RULES.request("request-tag-versions", "the request's schema, taggedVersions; KIP-482")
def request_tags(event: MessageEvent) -> Sequence[Verdict]:
    """a request has tagged fields only in versions that have them."""
    return _misplaced_tags(event)


@RULES.response("response-tag-versions", "the response's schema, taggedVersions; KIP-482", side=RuleSide.BROKER)
def response_tags(event: MessageEvent) -> Sequence[Verdict]:
    """a response has tagged fields only in versions that have them."""
    return _misplaced_tags(event)


@RULES.memory("correlation-id-in-use", "RequestHeader.json; Kafka's NetworkClient")
class CorrelationIds(RuleMemory):
    """a correlation id is not used again before its response arrives."""

    def __init__(self) -> None:
        self._open: dict[int, set[int]] = {}

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

    def response(self, event: MessageEvent) -> Iterator[Verdict]:
        last = self._last.get(event.connection, 0)
        yield Verdict(event, event.number > last, "", f"exchange {last:,}, a later request, was answered before")
        self._last[event.connection] = max(last, event.number)


@RULES.memory("version-not-offered", "KIP-35")
class OfferedVersions(RuleMemory):
    """a request has a version that the broker offered."""

    def __init__(self) -> None:
        self._offers: dict[int, dict[int, tuple[int, int]]] = {}

    def request(self, event: MessageEvent) -> Iterator[Verdict]:
        offered = self._offers.get(event.connection)
        key = event.message.header.get("request_api_key")
        if offered is None or event.api == "ApiVersions" or not isinstance(key, int):
            return
        low, high = offered.get(key, (0, -1))
        words = f"the broker offers v{low} to v{high}" if high >= low else "the broker does not offer it"
        yield Verdict(event, low <= event.version <= high, "", f"{event.api} v{event.version}: {words}")

    def response(self, event: MessageEvent) -> None:
        if event.api == "ApiVersions" and event.error_code == ErrorCode.NONE:
            keys = event.body.get("api_keys", ())
            self._offers[event.connection] = {
                each["api_key"]: (each["min_version"], each["max_version"]) for each in keys
            }


@RULES.memory("version-refused", "KIP-35; brokers close the connection on versions that they do not have")
class RefusedVersions(RuleMemory):
    """a client that does not ask for versions (ApiVersions) uses versions that its broker has."""

    def __init__(self) -> None:
        self._asked: set[int] = set()

    def request(self, event: MessageEvent) -> Sequence[Verdict]:
        if event.api == "ApiVersions":
            self._asked.add(event.connection)
        elif event.connection not in self._asked and event.exchange.response is not None:
            return (Verdict(event, True, "", ""),)
        return ()

    def closed(self, event: MessageEvent, causes: Sequence[Finding]) -> Iterator[Verdict]:
        # Imported on use: few captures have a request on which its connection was closed.
        from dissector.findings.detectors.closed_connections import RemovedVersion, SuspectVersion

        codes = {each.explanation.code for each in (RemovedVersion, SuspectVersion)}
        for each in causes:
            if each.code in codes:
                yield Verdict(event, False, "", each.message)


@RULES.response("offered-ranges", "KIP-35; ApiVersionsResponse.json", {"ApiVersions"}, side=RuleSide.BROKER)
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

    def request(self, event: MessageEvent) -> Iterator[Verdict]:
        refused = self._refused.pop(event.connection, None)
        if refused is not None:
            yield Verdict(event, event.version < refused, "", f"v{event.version} after v{refused} was refused")

    def response(self, event: MessageEvent) -> None:
        if event.error_code == ErrorCode.UNSUPPORTED_VERSION:
            self._refused[event.connection] = event.version


_LEGAL: Final = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9.-]*[a-zA-Z0-9])?")


@RULES.request("client-software-name", "KIP-511; ApiVersionsRequest.json", {"ApiVersions"})
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
