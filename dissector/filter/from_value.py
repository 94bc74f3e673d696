"""Write the filter for a value: what "apply as filter" does.

Invariant, a property test: the filter is valid, and matches the exchange that the value came from.
"""

import re
from datetime import UTC, datetime
from math import isfinite
from typing import Final

from dissector.core.text import HOSTILE
from dissector.core.times import NANOSECONDS
from dissector.exchange.field_paths import STRUCT
from dissector.exchange.row_fields import ROW_FIELDS
from dissector.filter.message_fields import lookup, value_kind
from dissector.filter.value_types import ValueKind, ValueType, row_field_kind
from dissector.protocol.schema.enums import API_KEY

_BARE: Final = re.compile(r"[A-Za-z0-9_.:/+-]+")
"""Texts that don't need quotes."""
_INDEX: Final = re.compile(r"\[\d+\]")
_UNITS: Final = tuple((name, NANOSECONDS[name]) for name in ("s", "ms", "us", "ns"))


def expression(path: str, value: object) -> str:
    """Return the filter for a value at a field path such as ``response.responses[0].error_code``.

    Indexes of elements are optional. For structures, arrays and NaN the filter tests that the field is there. The path
    is not checked: `parse` does that.
    """
    name = _INDEX.sub("", path)
    if isinstance(value, dict | list) or (isinstance(value, float) and not isfinite(value)):
        return name
    kind = next((value_kind(place) for place in lookup(name) if place.type != STRUCT), None)
    return f"{name} == {_literal(value, kind or ValueKind(ValueType.ANY))}"


def cell_expression(name: str, value: object) -> str:
    """Return the filter for a cell, by the name of its row field (`ROW_FIELDS`).

    Latency is in nanoseconds, time in nanoseconds since 1970, api a name or a key. None means that there is no value.
    """
    if value is None:
        return f"!{name}"
    kind = row_field_kind(ROW_FIELDS[name])
    if kind.type is ValueType.TIME:
        return f"{name} == {calendar(int(str(value)))}"
    if isinstance(value, int) and not isinstance(value, bool) and (kind.enum or kind.names):
        return f"{name} == {kind.members.get(value, value)}"
    if kind.enum == API_KEY:
        return f"{name} == {_quoted(str(value).removesuffix('?').removeprefix('API '))}"
    return f"{name} == {_literal(value, kind)}"


def _literal(value: object, kind: ValueKind) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, bytes):
        return f"0x{value.hex()}" if value else '""'
    if isinstance(value, float):
        return repr(value)
    if not isinstance(value, int):
        return _quoted(str(value))
    if kind.type is ValueType.DURATION:
        return _duration(value * kind.scale)
    return str(kind.members.get(value, value)) if kind.enum else str(value)


def _duration(nanoseconds: int) -> str:
    """Format in the largest unit that gives a whole number."""
    name, scale = next((name, scale) for name, scale in _UNITS if nanoseconds % scale == 0)
    return f"{nanoseconds // scale}{name}"


def calendar(time_ns: int) -> str:
    """Format nanoseconds since 1970 as ISO 8601, in UTC."""
    seconds, rest = divmod(time_ns, 10**9)
    at = datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    return f"{at}.{rest:09d}Z" if rest else f"{at}Z"


def _quoted(text: str) -> str:
    """Quote a text if it needs quotes; characters unsafe for a terminal become ``\\u{…}``."""
    if _BARE.fullmatch(text) and not text.startswith("0x") and text != "null":
        return text
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{HOSTILE.sub(_escape, escaped)}"'


def _escape(found: re.Match[str]) -> str:
    return f"\\u{{{ord(found.group()):x}}}"
