"""All layouts that a response can have. Versions of an API with the same layout are one candidate.

The bytes don't distinguish such versions. Alternative layouts of a version are separate candidates.

A layout has what its bodies begin with: numbers at known offsets, whose cost rules out most layouts before they are
scored, those with the same beginning together. What is known of a beginning never costs more than the layout.
"""

from dataclasses import dataclass
from functools import cache
from typing import Final

from dissector.protocol.codec.plan import ArrayPlan, ScalarPlan, StructPlan, least_size, plan
from dissector.protocol.codec.program import Program
from dissector.protocol.inference.number_costs import NUMBERS, Bits, bits_of, plain
from dissector.protocol.schema.headers import response_header_version
from dissector.protocol.schema.loader import alternatives, apis
from dissector.protocol.schema.model import Api

MOST: Final = 4
"""Numbers of a beginning."""
_IMPOSSIBLE: Final = 1e9
_COUNT: Final = "count"

Beginning = tuple[tuple[int, str, Bits], ...]
"""Offset, type and cost of each number; a count of elements of 4 bytes is the last one."""


def beginning_of(layout: StructPlan) -> Beginning:
    """Return the numbers that a body begins with."""
    found: list[tuple[int, str, Bits]] = []
    at = 0
    for field in layout.fields[:MOST]:
        kind = field.type
        if isinstance(kind, ArrayPlan) and not kind.compact:
            found.append((at, _COUNT, _count if kind.nullable else _count_of_some))
            break
        if not isinstance(kind, ScalarPlan) or kind.type in ("uuid", "float64"):
            break
        size = NUMBERS[kind.type].size
        found.append((at, kind.type, bits_of(layout.name, field.name, kind.type, size)))
        at += size
    return tuple(found)


def _count(value: int) -> float:
    return plain(value, 4) if value >= -1 else _IMPOSSIBLE


def _count_of_some(value: int) -> float:
    return plain(value, 4) if value >= 0 else _IMPOSSIBLE


def least_bits(beginning: Beginning, data: bytes, at: int) -> float:
    """Return what the numbers at the beginning of a body cost; those that were not captured cost nothing."""
    bits = 0.0
    for offset, kind, cost in beginning:
        number = NUMBERS["int32" if kind is _COUNT else kind]
        if at + offset + number.size > len(data):
            break
        value = number.unpack_from(data, at + offset)[0]
        bits += cost(value)
        if kind is _COUNT and value > len(data) - at:
            return _IMPOSSIBLE
    return bits


@dataclass(frozen=True, slots=True, eq=False)
class ResponseLayout:
    """The layout of responses of some versions of an API."""

    api: Api
    versions: tuple[int, ...]
    """Ascending."""
    header_version: int
    plan: StructPlan
    other: int
    """0, or the number of the version's alternative layout."""
    least: int
    """Bytes of the smallest body."""
    beginning: Beginning = ()
    """The numbers that the body begins with."""
    number: int = 0
    """Its place in `layouts`."""


@cache
def layouts() -> tuple[ResponseLayout, ...]:
    """Return all layouts. The first call reads the tables of all responses."""
    found: list[ResponseLayout] = []
    for api in apis():
        groups: dict[tuple[int, StructPlan, int], list[int]] = {}
        for version in api.versions:
            header = response_header_version(api.key, version)
            for other in range(len(alternatives(api.response, version)) + 1):
                groups.setdefault((header, plan(api.response, version, other), other), []).append(version)
        found += [
            ResponseLayout(api, tuple(v), header, body, other, least_size(body), beginning_of(body), number)
            for number, ((header, body, other), v) in enumerate(groups.items(), len(found))
        ]
    return tuple(found)


def layout_program(layout: ResponseLayout) -> Program:
    """Return the program of frames with this layout."""
    return Program((("header", plan("ResponseHeader", layout.header_version)), ("body", layout.plan)))
