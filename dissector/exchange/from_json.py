"""A line of `show --format json` back to the frames that it describes.

Header fields are those of the line, overridden by those in ``header``. A body that JSON cannot have (of an API without
a schema, of a response whose request is missing, of a damaged frame) is in ``rest``. Of bytes that were not captured
only the size is known: they stay missing. A line that can't be written raises `EncodeError` with the path in the line.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final, NamedTuple

from dissector.core import limits
from dissector.protocol.frame import FieldValues, frame_bytes, header_bytes, request_header, response_layout_to_write
from dissector.protocol.message import PREFIX, UNKNOWN_RESPONSE, MessageLayout, request_layout
from dissector.protocol.records.input_values import raw
from dissector.protocol.schema.headers import response_header_version
from dissector.protocol.schema.loader import api, api_named
from dissector.protocol.wire.writing import EncodeError

REQUEST: Final = "request"
RESPONSE: Final = "response"
INFERRED: Final = "?"


class Held(NamedTuple):
    """What a line holds of a frame."""

    data: bytes
    missing: int
    """Bytes of the frame behind these that the line does not hold."""


def held(line: object) -> tuple[Held | None, Held | None]:
    """The request and the response of an exchange; None where the line has none."""
    if not isinstance(line, Mapping):
        raise EncodeError("is not an object")
    return _request(line), _response(line)


def token(line: FieldValues) -> Held:
    """What a login said by itself (`sasl` lines): its bytes behind their size."""
    try:
        raw = bytes.fromhex(str(line.get("auth_bytes")))
    except ValueError:
        raise EncodeError(f"{line.get('auth_bytes')!r:.40} is not hex", "auth_bytes") from None
    return Held(len(raw).to_bytes(PREFIX, "big") + raw, 0)


def integer(values: FieldValues, name: str, low: int, high: int) -> int:
    """An integer that has to be there."""
    value = values.get(name)
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise EncodeError(f"{value!r:.40} is no integer from {low:,} to {high:,}", name)
    return value


def api_key_of(api: object, path: str) -> int:
    """The key of an API that is given by its key or its name."""
    if isinstance(api, str):
        known = api_named(api)
        if known is None:
            raise EncodeError(f"no API is called {api!r:.40}", path)
        return known.key
    return integer({path: api}, path, -(1 << 15), (1 << 15) - 1)


def _api(line: FieldValues) -> tuple[int, int] | None:
    """API key and version; None where the line knows of no request."""
    name = "api_key" if line.get("api_key") is not None else "api"
    if line.get(name) is None:
        return None
    given = line[name]
    # A response without a request has the name that was inferred, marked so.
    given = given.removesuffix(INFERRED) if isinstance(given, str) else given
    return api_key_of(given, name), integer(line, "api_version", -(1 << 15), (1 << 15) - 1)


def _as_newest(shape: MessageLayout, api_key: int, version: int, message: FieldValues) -> MessageLayout:
    """A version from the future has a body only where the newest known layout fitted."""
    known = api(api_key)
    if shape.body is not None or not message.get("body") or known is None or version <= known.versions.high:
        return shape
    newest = known.versions.high
    if shape.header == "RequestHeader":
        return replace(shape, body=known.request, body_version=newest)
    return MessageLayout("ResponseHeader", response_header_version(api_key, newest), known.response, newest)


def _request(line: FieldValues) -> Held | None:
    message = _message(line, REQUEST)
    if message is None:
        return None
    request = _api(line)
    if request is None:
        raise EncodeError("is needed for a request", "api_key")
    key, version = request
    shape = _as_newest(request_layout(key, version), key, version, message)
    more = {name: line[name] for name in ("correlation_id", "client_id") if name in line}
    said = request_header(shape, key, version, more)
    header = said | _given(message, REQUEST)
    for name in ("request_api_key", "request_api_version"):
        if header[name] != said[name]:
            raise EncodeError(f"{header[name]!r:.40}, but the line says {said[name]}", f"{REQUEST}.header.{name}")
    return _held(REQUEST, message, shape, header)


def _response(line: FieldValues) -> Held | None:
    message = _message(line, RESPONSE)
    if message is None:
        return None
    request = _api(line)
    shape = (
        UNKNOWN_RESPONSE
        if request is None
        else _as_newest(response_layout_to_write(*request, message.get("body")), *request, message)
    )
    said = {name: line[name] for name in ("correlation_id",) if name in line}
    return _held(RESPONSE, message, shape, said | _given(message, RESPONSE))


def _message(line: FieldValues, side: str) -> FieldValues | None:
    message = line.get(side)
    if message is not None and not isinstance(message, Mapping):
        raise EncodeError("is not an object", side)
    return message


def _given(message: FieldValues, side: str) -> dict[str, object]:
    header = message.get("header", {})
    if not isinstance(header, Mapping):
        raise EncodeError("is not an object", f"{side}.header")
    return dict(header)


def _held(side: str, message: FieldValues, shape: MessageLayout, header: FieldValues) -> Held:
    try:
        body = message.get("body", {})
        if message.get("rest") is not None:
            return _with_rest(message, shape, header, body)
        if body != {} or "size" not in message:
            return Held(frame_bytes(shape, header, body), 0)
        size = integer(message, "size", PREFIX, PREFIX + limits.DEFAULT.frame_size)
        whole = frame_bytes(shape, header, body) if shape.body else b""
        if len(whole) == size:
            return Held(whole, 0)
        data = ((size - PREFIX).to_bytes(PREFIX, "big") + header_bytes(shape, header))[:size]
        return Held(data, size - len(data))
    except EncodeError as error:
        raise error.under(side) from None


def _with_rest(message: FieldValues, shape: MessageLayout, header: FieldValues, body: object) -> Held:
    """A frame with bytes that no field explains: after the body, or in place of one that could not be read."""
    data = frame_bytes(shape, header, body)[PREFIX:] if body else header_bytes(shape, header)
    data = bytes(PREFIX) + data + (raw(message, "rest") or b"")
    size = max(
        len(data), integer(message, "size", PREFIX, PREFIX + limits.DEFAULT.frame_size) if "size" in message else 0
    )
    return Held((size - PREFIX).to_bytes(PREFIX, "big") + data[PREFIX:], size - len(data))
