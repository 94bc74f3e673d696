"""Frames without a capture: decode one, and make one."""

from collections.abc import Callable, Mapping
from typing import Final

from dissector.core.text import counted
from dissector.exchange.from_json import api_key_of, frames_of_exchange, integer
from dissector.exchange.inference_words import OrphanFrame, layout_of_verdict
from dissector.exchange.model import ExchangeMessage
from dissector.protocol.embedded.context import EMPTY_CONTEXT
from dissector.protocol.frame import frame_bytes, request_header, response_layout_to_write
from dissector.protocol.inference.evidence import NOTHING
from dissector.protocol.inference.verdict import infer_response
from dissector.protocol.message import read
from dissector.protocol.message_layout import (
    PREFIX,
    MessageLayout,
    key_and_version,
    request_layout,
    response_layout,
    sized,
)
from dissector.protocol.wire import EncodeError

REQUEST_MIN: Final = PREFIX + 4
"""The bytes of a request that say how to read it: its size, API key and version."""
RESPONSE_MIN: Final = PREFIX + 4
"""The bytes of a response's size and correlation id."""


def decode_request(data: bytes, *, show_secrets: bool = False) -> ExchangeMessage:
    """Decode one request frame, including its 4-byte size prefix. Damage is reported in `findings` and never raised.
    Bytes that are a request without the size prefix, or too few to tell the API, raise `ValueError`.

    >>> message = dissector.decode_request(bytes.fromhex("0000000d 0012 0000 00000007 0003 646576"))
    >>> message.header["client_id"], message.body
    ('dev', {})
    """
    _check_size(data, REQUEST_MIN)
    _check_prefix(data, lambda frame: request_layout(*key_and_version(frame)))
    key, version = key_and_version(data)
    return _message(data, request_layout(key, version, data), show_secrets=show_secrets)


def decode_response(
    data: bytes,
    *,
    api: str | int | None = None,
    api_key: int | None = None,
    api_version: int | None = None,
    show_secrets: bool = False,
) -> ExchangeMessage:
    """Decode one response frame, including its 4-byte size prefix, to a request of that API (by name or key) and
    version. Without API and version, it is decoded by inference: `findings` then says as what, how certain that is, and
    what else it may be. Too few bytes for a frame raise `ValueError`; if API and version are given, so do bytes that
    are a response without the size prefix. An unknown API raises `EncodeError`.

    >>> frame = bytes.fromhex("0000000a 00000007 0023 00000000")
    >>> dissector.decode_response(frame, api="ApiVersions", api_version=0).body["error_code"]
    35

    """
    _check_size(data, RESPONSE_MIN)
    if api is not None and api_key is not None:
        raise TypeError("api and api_key mean the same: give only one of them")
    api = api_key if api is None else api
    if api is None and api_version is None:
        verdict = infer_response(data, len(data), len(data), NOTHING)
        frame = OrphanFrame(data, len(data), len(data), EMPTY_CONTEXT)
        return _message(data, layout_of_verdict(verdict, frame), show_secrets=show_secrets)
    if api is None or api_version is None:
        raise TypeError("give both the API and its version, or neither")
    key, version = _api(api, api_version)
    _check_prefix(data, lambda frame: response_layout(key, version, frame))
    return _message(data, response_layout(key, version, data), show_secrets=show_secrets)


def encode_request(
    api: str | int, version: int, body: Mapping[str, object], *, correlation_id: int = 0, client_id: str | None = None
) -> bytes:
    """Encode a request frame, including its size prefix; `body` is as in `Message.body` or in the JSON. Raises
    `EncodeError`.

    >>> dissector.encode_request("ApiVersions", 0, {}, correlation_id=7, client_id="dev").hex(" ", 4)
    '00 00000d00 12000000 00000700 03646576'
    """
    key, version = _api(api, version)
    layout = request_layout(key, version)
    header = request_header(layout, key, version, {"correlation_id": correlation_id, "client_id": client_id})
    return frame_bytes(layout, header, body)


def encode_response(api: str | int, version: int, body: Mapping[str, object], *, correlation_id: int = 0) -> bytes:
    """Encode a response frame, including its size prefix. Raises `EncodeError`.

    >>> dissector.encode_response("Heartbeat", 0, {"error_code": 27}, correlation_id=7).hex(" ", 4)
    '0000 00060000 0007001b'
    """
    return frame_bytes(response_layout_to_write(*_api(api, version), body), {"correlation_id": correlation_id}, body)


def encode(line: Mapping[str, object]) -> tuple[bytes | None, bytes | None]:
    """Encode the request and the response of an exchange in the JSON of `kdissect show --format json`; None for a
    missing one. Raises `EncodeError`, also if the line does not contain the whole message.

    >>> request, response = dissector.encode(capture[0].json())
    >>> request == capture[0].request.data
    True
    """
    request, response = frames_of_exchange(line)
    for side, message in (("request", request), ("response", response)):
        if message and message.missing:
            raise EncodeError(f"{message.missing:,} of its bytes are not in the line", side)
    return request and request.data, response and response.data


def _check_size(data: bytes, least: int) -> None:
    if isinstance(data, str):
        raise TypeError("a frame is bytes, not text: bytes.fromhex() converts hex digits")
    if not isinstance(data, bytes | bytearray | memoryview):
        raise TypeError(f"a frame is bytes, not {type(data).__name__}")
    if len(data) < least:
        raise ValueError(f"{counted(len(data), 'byte')}: a frame has {least} or more, and begins with a 4-byte size")


def _check_prefix(data: bytes, layout_of: Callable[[bytes], MessageLayout]) -> None:
    """Raise `ValueError` for a whole message without its size prefix: its first bytes do not announce its size."""
    if int.from_bytes(data[:PREFIX], "big") == len(data) - PREFIX:
        return
    frame = sized(data)
    layout = layout_of(frame)
    decoded = read(frame, layout)
    if layout.body is not None and not decoded.rest and not decoded.findings:
        raise ValueError("these bytes have no size prefix: put len(data).to_bytes(4, 'big') in front of them")


def _api(api: str | int, version: int) -> tuple[int, int]:
    return api_key_of(api, "api"), integer({"version": version}, "version", 0, (1 << 15) - 1)


def _message(data: bytes, layout: MessageLayout, *, show_secrets: bool) -> ExchangeMessage:
    return ExchangeMessage.of_frame(0, len(data), data, len(data), layout, EMPTY_CONTEXT, show_secrets=show_secrets)
