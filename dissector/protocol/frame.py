"""Encodes a frame from values: size prefix, header, body. The inverse of `message.read`.

Values have the form of our JSON: bytes as bytes or as hex, `records` as objects, NaN as a string. What `show` adds
(``metadata_decoded``) is ignored. A value that can't be encoded raises `EncodeError`, and nothing else is raised; its
path begins with ``header`` or ``body``.
"""

from collections.abc import Mapping
from typing import Final

from dissector.protocol.codec.plan import ScalarPlan, TypePlan, VariablePlan, plan
from dissector.protocol.codec.writer import Writer
from dissector.protocol.message_layout import ONLY_HEADER, MessageLayout, request_layout, response_layout, sized
from dissector.protocol.schema.api_keys import ApiKey
from dissector.protocol.schema.error_codes import ErrorCode
from dissector.protocol.wire import EncodeError

FieldValues = Mapping[str, object]
DECODED: Final = "_decoded"
_FLOATS: Final = ("nan", "inf", "-inf")


class JsonWriter(Writer):
    """Writer of values that were read from JSON."""

    def value(self, plan: TypePlan, value: object) -> bytes:
        if isinstance(plan, ScalarPlan) and plan.type == "float64" and value in _FLOATS:
            return super().value(plan, float(str(value)))
        return super().value(plan, value)

    def is_derived(self, name: str, values: Mapping[str, object]) -> bool:
        return name.endswith(DECODED) and name.removesuffix(DECODED) in values

    def bytes_of(self, plan: VariablePlan, value: object) -> bytes:
        if isinstance(value, str):
            try:
                return bytes.fromhex(value)
            except ValueError:
                raise EncodeError(f"{value!r:.40} is not hex") from None
        return super().bytes_of(plan, value)


_WRITER: Final = JsonWriter()


def frame_bytes(layout: MessageLayout, header: FieldValues, body: object) -> bytes:
    """Return the frame, size prefix included."""
    if layout.body is None:
        words = layout.findings[0].message.removesuffix(f": {ONLY_HEADER}") if layout.findings else "an unknown request"
        raise EncodeError(words, "body")
    data = header_bytes(layout, header) + _struct("body", layout.body, layout.body_version, body)
    return sized(data)


def header_bytes(layout: MessageLayout, header: FieldValues) -> bytes:
    """Return the header of a frame, without the size prefix. A field that its version lacks is an error."""
    assert layout.header is not None
    return _struct("header", layout.header, layout.header_version, header)


def request_header(layout: MessageLayout, api_key: int, version: int, more: FieldValues) -> dict[str, object]:
    """Return the fields of a request's header: key, version, and those of `more` that its version has."""
    assert layout.header is not None
    names = {field.name for field in plan(layout.header, layout.header_version).fields}
    values = {"request_api_key": api_key, "request_api_version": version, **more}
    return {name: value for name, value in values.items() if name in names}


def response_layout_to_write(api_key: int, version: int, body: object) -> MessageLayout:
    """Return the layout to write a response in.

    A broker that lacks the version of an ApiVersions request responds in version 0 (KIP-511).
    """
    if api_key == ApiKey.API_VERSIONS and isinstance(body, Mapping) and "throttle_time_ms" not in body:
        version = 0 if body.get("error_code") == ErrorCode.UNSUPPORTED_VERSION else version
    layout = response_layout(api_key, version, b"")
    return layout if layout.body else layout._replace(findings=request_layout(api_key, version).findings)


def _struct(part: str, name: str, version: int, values: object) -> bytes:
    try:
        return _WRITER.struct(plan(name, version), values)
    except EncodeError as error:
        raise error.under(part) from None
