"""The `records` fields of bundled captures, for tests that read them in more than one way."""

from functools import cache
from pathlib import Path
from typing import Any

from dissector.capture_session import Capture
from dissector.protocol.embedded.topics import RECORDS_FIELDS


@cache
def bundled_fields(path: Path) -> list[bytes]:
    """All fields of a capture that are not null, in the order of its rows."""
    with Capture([str(path)]) as capture:
        return [
            field
            for exchange in capture.exchanges()
            for side in (exchange.request, exchange.response)
            if side is not None and side.layout.body in RECORDS_FIELDS
            for field in _fields(side.body, RECORDS_FIELDS[side.layout.body].split("."))
        ]


def _fields(value: Any, path: list[str]) -> list[bytes]:
    if not path:
        return [value] if value is not None else []
    found = value.get(path[0])
    if len(path) == 1:
        return _fields(found, [])
    return [field for each in found or () for field in _fields(each, path[1:])]
