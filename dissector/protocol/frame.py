"""Values to a frame: size prefix, header, body. The way back from `message.read`.

Values are Python's or JSON's (bytes, or their hex). What can't be written raises `EncodeError` with a path that begins
with ``header`` or ``body``, and nothing else is raised.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from dissector.protocol.codec.json_writer import JsonWriter
from dissector.protocol.codec.plan import plan
from dissector.protocol.message import PREFIX, MessageLayout, request_layout, response_layout
from dissector.protocol.schema.api_keys import ApiKey
from dissector.protocol.schema.error_codes import ErrorCode
from dissector.protocol.wire.writing import EncodeError

_WRITER: Final = JsonWriter()
FieldValues = Mapping[str, object]


def frame_bytes(layout: MessageLayout, header: FieldValues, body: object) -> bytes:
    """The whole frame."""
    if layout.body is None:
        raise EncodeError(layout.findings[0].message if layout.findings else "what it answers is not known", "body")
    data = header_bytes(layout, header) + _struct("body", layout.body, layout.body_version, body)
    return len(data).to_bytes(PREFIX, "big") + data


def header_bytes(layout: MessageLayout, header: FieldValues) -> bytes:
    """The header of a frame, without the size prefix. Fields that its version lacks must not be there."""
    assert layout.header is not None
    return _struct("header", layout.header, layout.header_version, header)


def request_header(layout: MessageLayout, api_key: int, version: int, more: FieldValues) -> dict[str, object]:
    """The fields of a request's header: key, version and, as far as its version has them, what `more` names."""
    assert layout.header is not None
    names = {field.name for field in plan(layout.header, layout.header_version).fields}
    given = {"request_api_key": api_key, "request_api_version": version, **more}
    return {name: value for name, value in given.items() if name in names}


def response_layout_to_write(api_key: int, version: int, body: object) -> MessageLayout:
    """How a response is written. A broker that lacks the version of ApiVersions answers in version 0 (KIP-511)."""
    if api_key == ApiKey.API_VERSIONS and isinstance(body, Mapping) and "throttle_time_ms" not in body:
        version = 0 if body.get("error_code") == ErrorCode.UNSUPPORTED_VERSION else version
    layout = response_layout(api_key, version, b"")
    return layout if layout.body else replace(layout, findings=request_layout(api_key, version).findings)


def _struct(part: str, name: str, version: int, values: object) -> bytes:
    try:
        return _WRITER.struct(plan(name, version), values)
    except EncodeError as error:
        raise error.under(part) from None
