"""Requests and responses of one connection, in the order in which they pass: which response answers what.

A broker answers in the order of requests; acks=0 gets no response; SaslHandshake v0 is followed by raw tokens, which
have neither API nor correlation id (KIP-43).
"""

import struct
from collections import deque
from collections.abc import Callable
from functools import cache
from typing import Final, NamedTuple, Protocol

from dissector.core import limits
from dissector.core.text import shortened
from dissector.index.acks import acks
from dissector.protocol.codec.reader import DECODE_ERRORS, reader
from dissector.protocol.message_layout import PREFIX, request_layout
from dissector.protocol.schema.api_keys import ApiKey
from dissector.protocol.schema.loader import api
from dissector.protocol.wire import WireError
from dissector.proxy_server.frame_stream import SIZE, Bytes, FrameStream, NeedMoreError, Send, Sink
from dissector.proxy_server.hooks import Answer
from dissector.proxy_server.ordinary import (
    LEAST_VERSION,
    MOST_WAITING,
    LookedAt,
    OrdinaryFrames,
    PendingRequests,
    Request,
)
from dissector.proxy_server.rewriting import PLAIN_ENDS, REWRITTEN, OwnAddresses, rewriter

_REQUEST: Final = struct.Struct(">ihhi")
_RESPONSE: Final = struct.Struct(">ii")
_MOST_HEAD: Final = 64 << 10
"""Bytes of a Produce request in which `acks` is looked for: a client id and a transactional id have 32 KiB each."""
_SPECIAL: Final = LookedAt(dict.fromkeys((ApiKey.PRODUCE, ApiKey.SASL_HANDSHAKE), LEAST_VERSION))
"""Requests that are looked at closer."""
_STRANGER: Final = 16
"""Bytes of what is not Kafka that are looked at."""
_TLS_HANDSHAKE: Final = b"\x16\x03"
_HTTP: Final = (b"GET ", b"POST", b"PUT ", b"HEAD", b"CONN", b"OPTI", b"PRI ", b"DELE")
BOUND_TO_HOST: Final = {
    "GSSAPI": "Kerberos signs the name of the host that the client connects to",
    "AWS_MSK_IAM": "AWS_MSK_IAM signs the name of the host that the client connects to",
}
"""SASL mechanisms that fail behind a proxy, and why."""


class MadeAnswer(NamedTuple):
    """What a client gets in place of a response, in its turn."""

    correlation_id: int
    answer: Answer
    request: Request


class Pending(Protocol):
    """Requests of a connection that wait for their responses."""

    def append(self, request: Request, /) -> None:
        """Note one more."""

    def take(self, correlation_id: int) -> Request | MadeAnswer | None:
        """Take out the oldest with a correlation id; None if there is none."""


class DecidedPending(deque[Request | MadeAnswer]):
    """Those of a connection whose frames are decided about. Past `MOST_WAITING`, the oldest are forgotten."""

    def __init__(self) -> None:
        super().__init__(maxlen=MOST_WAITING)

    def take(self, correlation_id: int) -> Request | MadeAnswer | None:
        """As `Pending.take`."""
        found = next((each for each in self if each[0] == correlation_id), None)
        if found is not None:
            self.remove(found)
        return found


class NotKafkaError(Exception):
    """A client does not speak Kafka; the message is one plain line."""


class RequestStream(FrameStream):
    """From a client to a broker."""

    HEAD = 8

    def __init__(self, send: Send, pending: Pending, complain: Callable[[str], object]) -> None:
        super().__init__(send)
        self._pending = pending
        self._ordinary = ordinary_frames(pending, _SPECIAL, answers=False)
        self._complain = complain
        self._is_first = True
        self._in_tokens = False

    def _pass_over(self, data: Bytes, at: int, end: int) -> int:
        if self._is_first or self._in_tokens or self._ordinary is None:
            return at
        return self._ordinary.end(data, at, end)

    def _next_size(self, data: Bytes, at: int, end: int) -> int:
        if self._is_first and end - at >= PREFIX:
            if not 0 <= SIZE.unpack_from(data, at)[0] <= limits.DEFAULT.frame_size:
                raise NotKafkaError(stranger(bytes(data[at : at + _STRANGER])))
            self._is_first = False
        return super()._next_size(data, at, end)

    def _begin(self, data: Bytes, at: int, size: int) -> Sink | None:
        if size < self.HEAD:
            return None
        _, key, version, correlation_id = _REQUEST.unpack_from(data, at)
        if self._in_tokens:
            known = api(key)
            if known is None or not known.versions.contains(version):
                return None
            self._in_tokens = False
        if key == ApiKey.PRODUCE and not _expects_response(data, at, size, version):
            return None
        if key == ApiKey.SASL_HANDSHAKE:
            self._in_tokens = version == 0
            self._look_at_mechanism(bytes(data[at : at + PREFIX + size]), version)
        self._pending.append((correlation_id, key, version))
        return None

    def _lost(self, size: int) -> None:
        super()._lost(size)
        self._complain("a client's frames can no longer be followed: its bytes now pass unchanged")

    def _look_at_mechanism(self, frame: bytes, version: int) -> None:
        layout = request_layout(ApiKey.SASL_HANDSHAKE, version)
        if layout.body is None or layout.header is None:
            return
        try:
            _, at = reader(layout.header, layout.header_version)(frame, PREFIX, len(frame))
            body, _ = reader(layout.body, version)(frame, at, len(frame))
        except DECODE_ERRORS:
            return
        mechanism = str(body["mechanism"])
        if why := BOUND_TO_HOST.get(mechanism):
            self._complain(
                f"SASL {mechanism}: {why}, so the broker rejects it behind a proxy; give this client a listener "
                f"with PLAIN, SCRAM or OAUTHBEARER, or capture its packets with kdissect live"
            )


class ResponseStream(FrameStream):
    """From a broker to a client."""

    HEAD = 4

    def __init__(self, send: Send, pending: Pending, advertised: OwnAddresses) -> None:
        super().__init__(send)
        self._pending = pending
        self._ordinary = ordinary_frames(pending, _rewritten(), answers=True)
        self._advertised = advertised

    def _begin(self, data: Bytes, at: int, size: int) -> Sink | None:
        if size < self.HEAD:
            return None
        request = self._pending.take(_RESPONSE.unpack_from(data, at)[1])
        if request is None or isinstance(request, MadeAnswer) or request[1] not in REWRITTEN:
            return None
        return rewriter(request[1], request[2], PREFIX + size, self._advertised)


@cache
def _rewritten() -> LookedAt:
    """Return the responses that are looked at closer."""
    return LookedAt(REWRITTEN, PLAIN_ENDS)


def ordinary_frames(pending: Pending, looked_at: LookedAt, *, answers: bool) -> OrdinaryFrames | None:
    """Return what passes over frames of a direction; None if each of them is decided about."""
    return OrdinaryFrames(pending, looked_at, answers=answers) if isinstance(pending, PendingRequests) else None


def _expects_response(data: Bytes, at: int, size: int, version: int) -> bool:
    """Return whether a Produce request has a response. Raises `NeedMoreError` while `acks` is not there."""
    head = bytes(data[at : at + min(PREFIX + size, _MOST_HEAD)])
    try:
        return acks(head, version) != 0
    except WireError:
        if len(head) < min(PREFIX + size, _MOST_HEAD):
            raise NeedMoreError from None
        return True


def stranger(head: bytes, server: str = "proxy") -> str:
    """Return what a client speaks to the proxy, or to another server, instead of Kafka."""
    if head.startswith(_TLS_HANDSHAKE):
        tls = ", or start the proxy with --listen-tls" if server == "proxy" else ""
        return (
            f"speaks TLS, and the {server} listens in plain: set security.protocol=PLAINTEXT or SASL_PLAINTEXT "
            f"there{tls}"
        )
    if head[:4] in _HTTP:
        return "speaks HTTP, not Kafka"
    return f"does not speak Kafka: it began with {shortened(head[:8].hex(' '))}"
