"""Frames that are changed on their way: an error in place of a broker's success, a throttle time, older versions, a
wrong checksum.

Each function returns the frame that goes on, or None where there is nothing to change: no such field in this version,
no record batch, a frame that can't be read. Nothing but what is said is changed: a frame is read and written again, and
is left alone if that does not give the same bytes.
"""

import struct
from collections.abc import Callable
from typing import Final

from dissector.protocol.codec.plan import plan
from dissector.protocol.codec.writer import write
from dissector.protocol.message import Values, read
from dissector.protocol.message_layout import MessageLayout, sized
from dissector.protocol.schema.error_codes import ErrorCode
from dissector.protocol.wire import EncodeError
from dissector.proxy_server.faults.error_responses import with_code

_THROTTLE: Final = "throttle_time_ms"
_MOST_MS: Final = (1 << 31) - 1
_MAGIC_AT: Final = 16
_LEGACY_CRC_AT: Final = 12
_CRC_AT: Final = 17
_LEAST_ENTRY: Final = 26
"""Bytes of the smallest entry with a checksum, a message of version 0."""


def with_error(frame: bytes, layout: MessageLayout, code: ErrorCode) -> bytes | None:
    """Return a response with an error."""

    def change(body: Values) -> bool:
        assert layout.body is not None
        return with_code(code, plan(layout.body, layout.body_version), body)

    return _changed(frame, layout, change)


def throttled(frame: bytes, layout: MessageLayout, ns: int) -> bytes | None:
    """Return a response with a throttle time."""

    def change(body: Values) -> bool:
        if _THROTTLE not in body:
            return False
        body[_THROTTLE] = min(max(1, ns // 10**6), _MOST_MS)
        return True

    return _changed(frame, layout, change)


def offering(frame: bytes, layout: MessageLayout, newest: tuple[tuple[int, int], ...]) -> bytes | None:
    """Return an ApiVersions response that offers no newer versions of some APIs than these."""
    most = dict(newest)

    def change(body: Values) -> bool:
        before = body.get("api_keys") or []
        offered = [
            each | {"max_version": min(each["max_version"], most.get(each["api_key"], each["max_version"]))}
            for each in before
        ]
        body["api_keys"] = [each for each in offered if each["min_version"] <= each["max_version"]]
        return bool(body["api_keys"] != before)

    return _changed(frame, layout, change)


def corrupted(frame: bytes, layout: MessageLayout) -> bytes | None:
    """Return a message with records whose first batch has a wrong checksum."""
    if layout.body is None:
        return None
    records = _first_records(read(frame, layout).body)
    if records is None or len(records) < _LEAST_ENTRY:
        return None
    at = frame.find(records) + (_CRC_AT if records[_MAGIC_AT] >= 2 else _LEGACY_CRC_AT)
    (crc,) = struct.unpack_from(">I", frame, at)
    return frame[:at] + struct.pack(">I", crc ^ 0xFFFFFFFF) + frame[at + 4 :]


def _first_records(value: object) -> bytes | None:
    """The records of the first partition that has some."""
    if isinstance(value, dict):
        for name, inside in value.items():
            if name in ("records", "unaligned_records") and isinstance(inside, bytes) and inside:
                return inside
            if (found := _first_records(inside)) is not None:
                return found
    elif isinstance(value, list):
        for each in value:
            if (found := _first_records(each)) is not None:
                return found
    return None


def _changed(frame: bytes, layout: MessageLayout, change: Callable[[Values], bool]) -> bytes | None:
    """Return a frame whose body was changed, if `change` says that it was."""
    if layout.body is None or layout.header is None:
        return None
    found = read(frame, layout)
    if found.rest or not found.body:
        return None
    try:
        header = write(layout.header, layout.header_version, found.header)
        if sized(header + write(layout.body, layout.body_version, found.body)) != frame:
            return None
        body = found.body
        if not change(body):
            return None
        return sized(header + write(layout.body, layout.body_version, body))
    except EncodeError:
        return None
