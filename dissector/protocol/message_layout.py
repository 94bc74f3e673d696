"""How frames are laid out: the header and the body of a frame, by the API and version of its request, and where its
correlation id is.

Invariant: what no schema has, and what is a guess, is said by a finding of the layout.
"""

from functools import lru_cache
from typing import Final, NamedTuple

from dissector.core.finding import Finding, Severity
from dissector.protocol.codec.reader import DECODE_ERRORS, reader
from dissector.protocol.inference.scoring import reads_as
from dissector.protocol.schema.api_groups import owner_of
from dissector.protocol.schema.api_keys import ApiKey
from dissector.protocol.schema.error_codes import ErrorCode
from dissector.protocol.schema.headers import request_header_version, response_header_version
from dissector.protocol.schema.loader import api
from dissector.protocol.schema.model import Api

PREFIX: Final = 4
"""Bytes of a frame's size."""
REQUEST_ID: Final = slice(PREFIX + 4, PREFIX + 8)
"""Where the frame of a request has its correlation id: behind the size, the API key and the version."""
RESPONSE_ID: Final = slice(PREFIX, PREFIX + 4)
"""Where that of a response has it."""
FALLBACK_SIZE: Final = 6
"""Bytes of the smallest body of ApiVersions v0: an error code and an empty array."""


def sized(message: bytes) -> bytes:
    """Return a message with its size before it."""
    return len(message).to_bytes(PREFIX, "big") + message


def key_and_version(request: bytes) -> tuple[int, int]:
    """Return what the frame of a request begins with, behind its size."""
    key, version = (int.from_bytes(request[at : at + 2], "big", signed=True) for at in (PREFIX, PREFIX + 2))
    return key, version


class MessageLayout(NamedTuple):
    """How to read a frame.

    `body` is None if no schema has the API or the version; `header` is None for bytes that are not a frame.
    """

    header: str | None
    header_version: int
    body: str | None
    body_version: int
    findings: tuple[Finding, ...] = ()
    token: bool = False
    """Whether it is a raw SASL token, without a header."""
    unread: str | None = None
    """The message that the body is, where no known layout has it, or a guess; `UNKNOWN_MESSAGE` of unknown APIs."""
    masked_from: int | None = None
    """The offset from which all bytes are masked, and are no fields."""


UNKNOWN_MESSAGE: Final = "?"
"""The message of an API that nobody knows: a vendor's, or one whose key is damaged."""
ONLY_HEADER: Final = "only the header can be read"
UNFRAMED: Final = MessageLayout(None, 0, None, 0)
"""Bytes that are not a frame."""
UNKNOWN_RESPONSE: Final = MessageLayout("ResponseHeader", 0, None, 0, unread=UNKNOWN_MESSAGE)
"""A response whose request is missing or of an unknown API."""
SASL_TOKEN: Final = MessageLayout(None, 0, None, 0, token=True)
"""A raw SASL token, as it follows SaslHandshake version 0 (KIP-43)."""


def request_layout(api_key: int, version: int, data: bytes = b"") -> MessageLayout:
    """Return how to read a request. Of a version newer than all known ones, the newest layout is tried on `data`."""
    return _known_request(api_key, version) or _unusual_request_layout(api_key, version, data)


@lru_cache(maxsize=4096)
def _known_request(api_key: int, version: int) -> MessageLayout | None:
    """Return the layout of a request of a known version, which does not depend on its bytes."""
    known = api(api_key)
    if known is None or not known.versions.contains(version):
        return None
    return MessageLayout("RequestHeader", request_header_version(api_key, version), known.request, version)


def _unusual_request_layout(api_key: int, version: int, data: bytes) -> MessageLayout:
    known = api(api_key)
    if known is None:
        words = f"API key {api_key} is {owner_of(api_key)}: {ONLY_HEADER}"
        finding = Finding("unknown-api", Severity.WARNING, words, "header")
        header_version = 2 if _has_flexible_header(data) else 1
        return MessageLayout("RequestHeader", header_version, None, version, (finding,), unread=UNKNOWN_MESSAGE)
    newest = known.versions.high
    if version > newest:
        # No API went back from flexible versions: newer versions have the header of the newest known one.
        plain = MessageLayout("RequestHeader", request_header_version(api_key, newest), None, version)
        return _as_newest(plain, known, known.request, data)
    if version < known.versions.low:
        finding = _unknown_version(known, version, ONLY_HEADER)
        return MessageLayout("RequestHeader", 1, None, version, (finding,), unread=known.request)
    return MessageLayout("RequestHeader", request_header_version(api_key, version), known.request, version)


def _has_flexible_header(data: bytes) -> bool:
    """Return whether the header of a request of an unknown API reads as one with tagged fields."""
    try:
        return bool(data) and reader("RequestHeader", 2)(data, PREFIX, len(data))[1] <= len(data)
    except DECODE_ERRORS:
        return False


def response_layout(api_key: int, version: int, data: bytes) -> MessageLayout:
    """Return how to read the response to a request of that API and version; `data` is the response's frame."""
    return _known_response(api_key, version) or _unusual_response_layout(api_key, version, data)


@lru_cache(maxsize=4096)
def _known_response(api_key: int, version: int) -> MessageLayout | None:
    """Return the layout of a response, if it does not depend on its bytes."""
    known = api(api_key)
    if known is None or not known.versions.contains(version) or api_key == ApiKey.API_VERSIONS:
        return None
    return MessageLayout("ResponseHeader", response_header_version(api_key, version), known.response, version)


def _unusual_response_layout(api_key: int, version: int, data: bytes) -> MessageLayout:
    known = api(api_key)
    if known is None:
        return UNKNOWN_RESPONSE
    if api_key == ApiKey.API_VERSIONS and version and _is_fallback(data):
        words = f"the broker does not know ApiVersions v{version} and responded with a v0 body (KIP-511)"
        finding = Finding("version-fallback", Severity.NOTE, words, "body")
        return MessageLayout("ResponseHeader", 0, known.response, 0, (finding,))
    newest = known.versions.high
    if version > newest:
        plain = MessageLayout("ResponseHeader", response_header_version(api_key, newest), None, version)
        layout = _as_newest(plain, known, known.response, data)
        return UNKNOWN_RESPONSE._replace(unread=known.response) if layout.body is None else layout
    if version < known.versions.low:
        return UNKNOWN_RESPONSE._replace(unread=known.response)
    return MessageLayout("ResponseHeader", response_header_version(api_key, version), known.response, version)


def _as_newest(plain: MessageLayout, known: Api, body: str, data: bytes) -> MessageLayout:
    """Return the layout of a message of an unknown, newer version: the newest known body if it fits, else no body."""
    newest = known.versions.high
    assert plain.header is not None
    if reads_as(data, plain.header, plain.header_version, body, newest):
        finding = _unknown_version(known, plain.body_version, f"read as v{newest}, which fits: a guess")
        return plain._replace(body=body, body_version=newest, findings=(finding,), unread=body)
    finding = _unknown_version(known, plain.body_version, ONLY_HEADER)
    return plain._replace(findings=(finding,), unread=body)


def _is_fallback(data: bytes) -> bool:
    """Return whether an ApiVersions response begins with a v0 body with UNSUPPORTED_VERSION."""
    body = data[RESPONSE_ID.stop :]
    if len(body) < FALLBACK_SIZE or int.from_bytes(body[:2], "big") != ErrorCode.UNSUPPORTED_VERSION:
        return False
    count = int.from_bytes(body[2:6], "big")
    size = FALLBACK_SIZE + 6 * count
    return len(body) == size or (count > 0 and size < len(body))  # a throttle time may follow, as in version 1


def _unknown_version(known: Api, version: int, consequence: str) -> Finding:
    words = f"{known.name} v{version} is not known to this release, which has v{known.versions}: {consequence}"
    return Finding("unknown-version", Severity.WARNING, words, "header")
