"""The Python API: what `import dissector` offers."""

__all__ = [
    "EncodeError",
    "FilterError",
    "WireError",
    "decode_request",
    "decode_response",
    "encode",
    "encode_request",
    "encode_response",
    "open",
    "primitives",
]

from collections.abc import Mapping, Sequence
from os import PathLike, fspath

from dissector.capture_session import Capture
from dissector.exchange.from_json import api_key_of, frames_of_exchange, integer
from dissector.exchange.inference_words import OrphanFrame, layout_of_verdict
from dissector.exchange.model import ExchangeMessage
from dissector.filter import FilterError
from dissector.protocol import primitives
from dissector.protocol.embedded.context import EMPTY_CONTEXT
from dissector.protocol.frame import frame_bytes, request_header, response_layout_to_write
from dissector.protocol.inference.evidence import NOTHING
from dissector.protocol.inference.verdict import infer_response
from dissector.protocol.message import PREFIX, MessageLayout, read, request_layout, response_layout
from dissector.protocol.wire import WireError
from dissector.protocol.wire.writing import EncodeError


def open(*paths: str | PathLike[str], show_secrets: bool = False) -> Capture:  # noqa: A001  # like `gzip.open`
    """Open files as one capture: packets, hex, Kafka's own files; ``-`` is standard input. Raises `CaptureError`.

    Passwords, tokens and keys are masked unless asked for, here and below.
    """
    names: Sequence[str] = [fspath(path) for path in paths]
    return Capture(names, show_secrets=show_secrets)


def decode_request(data: bytes, *, show_secrets: bool = False) -> ExchangeMessage:
    """One request frame, its 4-byte size prefix included. Damage is in `findings`, never raised; bytes that are a
    request without the size prefix raise `ValueError`."""
    if _lacks_prefix(data):
        raise ValueError("these bytes have no size prefix: put len(data).to_bytes(4, 'big') in front of them")
    key = int.from_bytes(data[PREFIX : PREFIX + 2], "big", signed=True)
    version = int.from_bytes(data[PREFIX + 2 : PREFIX + 4], "big", signed=True)
    return _message(data, request_layout(key, version, data), show_secrets=show_secrets)


def decode_response(
    data: bytes, *, api_key: int | None = None, api_version: int | None = None, show_secrets: bool = False
) -> ExchangeMessage:
    """One response frame, its 4-byte size prefix included, to a request of that API and version.

    Without both it is decoded by inference: `findings` then has as what, how certain that is, and what else it may be.
    """
    if api_key is None and api_version is None:
        verdict = infer_response(data, len(data), len(data), NOTHING)
        frame = OrphanFrame(data, len(data), len(data), EMPTY_CONTEXT)
        return _message(data, layout_of_verdict(verdict, frame), show_secrets=show_secrets)
    if api_key is None or api_version is None:
        raise TypeError("api_key and api_version are given together, or not at all")
    return _message(data, response_layout(api_key, api_version, data), show_secrets=show_secrets)


def encode_request(
    api: str | int, version: int, body: Mapping[str, object], *, correlation_id: int = 0, client_id: str | None = None
) -> bytes:
    """A request frame, its size prefix included; `body` as `ExchangeMessage.body` or as JSON
    has it. Raises `EncodeError`."""
    key, version = _api(api, version)
    layout = request_layout(key, version)
    header = request_header(layout, key, version, {"correlation_id": correlation_id, "client_id": client_id})
    return frame_bytes(layout, header, body)


def encode_response(api: str | int, version: int, body: Mapping[str, object], *, correlation_id: int = 0) -> bytes:
    """A response frame, its size prefix included. Raises `EncodeError`."""
    return frame_bytes(response_layout_to_write(*_api(api, version), body), {"correlation_id": correlation_id}, body)


def encode(line: Mapping[str, object]) -> tuple[bytes | None, bytes | None]:
    """The request and the response of an exchange as `kdissect show --format json` has it; None where it has none.
    Raises `EncodeError`, also where the line does not hold a message whole."""
    request, response = frames_of_exchange(line)
    for side, message in (("request", request), ("response", response)):
        if message and message.missing:
            raise EncodeError(f"{message.missing:,} of its bytes are not in the line", side)
    return request and request.data, response and response.data


def _lacks_prefix(data: bytes) -> bool:
    """Whether bytes are a whole request but for the size prefix, and not what the prefix would announce."""
    if int.from_bytes(data[:PREFIX], "big") == len(data) - PREFIX:
        return False
    frame = len(data).to_bytes(PREFIX, "big") + data
    key, version = (int.from_bytes(data[at : at + 2], "big", signed=True) for at in (0, 2))
    layout = request_layout(key, version)
    decoded = read(frame, layout)
    return layout.body is not None and not decoded.rest and not decoded.findings


def _api(api: str | int, version: int) -> tuple[int, int]:
    return api_key_of(api, "api"), integer({"version": version}, "version", 0, (1 << 15) - 1)


def _message(data: bytes, layout: MessageLayout, *, show_secrets: bool) -> ExchangeMessage:
    return ExchangeMessage.of_frame(0, len(data), data, len(data), layout, EMPTY_CONTEXT, show_secrets=show_secrets)
