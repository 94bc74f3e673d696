"""A line of `show --format json` back to the frames that it describes.

Header fields are those of the line, overridden by those in ``header``. A body that JSON cannot have (of an API without
a schema, of a response whose request is missing) is in ``rest``; one that could not be read to its end is written from
``body_bytes`` and ``rest``, as counts of its arrays are in no field. Of bytes that were not captured
only the size is known: they stay missing. A line that can't be written raises `EncodeError` with the path in the line.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from dissector.core import limits
from dissector.core.suggestions import did_you_mean
from dissector.exchange.to_json import PARTIAL_BYTES
from dissector.protocol.frame import FieldValues, frame_bytes, header_bytes, request_header, response_layout_to_write
from dissector.protocol.message_layout import PREFIX, UNKNOWN_RESPONSE, MessageLayout, request_layout, sized
from dissector.protocol.records.from_json import raw
from dissector.protocol.schema.headers import response_header_version
from dissector.protocol.schema.loader import api, api_named, apis
from dissector.protocol.wire import EncodeError

REQUEST: Final = "request"
RESPONSE: Final = "response"
INFERRED: Final = "?"


class EncodedFrame(NamedTuple):
    """A frame, as far as a line has its bytes."""

    data: bytes
    missing: int
    """Bytes of the frame after `data` that the line does not have."""


def frames_of_exchange(line: object) -> tuple[EncodedFrame | None, EncodedFrame | None]:
    """Return the frames of the request and the response of a line. A side that the line does not have is None."""
    if not isinstance(line, Mapping):
        raise EncodeError("is not an object")
    return _request(line), _response(line)


def token(line: FieldValues) -> EncodedFrame:
    """Return the frame of a raw SASL token (a `sasl` line): its size and its bytes."""
    try:
        raw = bytes.fromhex(str(line.get("auth_bytes")))
    except ValueError:
        raise EncodeError(f"{line.get('auth_bytes')!r:.40} is not hex", "auth_bytes") from None
    return EncodedFrame(sized(raw), 0)


def integer(values: FieldValues, name: str, low: int, high: int) -> int:
    """Return the integer `name` of `values`, which must be there and from `low` to `high`."""
    value = values.get(name)
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise EncodeError(f"{value!r:.40} is not an integer from {low:,} to {high:,}", name)
    return value


def api_key_of(api: object, path: str) -> int:
    """Return the key of an API that is given by its key or its name."""
    if isinstance(api, str):
        known = api_named(api)
        if known is None:
            raise EncodeError(f"no API is called {api!r:.40}{near_api(api)}", path)
        return known.key
    return integer({path: api}, path, -(1 << 15), (1 << 15) - 1)


def near_api(name: str) -> str:
    """Return the end of an error about the name of an API that there is not."""
    return did_you_mean(name.removesuffix("Request").removesuffix("Response"), [each.name for each in apis()])


def _api(line: FieldValues) -> tuple[int, int] | None:
    """Return API key and version; None for a line without a request."""
    name = "api_key" if line.get("api_key") is not None else "api"
    if line.get(name) is None:
        return None
    given = line[name]
    # For a response without a request the API was inferred, and its name ends in INFERRED.
    given = given.removesuffix(INFERRED) if isinstance(given, str) else given
    return api_key_of(given, name), integer(line, "api_version", -(1 << 15), (1 << 15) - 1)


def _as_newest(layout: MessageLayout, api_key: int, version: int, message: FieldValues) -> MessageLayout:
    """Return the layout to write. A body in a version that is not known yet was read by the newest known layout."""
    known = api(api_key)
    if layout.body is not None or not message.get("body") or known is None or version <= known.versions.high:
        return layout
    newest = known.versions.high
    if layout.header == "RequestHeader":
        return layout._replace(body=known.request, body_version=newest)
    return MessageLayout("ResponseHeader", response_header_version(api_key, newest), known.response, newest)


def _request(line: FieldValues) -> EncodedFrame | None:
    message = _message(line, REQUEST)
    if message is None:
        return None
    request = _api(line)
    if request is None:
        raise EncodeError("is required for a request", "api_key")
    key, version = request
    layout = _as_newest(request_layout(key, version), key, version, message)
    more = {name: line[name] for name in ("correlation_id", "client_id") if name in line}
    expected = request_header(layout, key, version, more)
    header = expected | _header(message, REQUEST)
    for name in ("request_api_key", "request_api_version"):
        if header[name] != expected[name]:
            raise EncodeError(f"{header[name]!r:.40}, but the line says {expected[name]}", f"{REQUEST}.header.{name}")
    return _frame(REQUEST, message, layout, header)


def _response(line: FieldValues) -> EncodedFrame | None:
    message = _message(line, RESPONSE)
    if message is None:
        return None
    request = _api(line)
    layout = (
        UNKNOWN_RESPONSE
        if request is None
        else _as_newest(response_layout_to_write(*request, message.get("body")), *request, message)
    )
    header = {name: line[name] for name in ("correlation_id",) if name in line}
    return _frame(RESPONSE, message, layout, header | _header(message, RESPONSE))


def _message(line: FieldValues, side: str) -> FieldValues | None:
    message = line.get(side)
    if message is not None and not isinstance(message, Mapping):
        raise EncodeError("is not an object", side)
    return message


def _header(message: FieldValues, side: str) -> dict[str, object]:
    header = message.get("header", {})
    if not isinstance(header, Mapping):
        raise EncodeError("is not an object", f"{side}.header")
    return dict(header)


def _frame(side: str, message: FieldValues, layout: MessageLayout, header: FieldValues) -> EncodedFrame:
    try:
        body = message.get("body", {})
        if message.get("rest") is not None or PARTIAL_BYTES in message or (body and "masked" in message):
            return _with_rest(message, layout, header, body)
        if "masked" not in message and (body != {} or "size" not in message):
            return EncodedFrame(frame_bytes(layout, header, body), 0)
        size = integer(message, "size", PREFIX, PREFIX + limits.DEFAULT.frame_size)
        whole = frame_bytes(layout, header, body) if layout.body and "masked" not in message else b""
        if len(whole) == size:
            return EncodedFrame(whole, 0)
        data = ((size - PREFIX).to_bytes(PREFIX, "big") + header_bytes(layout, header))[:size]
        return EncodedFrame(data, size - len(data))
    except EncodeError as error:
        raise error.under(side) from None


def _with_rest(message: FieldValues, layout: MessageLayout, header: FieldValues, body: object) -> EncodedFrame:
    """Return a frame with bytes that belong to no field: after the body, or in place of one that could not be read."""
    if PARTIAL_BYTES in message:
        data = header_bytes(layout, header) + (raw(message, PARTIAL_BYTES) or b"")
    else:
        data = frame_bytes(layout, header, body)[PREFIX:] if body else header_bytes(layout, header)
    data = bytes(PREFIX) + data + (raw(message, "rest") or b"")
    size = max(
        len(data), integer(message, "size", PREFIX, PREFIX + limits.DEFAULT.frame_size) if "size" in message else 0
    )
    return EncodedFrame((size - PREFIX).to_bytes(PREFIX, "big") + data[PREFIX:], size - len(data))
