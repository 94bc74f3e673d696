"""Predicates on one value, built once from an operator and its values, then called for each value of a field.

Predicates on numbers are sets of intervals, so that they can be evaluated on a whole column. Every search takes linear
time: regular expressions are those of RE2, which doesn't backtrack.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from math import ceil, floor, isfinite
from operator import ge, gt, le, lt, ne
from typing import Final

import numpy as np

from dissector.core.arrays import Bool, Int64
from dissector.filter.errors import MismatchError
from dissector.filter.grammar import FilterWord
from dissector.filter.value_types import ValueKind, ValueType, boolean, data, number, text, utf8, uuid

Predicate = Callable[[object], bool]
_ADDRESSES: Final = "127.0.0.1, 10.0.0.0/8 or ::1"
_COMPARISONS: Final = {"!=": ne, "<": lt, "<=": le, ">": gt, ">=": ge}
_CONVERSIONS: Final = {ValueType.BOOLEAN: boolean, ValueType.UUID: uuid, ValueType.BYTES: data}
_PLAIN: Final = ValueKind(ValueType.INTEGER)
ORDERS: Final = ("<", "<=", ">", ">=")
OPERATORS: Final = ("==", "!=", *ORDERS, "contains", "matches", "in")
LEAST, MOST = -(1 << 63), (1 << 64) - 1
"""Bounds of all integers on the wire."""
_TOP: Final = (1 << 63) - 1
"""Largest value of a column."""


@dataclass(frozen=True, slots=True)
class Intervals:
    """Matches integers in any of some intervals, both ends included."""

    spans: tuple[tuple[int, int], ...]

    def __call__(self, value: object) -> bool:
        return isinstance(value, int) and any(low <= value <= high for low, high in self.spans)

    def of_column(self, values: Int64) -> Bool:
        """Evaluate on a column, `(n,)`."""
        hits = np.zeros(len(values), np.bool_)
        for low, high in self.spans:
            if low <= _TOP and high >= LEAST:
                hits |= (values >= max(low, LEAST)) & (values <= min(high, _TOP))
        return hits


@dataclass(frozen=True, slots=True)
class OneOf:
    """Matches any of some values."""

    wanted: frozenset[object]

    def __call__(self, value: object) -> bool:
        return value in self.wanted


@dataclass(frozen=True, slots=True)
class NoneOf:
    """Matches any value but these and null."""

    unwanted: frozenset[object]

    def __call__(self, value: object) -> bool:
        return value is not None and value not in self.unwanted


@dataclass(frozen=True, slots=True)
class Contains:
    """Matches texts that contain this, as UTF-8."""

    wanted: bytes

    def __call__(self, value: object) -> bool:
        return isinstance(value, str) and self.wanted in utf8(value)


def predicate(kind: ValueKind, operator: FilterWord, words: Sequence[FilterWord]) -> Predicate:
    """Return the predicate on values of this kind; only ``null`` matches null. Raises `MismatchError`."""
    nulls = [word for word in words if kind.nullable and not word.quoted and word.text == "null"]
    if nulls and operator.text in ("==", "!=", "in"):
        others = [word for word in words if word not in nulls]
        if operator.text == "!=":
            return lambda value: value is not None
        more = _predicate(kind, operator, others) if others else None
        return lambda value: value is None or (more is not None and more(value))
    return _predicate(kind, operator, words)


def _predicate(kind: ValueKind, operator: FilterWord, words: Sequence[FilterWord]) -> Predicate:
    symbol = operator.text
    if kind.type is ValueType.STRUCT:
        raise MismatchError(operator.column, "this is a structure: compare one of its fields")
    if symbol in ORDERS and (not kind.ordered or not (kind.is_number or kind.type in (ValueType.FLOAT, ValueType.ANY))):
        raise MismatchError(operator.column, f"{symbol} needs a number: this is {kind.words}", ("==", "!=", "contains"))
    if symbol in ("contains", "matches"):
        return _search(kind, operator, words[0])
    if kind.is_number:
        return Intervals(_spans(kind, symbol, words))
    if kind.type is ValueType.FLOAT:
        return _decimal(symbol, words)
    if kind.type is ValueType.ANY:
        return _anything(symbol, words)
    if kind.type is ValueType.ADDRESS:
        return _in_networks(words, negated=symbol == "!=")
    convert = _CONVERSIONS.get(kind.type)
    wanted = frozenset(convert(word) if convert else text(word, kind) for word in words)
    return NoneOf(wanted) if symbol == "!=" else OneOf(wanted)


def _spans(kind: ValueKind, symbol: str, words: Sequence[FilterWord]) -> tuple[tuple[int, int], ...]:
    if symbol == "in":
        return tuple(_between(*_ends(kind, word)) for word in words)
    value = number(words[0], kind)
    below, above = (LEAST, ceil(value) - 1), (floor(value) + 1, MOST)
    return {
        "==": (_between(value, value),), "!=": (below, above), "<": (below,), ">": (above,),
        "<=": ((LEAST, floor(value)),), ">=": ((ceil(value), MOST),),
    }[symbol]  # fmt: skip


def _between(low: Fraction, high: Fraction) -> tuple[int, int]:
    return max(ceil(low), LEAST), min(floor(high), MOST)


def _ends(kind: ValueKind, word: FilterWord) -> tuple[Fraction, Fraction]:
    """Return the ends of a range ``10..20``, or a value as both ends."""
    first, dots, last = ("", "", "") if word.quoted else word.text.partition("..")
    if not dots:
        value = number(word, kind)
        return value, value
    low = number(FilterWord(first, word.column), kind)
    high = number(FilterWord(last, word.column + len(first) + 2), kind)
    if low > high:
        raise MismatchError(word.column, f"empty range {word.text}: it ends before it begins", (f"{last}..{first}",))
    return low, high


def _decimal(symbol: str, words: Sequence[FilterWord]) -> Predicate:
    """Compare floats with the float nearest to a number; NaN and infinities match nothing."""
    ends = [(_nearest(word, low), _nearest(word, high)) for word in words for low, high in (_ends(_PLAIN, word),)]
    compare = _COMPARISONS.get(symbol)

    def matches(value: object) -> bool:
        if not isinstance(value, float | int) or not isfinite(value):
            return False
        if compare is not None:
            return bool(compare(value, ends[0][0]))
        return any(low <= value <= high for low, high in ends)

    return matches


def _nearest(word: FilterWord, exact: Fraction) -> float:
    try:
        return float(exact)
    except OverflowError:
        raise MismatchError(word.column, f"{word.text} is too large") from None


def _anything(symbol: str, words: Sequence[FilterWord]) -> Predicate:
    """Compare values of unknown type: each by the type that it has."""
    kinds = {
        bool: ValueKind(ValueType.BOOLEAN), int: ValueKind(ValueType.INTEGER), float: ValueKind(ValueType.FLOAT),
        str: ValueKind(ValueType.TEXT), bytes: ValueKind(ValueType.BYTES),
    }  # fmt: skip
    predicates: dict[type, Predicate] = {}
    for each, kind in kinds.items():
        try:
            predicates[each] = _predicate(kind, FilterWord(symbol, words[0].column), words)
        except MismatchError:
            continue
    if not predicates:
        raise MismatchError(words[0].column, f"{words[0].text!r} is not a number")

    def matches(value: object) -> bool:
        found = predicates.get(type(value))
        return found is not None and found(value)

    return matches


def _search(kind: ValueKind, operator: FilterWord, word: FilterWord) -> Predicate:
    """Return the predicate of ``contains`` or ``matches``, on text, on bytes, or on the name of a number."""
    if kind.type is ValueType.ANY:
        texts, raw = (_search(ValueKind(each), operator, word) for each in (ValueType.TEXT, ValueType.BYTES))
        return lambda value: (texts if isinstance(value, str) else raw)(value)
    if kind.type is ValueType.BYTES:
        within = _within(operator, word, data(word))
        return lambda value: isinstance(value, bytes) and within(value)
    within = _within(operator, word, utf8(word.text))
    if kind.is_number and (kind.enum or kind.names):
        return lambda value: isinstance(value, int) and within(kind.name_of(value).encode())
    if kind.type not in (ValueType.TEXT, ValueType.UUID, ValueType.ADDRESS):
        message = f"{operator.text} needs text or bytes: this is {kind.words}"
        raise MismatchError(operator.column, message, ("==", "<", "in"))
    if operator.text == "contains":
        return Contains(utf8(word.text))
    return lambda value: isinstance(value, str) and within(utf8(value))


def _within(operator: FilterWord, word: FilterWord, wanted: bytes) -> Callable[[bytes], bool]:
    if operator.text == "contains":
        return lambda raw: wanted in raw
    import re2  # few filters need it

    options = re2.Options()
    options.case_sensitive = False
    options.log_errors = False
    try:
        pattern = re2.compile(utf8(word.text), options)
    except re2.error as error:
        reason = error.args[0].decode("utf-8", "replace") if error.args else "it is too large"
        raise MismatchError(word.column, f"invalid regular expression: {reason.partition(':')[0]}") from None
    return lambda raw: pattern.search(raw) is not None


def _in_networks(words: Sequence[FilterWord], *, negated: bool) -> Callable[[object], bool]:
    """Return whether a text is an address in any of these: ``10.0.0.1``, ``::1``, or networks as ``10.0.0.0/8`` (RFC
    4632, 3.1); if `negated`, in none. Raises `MismatchError`."""
    networks = [_network(word) for word in words]

    def matches(value: object) -> bool:
        address = _address(value) if isinstance(value, str) else None
        return address is not None and any(address in network for network in networks) != negated

    return matches


def _network(word: FilterWord) -> IPv4Network | IPv6Network:
    try:
        return ip_network(word.text, strict=False)
    except ValueError:
        raise MismatchError(
            word.column, f"{word.text!r} is not an IP address or network, such as {_ADDRESSES}"
        ) from None


@lru_cache(maxsize=1024)
def _address(text: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(text)
    except ValueError:
        return None
