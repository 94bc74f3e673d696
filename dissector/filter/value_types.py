"""Types of values in filters, and how words become values: ``50ms``, ``8KiB``, ``Fetch``, ``0x00ff``, a time.

Numbers are exact fractions until they are compared. Names ignore case; texts don't.
"""

import re
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from fractions import Fraction
from functools import cache
from typing import Final
from uuid import UUID

from dissector.core.finding import Severity
from dissector.core.suggestions import nearest
from dissector.core.times import NANOSECONDS, SECOND, fraction_ns
from dissector.exchange.model import STORED
from dissector.exchange.row_field import FieldType, RowField
from dissector.filter.errors import MismatchError
from dissector.filter.grammar import BYTES, FilterWord
from dissector.index.exchange_table import KIND_NAMES
from dissector.protocol.schema.enums import API_KEY, ERROR_CODE, members, name_of, number_of
from dissector.protocol.schema.loader import api_named

MOST_NAMES: Final = 5
"""Names that are suggested where none is like the word: all of a few, but not the first ones of many."""
_NUMBER: Final = re.compile(r"([+-]?\d{1,60}(?:\.\d{1,60})?(?:e[+-]?\d{1,3})?)([a-zA-Zµ]*)", re.ASCII)
_HEX: Final = re.compile(r"0[xX]((?:[0-9a-fA-F]{2})*)")
_HEX_NUMBER: Final = re.compile(r"([+-]?)0[xX]([0-9a-fA-F]{1,32})")
_TIME: Final = re.compile(
    r"(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d(?::\d\d)?)(?:\.(\d{1,9}))?(Z|[+-]\d\d:?\d\d)?)?", re.ASCII
)
_UUID: Final = re.compile(r"[A-Za-z0-9_-]{22}")


class ValueType(StrEnum):
    """Types of values, by the words that errors and completions use."""

    INTEGER = "number"
    FLOAT = "decimal number"
    BOOLEAN = "true or false"
    TEXT = "text"
    ADDRESS = "IP address"
    UUID = "uuid"
    BYTES = "bytes"
    DURATION = "duration"
    TIME = "time"
    STRUCT = "structure"
    ANY = "what the bytes hold"


NUMBERS: Final = frozenset((ValueType.INTEGER, ValueType.DURATION, ValueType.TIME))
_EXAMPLES: Final = {ValueType.DURATION: ("50ms", "1.5s"), ValueType.TIME: ("2.5s", "2026-01-31T12:00:00Z")}


@dataclass(frozen=True, slots=True)
class ValueKind:
    """The values of a field. Durations, and times since 1970, count units of `scale` nanoseconds."""

    type: ValueType
    enum: str | None = None
    """The enum that names its numbers; numbers without an enum may have `names`."""
    names: tuple[str, ...] = ()
    """All valid texts; or, of numbers, the names of 0, 1, …"""
    scale: int = 1
    bare: int | None = 1
    """Factor of a number without a unit; None if a unit is required."""
    ordered: bool = True
    nullable: bool = False
    prefix: str = ""
    """Optional prefix of a number: ``C3``."""

    @property
    def is_number(self) -> bool:
        return self.type in NUMBERS

    @property
    def members(self) -> Mapping[int, str]:
        """Names by numbers."""
        return members(self.enum) if self.enum else dict(enumerate(self.names))

    @property
    def words(self) -> str:
        """The type, for display."""
        return f"{self.type.value} ({self.enum})" if self.enum else self.type.value

    def name_of(self, number: int) -> str:
        """Return the name of a number, to be searched."""
        return name_of(self.enum, number) if self.enum else self.names[number]


def number(word: FilterWord, kind: ValueKind) -> Fraction:
    """Return a word as a number in the units of the field. Raises `MismatchError`."""
    text = word.text
    named = _named(text, kind)
    if named is not None:
        return Fraction(named)
    if found := _HEX_NUMBER.fullmatch(text):
        return Fraction(int(found[1] + found[2], 16))
    if kind.type is ValueType.TIME and (at := time_ns(text)) is not None:
        return Fraction(at, kind.scale)
    found = _NUMBER.fullmatch(text.removeprefix(kind.prefix))
    if found is None:
        raise _number_error(word, kind)
    value, unit = Fraction(found[1]), found[2]
    if not unit:
        if kind.bare is None and value:
            raise MismatchError(word.column, f"{text} needs a unit: {text}ms, {text}s or {text}us")
        return value * (kind.bare or 1)
    if kind.type in (ValueType.DURATION, ValueType.TIME) and unit in NANOSECONDS:
        return value * Fraction(NANOSECONDS[unit], kind.scale)
    if kind.type is ValueType.INTEGER and unit in BYTES:
        return value * BYTES[unit]
    units = BYTES if kind.type is ValueType.INTEGER else NANOSECONDS
    raise MismatchError(word.column, f"unknown unit {unit!r} for a {kind.type.value}", tuple(list(units)[:5]))


def _named(text: str, kind: ValueKind) -> int | None:
    if kind.enum == API_KEY:
        known = api_named(text)
        return known.key if known else None
    if kind.enum:
        return number_of(kind.enum, text)
    folded = text.casefold()
    return kind.names.index(folded) if folded in kind.names else None


def _number_error(word: FilterWord, kind: ValueKind) -> MismatchError:
    text = f"{word.text!r}" if word.text else "an empty text"
    if kind.enum or kind.names:
        names = tuple(kind.members.values())
        near = nearest(word.text, names) or (names if len(names) <= MOST_NAMES else ())
        what = {API_KEY: "API", "ErrorCode": "error"}.get(kind.enum or "", kind.enum or "of its names")
        return MismatchError(word.column, f"unknown {what} {text}" if kind.enum else f"unknown value {text}", near)
    examples = _EXAMPLES.get(kind.type, ())
    return MismatchError(word.column, f"{text} is not a {kind.type.value}", examples)


def is_time(text: str) -> bool:
    """Return whether a text is a date or a date with a time."""
    return time_ns(text) is not None


def time_ns(text: str) -> int | None:
    """Return nanoseconds since 1970 of an ISO 8601 date or time, UTC by default; None for other texts."""
    found = _TIME.fullmatch(text)
    if found is None:
        return None
    day, clock, fraction, zone = found.groups()
    try:
        at = datetime.fromisoformat(f"{day}T{clock or '00:00'}{'+00:00' if zone in (None, 'Z') else zone}")
        seconds = (at - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(seconds=1)
    except (ValueError, OverflowError):
        return None
    return seconds * SECOND + fraction_ns(fraction or "")


def text(word: FilterWord, kind: ValueKind) -> str:
    """Return a word as a text: one of the field's names if it has names. Raises `MismatchError`."""
    if not kind.names:
        return word.text
    folded = word.text.casefold()
    if folded not in kind.names:
        raise MismatchError(word.column, f"unknown value {word.text!r}", nearest(word.text, kind.names, 5))
    return folded


def data(word: FilterWord) -> bytes:
    """Return a word as bytes: ``0x00ff``, or a text as UTF-8."""
    found = None if word.quoted else _HEX.fullmatch(word.text)
    return bytes.fromhex(found[1]) if found else utf8(word.text)


def utf8(value: str) -> bytes:
    """Return the bytes of a text as they are on the wire."""
    is_from_bytes = not any("\ud800" <= char < "\udc80" or "\udcff" < char < "\ue000" for char in value)
    return value.encode("utf-8", "surrogateescape" if is_from_bytes else "replace")


def uuid(word: FilterWord) -> str:
    """Return a uuid as Kafka prints it, also from the form 8-4-4-4-12. Raises `MismatchError`."""
    if _UUID.fullmatch(word.text):
        return word.text
    try:
        return urlsafe_b64encode(UUID(word.text).bytes).rstrip(b"=").decode()
    except ValueError:
        raise MismatchError(word.column, f"{word.text!r} is not a uuid", ("AAAAAAAAAAAAAAAAAAAAAQ",)) from None


def boolean(word: FilterWord) -> bool:
    """Return a word as a boolean. Raises `MismatchError`."""
    if word.text.casefold() not in ("true", "false"):
        raise MismatchError(word.column, f"{word.text!r} is neither true nor false", ("true", "false"))
    return word.text.casefold() == "true"


_KINDS: Final = {
    FieldType.INTEGER: ValueKind(ValueType.INTEGER),
    FieldType.SIZE: ValueKind(ValueType.INTEGER),
    FieldType.DURATION: ValueKind(ValueType.DURATION, bare=None),
    FieldType.TIME: ValueKind(ValueType.TIME, bare=10**9),
    FieldType.TEXT: ValueKind(ValueType.TEXT),
    FieldType.PRESENCE: ValueKind(ValueType.STRUCT),
    FieldType.KIND: ValueKind(ValueType.TEXT, names=(*KIND_NAMES, *sorted(STORED))),
    FieldType.CONNECTION: ValueKind(ValueType.INTEGER, prefix="C"),
    FieldType.ADDRESS: ValueKind(ValueType.ADDRESS),
    FieldType.API: ValueKind(ValueType.INTEGER, API_KEY, ordered=False),
    FieldType.ERROR: ValueKind(ValueType.INTEGER, ERROR_CODE),
    FieldType.SEVERITY: ValueKind(ValueType.INTEGER, names=tuple(Severity)),
}
_IN_NANOSECONDS: Final = "_ns"


def row_field_kind(field: RowField, name: str = "") -> ValueKind:
    """Return the kind of a row field's values. With a `name` in ``_ns``, numbers without a unit are nanoseconds."""
    kind = _KINDS.get(field.type) or _finding_kind()
    return replace(kind, bare=1) if counts_nanoseconds(field, name) else kind


@cache
def _finding_kind() -> ValueKind:
    from dissector.findings.registry import CODES  # all detectors: most filters need none

    return ValueKind(ValueType.TEXT, names=CODES)


def counts_nanoseconds(field: RowField, name: str) -> bool:
    """Return whether a number without a unit is nanoseconds; for times, nanoseconds since 1970."""
    return name.endswith(_IN_NANOSECONDS) and field.type in (FieldType.DURATION, FieldType.TIME)
