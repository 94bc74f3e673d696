"""The answer to a request of a client: a frame, how long it waits, and which recorded rows it comes from.

Invariants:
  * a response is in the version of its request, and has the request's correlation id;
  * whatever the request is, there is an answer, or one plain line that says why the connection is closed;
  * what a client asks in the same way as it was recorded is answered byte for byte, addresses apart.
"""

from dataclasses import dataclass, field
from typing import Final

from dissector.core.text import shortened
from dissector.protocol.codec.plan import plan
from dissector.protocol.frame import frame_bytes, response_layout_to_write
from dissector.protocol.message import Values
from dissector.protocol.message_layout import PREFIX, REQUEST_ID, key_and_version
from dissector.protocol.schema.api_groups import WAITING
from dissector.protocol.schema.api_keys import ApiKey
from dissector.protocol.schema.error_codes import ErrorCode
from dissector.protocol.schema.loader import api
from dissector.protocol.schema.model import Versions
from dissector.protocol.wire import EncodeError, WireError
from dissector.proxy_server.address_fields import ADDRESSES
from dissector.proxy_server.address_walk import AddressWalk
from dissector.proxy_server.faults.error_responses import body_for, error_response
from dissector.proxy_server.rewriting import OwnAddresses, rewritten
from dissector.recorded_server.assembling import NOT_RECORDED, Assembly
from dissector.recorded_server.entities import requested
from dissector.recorded_server.exchanges import RecordedExchange, RecordedExchanges, read_request
from dissector.recorded_server.fetching import FetchAnswers
from dissector.recorded_server.layouts import in_layout
from dissector.recorded_server.matching import ApiMatching
from dissector.recorded_server.own_values import metadata_of_all, with_own_values

COMPUTED: Final = ("SCRAM-", "GSSAPI", "AWS_MSK_IAM")
"""SASL mechanisms whose answers depend on what the client sends: they can't be repeated."""
_MEMBERS: Final = frozenset((ApiKey.HEARTBEAT, ApiKey.LEAVE_GROUP))
"""What members of a group send however short a recording is: without one, they are answered that all is well."""
_LAST_EPOCH: Final = 0x7FFE
"""Of a producer: behind it brokers give another id."""
MS: Final = 1_000_000


@dataclass(slots=True)
class RecordedAnswer:
    """What a client gets."""

    frame: bytes | None
    """None for no response: acks=0, or the connection is closed."""
    rows: list[int] = field(default_factory=list)
    """Of the recording, from 1."""
    wait_ns: int = 0
    """As long as it waited when it was recorded, or as the client asks a response without news to wait."""
    is_asked_wait: bool = False
    """Whether it is the client who asks for the wait."""
    trouble: str = ""
    """What was not recorded, and what became of it; empty if all was."""
    closes: bool = False
    name: str = ""
    """Of the API, with its version."""


@dataclass(slots=True)
class ClientState:
    """What is remembered of a connection."""

    mechanism: str = ""
    """Of its login."""
    in_tokens: bool = False
    """Whether raw tokens follow: SaslHandshake was version 0 (KIP-43)."""


class Answering:
    """Answers from a recording."""

    def __init__(self, recording: RecordedExchanges, own: OwnAddresses) -> None:
        """`own` are the addresses that stand in place of brokers'."""
        self._own = own
        self._names = recording.topics
        self._ids = {name: topic_id for topic_id, name in recording.topics.items()}
        self._by_api: dict[int, list[RecordedExchange]] = {}
        self._silent: dict[int, list[RecordedExchange]] = {}
        """Those that have no response: acks=0."""
        opaque: dict[tuple[int, int], list[RecordedExchange]] = {}
        for each in recording.exchanges:
            if each.is_opaque:
                opaque.setdefault((each.key, each.version), []).append(each)
                continue
            is_silent = each.key == ApiKey.PRODUCE and each.asked.get("acks") == 0
            kind = self._silent if is_silent else self._by_api
            kind.setdefault(each.key, []).append(each)
        self._opaque = {key: ApiMatching(exchanges) for key, exchanges in opaque.items()}
        self.offer = _offer(self._by_api)
        """The versions of each API that the recorded broker offers."""
        self.is_offer_recorded = any(each.answered.get("api_keys") and not each.has_error for each in
                                     self._by_api.get(ApiKey.API_VERSIONS, ()))  # fmt: skip
        self._matching = {
            key: ApiMatching(
                each for each in exchanges if key != ApiKey.API_VERSIONS or each.answered_version == each.version
            )
            for key, exchanges in self._by_api.items()
            if key != ApiKey.FETCH and (key != ApiKey.API_VERSIONS or self.is_offer_recorded)
        }
        self._producers = 0
        """Ids that were given to idempotent producers."""
        self._silent_matching = {key: ApiMatching(exchanges) for key, exchanges in self._silent.items()}
        topics = {name for each in recording.exchanges for entity in each.entities for _, name in entity[:1]}
        known = topics | {*recording.topics.values(), *(t["name"] for t in self._all_topics() if t.get("name"))}
        self._fetches = FetchAnswers(self._by_api.get(ApiKey.FETCH, []), self._names, {*map(str, known)})

    def restart(self) -> None:
        """Answer from the beginning again: all clients have gone."""
        for each in (*self._matching.values(), *self._silent_matching.values(), *self._opaque.values()):
            each.restart()
        self._fetches.restart()

    def answer(self, frame: bytes, state: ClientState) -> RecordedAnswer:
        """Answer a request; `frame` has its size prefix."""
        if len(frame) < REQUEST_ID.stop:
            return RecordedAnswer(None, trouble=f"a request of {len(frame) - PREFIX} bytes", closes=True)
        key, version = key_and_version(frame)
        correlation_id = int.from_bytes(frame[REQUEST_ID], "big", signed=True)
        known = api(key)
        name = f"{known.name if known else f'API {key}'} v{version}"
        asked, body_at = read_request(frame, key, version)
        opaque = self._opaque.get((key, version))
        if opaque and (asked is None or key not in self._by_api or opaque.has(version, frame[REQUEST_ID.stop :])):
            answer = self._recorded(
                opaque.match(version, frozenset(), frame[REQUEST_ID.stop :]).exchanges[0], correlation_id
            )
            answer.name = name
            return answer
        if known is None or not known.versions.contains(version):
            if key == ApiKey.API_VERSIONS:
                return self._old_versions(version, correlation_id, name)
            return RecordedAnswer(None, trouble="no version that this release knows", closes=True, name=name)
        if asked is None:
            return RecordedAnswer(None, trouble="a request that can't be read", closes=True, name=name)
        answer = self._answer(key, version, correlation_id, asked, frame[body_at:], state)
        answer.name = name
        return answer

    def _answer(
        self, key: int, version: int, correlation_id: int, asked: Values, body: bytes, state: ClientState
    ) -> RecordedAnswer:
        offered = self.offer.get(key)
        if key == ApiKey.API_VERSIONS:
            if offered is None or not offered.contains(version):
                return self._old_versions(version, correlation_id, "")
            if not self.is_offer_recorded:
                return self._made(key, version, correlation_id, self._made_offer(), [])
        elif self.is_offer_recorded and not (offered and offered.contains(version)) and not self._has(key, version):
            return self._refusal(key, version, correlation_id, asked, "the recorded broker does not offer it")
        if key == ApiKey.PRODUCE and asked.get("acks") == 0:
            silent = self._silent_matching.get(key)
            found = silent and silent.match(version, requested(key, asked, self._names), body)
            return RecordedAnswer(None, [found.exchanges[0].number] if found else [])
        if login := self._login(key, version, correlation_id, asked, state):
            return login
        if key == ApiKey.FETCH and key in self._by_api:
            return self._fetched(version, correlation_id, asked, body)
        if key not in self._matching and key in _MEMBERS and ApiKey.JOIN_GROUP in self._matching:
            return self._made(key, version, correlation_id, body_for(key, version, asked) or {}, [])
        if key == ApiKey.INIT_PRODUCER_ID and self._needs_producer(asked):
            return self._made(key, version, correlation_id, self._producer(asked), [])
        if key not in self._matching:
            return self._refusal(key, version, correlation_id, asked, "the recording has no such request")
        return self._matched(key, version, correlation_id, asked, body)

    def _needs_producer(self, asked: Values) -> bool:
        """Return whether an idempotent producer asks for an id where recorded producers had none; transactions need
        more."""
        has_none = ApiKey.INIT_PRODUCER_ID not in self._matching and ApiKey.PRODUCE in self._matching
        return has_none and asked.get("transactional_id") is None

    def _producer(self, asked: Values) -> Values:
        """Return an id of its own for an idempotent producer, or the next epoch of the one that it has."""
        if asked.get("producer_id", -1) >= 0 and asked["producer_epoch"] < _LAST_EPOCH:
            return {"producer_id": asked["producer_id"], "producer_epoch": asked["producer_epoch"] + 1}
        self._producers += 1
        return {"producer_id": self._producers, "producer_epoch": 0}

    def _matched(self, key: int, version: int, correlation_id: int, asked: Values, body: bytes) -> RecordedAnswer:
        match = self._matching[key].match(version, requested(key, asked, self._names), body)
        if not match.exchanges:
            return self._refusal(key, version, correlation_id, asked, "the recording has no response to it")
        best = match.exchanges[0]
        if match.is_same:
            return self._recorded(best, correlation_id)
        assembly = Assembly(key, version, asked, match.exchanges, self._ids, self._names)
        made = assembly.body()
        if made is None:
            return self._refusal(key, version, correlation_id, asked, "its version can't be written")
        if self._asks_all(key, version, asked):
            layout = response_layout_to_write(key, version, made)
            assert layout.body is not None
            topics = {"topics": self._all_topics()}
            made["topics"] = in_layout(plan(layout.body, layout.body_version), topics, self._ids, self._names)["topics"]
        elif key == ApiKey.METADATA and not asked.get("topics"):
            made["topics"] = []
        is_spent = key == ApiKey.SHARE_FETCH and match.is_repeated
        if is_spent:
            made["responses"] = []
        answer = self._made(key, version, correlation_id, with_own_values(best, asked, made), [best])
        if is_spent:
            answer.wait_ns, answer.is_asked_wait = max(0, asked.get("max_wait_ms", 0)) * MS, True
        if assembly.unknown:
            answer.trouble = f"{NOT_RECORDED}: {shortened(', '.join(assembly.unknown))}"
        return answer

    def _fetched(self, version: int, correlation_id: int, asked: Values, body: bytes) -> RecordedAnswer:
        found = self._fetches.answer(version, asked, body)
        if found.body is None:
            return self._recorded(found.exchanges[0], correlation_id)
        layout = response_layout_to_write(ApiKey.FETCH, version, found.body)
        assert layout.body is not None
        made = in_layout(plan(layout.body, layout.body_version), found.body, self._ids, self._names)
        answer = self._made(ApiKey.FETCH, version, correlation_id, made, found.exchanges)
        if not found.has_news:
            answer.wait_ns, answer.is_asked_wait = max(0, asked.get("max_wait_ms", 0)) * MS, True
        if found.unknown:
            answer.trouble = f"{NOT_RECORDED}: {shortened(', '.join(found.unknown))}"
        return answer

    def _recorded(self, exchange: RecordedExchange, correlation_id: int) -> RecordedAnswer:
        """Return a recorded response as it is, addresses apart."""
        if exchange.response is None:
            return RecordedAnswer(None, [exchange.number])
        frame = exchange.response[:PREFIX] + correlation_id.to_bytes(4, "big", signed=True) + exchange.response[8:]
        frame = self._with_addresses(exchange.key, exchange.version, frame)
        return RecordedAnswer(frame, [exchange.number], _wait(exchange.key, [exchange]))

    def _made(
        self, key: int, version: int, correlation_id: int, body: Values, exchanges: list[RecordedExchange]
    ) -> RecordedAnswer:
        layout = response_layout_to_write(key, version, body)
        try:
            frame = frame_bytes(layout, {"correlation_id": correlation_id}, body)
        except EncodeError as error:
            words = f"the recorded response can't be written as v{version}: {error}"
            return RecordedAnswer(None, trouble=shortened(words), closes=True)
        rows = list(dict.fromkeys(each.number for each in exchanges))
        return RecordedAnswer(self._with_addresses(key, version, frame), rows, _wait(key, exchanges))

    def _with_addresses(self, key: int, version: int, frame: bytes) -> bytes:
        places = ADDRESSES.get(key)
        if places is None:
            return frame
        walk = AddressWalk(key, version, len(frame), places)
        try:
            walk.feed(frame)
        except WireError:  # it was recorded damaged
            return frame
        return rewritten(frame, len(frame), walk, self._own)

    def _refusal(self, key: int, version: int, correlation_id: int, asked: Values, why: str) -> RecordedAnswer:
        frame = error_response(key, version, correlation_id, asked, ErrorCode.UNSUPPORTED_VERSION, NOT_RECORDED)
        how = "connection closed" if frame is None else "UNSUPPORTED_VERSION"
        return RecordedAnswer(frame, trouble=f"{why}: {how}", closes=frame is None)

    def _has(self, key: int, version: int) -> bool:
        """Return whether a version was recorded: brokers of one cluster may offer different ones."""
        return any(each.version == version for each in self._by_api.get(key, ()))

    def _old_versions(self, version: int, correlation_id: int, name: str) -> RecordedAnswer:
        """A broker that lacks the version of ApiVersions names those that it has, in version 0 (KIP-511)."""
        for each in self._by_api.get(ApiKey.API_VERSIONS, ()):
            if each.version == version and each.answered_version != version:
                answer = self._recorded(each, correlation_id)
                answer.name = name
                return answer
        offered = self.offer.get(ApiKey.API_VERSIONS)
        if offered is None:
            why = "the recorded broker has no ApiVersions: connection closed"
            return RecordedAnswer(None, trouble=why, closes=True, name=name)
        row = {"api_key": int(ApiKey.API_VERSIONS), "min_version": offered.low, "max_version": offered.high}
        body = {"error_code": int(ErrorCode.UNSUPPORTED_VERSION), "api_keys": [row]}
        answer = self._made(ApiKey.API_VERSIONS, 0, correlation_id, body, [])
        answer.name, answer.trouble = name, f"the recorded broker has v{offered}: UNSUPPORTED_VERSION"
        return answer

    def _made_offer(self) -> Values:
        rows = [{"api_key": key, "min_version": each.low, "max_version": each.high} for key, each in self.offer.items()]
        return {"error_code": 0, "api_keys": rows}

    def _login(
        self, key: int, version: int, correlation_id: int, asked: Values, state: ClientState
    ) -> RecordedAnswer | None:
        """Remember the mechanism of a login, and refuse what a recording can't answer."""
        recorded = self._by_api.get(ApiKey.SASL_HANDSHAKE)
        if key == ApiKey.SASL_HANDSHAKE and recorded:
            state.mechanism = str(asked.get("mechanism"))
            had = {str(each.asked.get("mechanism")) for each in recorded if not each.has_error}
            if state.mechanism not in had:
                body = {"error_code": int(ErrorCode.UNSUPPORTED_SASL_MECHANISM), "mechanisms": sorted(had)}
                answer = self._made(key, version, correlation_id, body, [])
                answer.trouble = f"{NOT_RECORDED}: a login with {shortened(state.mechanism)}"
                return answer
            state.in_tokens = version == 0
        elif key == ApiKey.SASL_AUTHENTICATE and state.mechanism.startswith(COMPUTED):
            if any(each.asked == asked for each in self._by_api.get(key, ())):
                return None
            words = f"{state.mechanism} can't be answered from a recording: log in with PLAIN, or without SASL"
            body = {"error_code": int(ErrorCode.SASL_AUTHENTICATION_FAILED), "error_message": words}
            answer = self._made(key, version, correlation_id, body, [])
            answer.trouble = words
            return answer
        return None

    def _asks_all(self, key: int, version: int, asked: Values) -> bool:
        return key == ApiKey.METADATA and (asked.get("topics") is None or (version == 0 and not asked["topics"]))

    def _all_topics(self) -> list[Values]:
        return metadata_of_all(self._by_api.get(ApiKey.METADATA, []))


def _wait(key: int, exchanges: list[RecordedExchange]) -> int:
    """Return how long a response waited on purpose when it was recorded."""
    return max((each.latency_ns for each in exchanges), default=0) if key in WAITING else 0


Offer = dict[int, Versions]


def _offer(by_api: dict[int, list[RecordedExchange]]) -> Offer:
    """Return what the recorded brokers offer; without ApiVersions in the recording, what they were asked."""
    found: Offer = {}
    for each in by_api.get(ApiKey.API_VERSIONS, ()):
        for row in () if each.has_error else each.answered.get("api_keys") or ():
            low, high = row["min_version"], row["max_version"]
            before = found.get(row["api_key"], Versions(low, high))
            found[row["api_key"]] = Versions(min(low, before.low), max(high, before.high))
    if found:
        return found
    versions = {key: [each.version for each in exchanges] for key, exchanges in by_api.items()}
    made = {key: Versions(min(each), max(each)) for key, each in versions.items()}
    known = api(ApiKey.API_VERSIONS)
    assert known is not None
    return made | {int(ApiKey.API_VERSIONS): Versions(0, known.versions.high - bool(known.unstable_versions))}
