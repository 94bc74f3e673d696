"""A value that somebody points at, as the filter that selects it: what "apply as filter" writes.

Invariant: the filter is good, and the exchange that the value came from fits it: a property test.
"""

import re
from datetime import UTC, datetime
from math import isfinite
from typing import Final

from dissector.core.text import HOSTILE
from dissector.exchange.field_paths import STRUCT
from dissector.exchange.row_fields import ROW_FIELDS
from dissector.filter.message_fields import kind_of, lookup
from dissector.filter.row_field_kinds import kind_of_row_field
from dissector.filter.value_types import NANOSECONDS, ValueKind, ValueType
from dissector.protocol.schema.enums import API_KEY

_BARE: Final = re.compile(r"[A-Za-z0-9_.:/+-]+")
"""Texts that need no quotes."""
_INDEX: Final = re.compile(r"\[\d+\]")
_UNITS: Final = tuple((name, NANOSECONDS[name]) for name in ("s", "ms", "us", "ns"))


def expression(path: str, value: object) -> str:
    """The filter for a value at the path of a field, with or without the numbers of elements, as
    ``response.responses[0].error_code``; for a structure, an array or what is no number, that it is there. Of a path
    that nothing can be asked about, `parse` says so."""
    name = _INDEX.sub("", path)
    if isinstance(value, dict | list) or (isinstance(value, float) and not isfinite(value)):
        return name
    kind = next((kind_of(place) for place in lookup(name) if place.type != STRUCT), None)
    return f"{name} == {_worded(value, kind or ValueKind(ValueType.ANY))}"


def cell_expression(name: str, value: object) -> str:
    """The filter for a cell of a row, by the name of its field (`ROW_FIELDS`): numbers as the row has them, latency in
    nanoseconds, time in nanoseconds since 1970, api by name or key. None asks that there is none."""
    if value is None:
        return f"!{name}"
    kind = kind_of_row_field(ROW_FIELDS[name])
    if kind.type is ValueType.TIME:
        return f"{name} == {calendar(int(str(value)))}"
    if isinstance(value, int) and not isinstance(value, bool) and (kind.enum or kind.names):
        return f"{name} == {kind.members.get(value, value)}"
    if kind.enum == API_KEY:
        return f"{name} == {_quoted(str(value).removesuffix('?').removeprefix('API '))}"
    return f"{name} == {_worded(value, kind)}"


def _worded(value: object, kind: ValueKind) -> str:
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
    """In the largest unit that it is a whole number of."""
    name, scale = next((name, scale) for name, scale in _UNITS if nanoseconds % scale == 0)
    return f"{nanoseconds // scale}{name}"


def calendar(time_ns: int) -> str:
    """Nanoseconds since 1970 as ISO 8601 has them, in UTC."""
    seconds, rest = divmod(time_ns, 10**9)
    at = datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    return f"{at}.{rest:09d}Z" if rest else f"{at}Z"


def _quoted(text: str) -> str:
    """A text as a value, bare where it can be; what a terminal might act on as its number."""
    if _BARE.fullmatch(text) and not text.startswith("0x") and text != "null":
        return text
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{HOSTILE.sub(_numbered, escaped)}"'


def _numbered(found: re.Match[str]) -> str:
    return f"\\u{{{ord(found.group()):x}}}"
