"""All layouts that a response can have. Versions of an API with the same layout are one candidate.

The bytes don't distinguish such versions. Alternative layouts of a version are separate candidates.

A layout has what its bodies begin with: numbers at known offsets, whose cost rules out most layouts before they are
scored, those with the same beginning together. What is known of a beginning never costs more than the layout.

Which layouts one frame may fit, the native kernel says: it reads the frame along each to its last byte, and keeps
nothing. Invariant: a layout that the reader in Python reads to the last byte is among them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final

import numpy as np

from dissector.core.arrays import Bool, Int64, UInt8, UInt64
from dissector.core.kernel import kernel_function
from dissector.protocol.codec.plan import ArrayPlan, ScalarPlan, StructPlan, least_size, plan
from dissector.protocol.codec.program import Program
from dissector.protocol.inference.number_costs import NUMBERS, Bits, bits_of, plain
from dissector.protocol.kernel.shredding import KernelShred, ShredError
from dissector.protocol.schema.headers import response_header_version
from dissector.protocol.schema.loader import alternatives, apis
from dissector.protocol.schema.model import Api

MOST: Final = 4
"""Numbers of a beginning."""
_IMPOSSIBLE: Final = 1e9
_COUNT: Final = "count"
_fits = kernel_function("fits", "Pq")
_NO_KEYS: Final = 0
_MAY_FIT: Final = np.isin(np.arange(256), (ShredError.NONE, ShredError.REPEATED_TAG, ShredError.TOO_DEEP))
"""By error: repeated tags and many levels are what the reader reads, and the kernel does not."""

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


class LayoutFits:
    """Some layouts, by their programs, which begin `begin` bytes behind the start of a frame."""

    def __init__(self, programs: Sequence[Program], begin: int) -> None:
        columns = max((len(program.columns) for program in programs), default=0)
        self._programs = programs
        self._frame: UInt64 = np.zeros(1, np.uint64)
        self._size: Int64 = np.zeros(1, np.int64)
        self._errors: UInt8 = np.zeros(len(programs), np.uint8)
        self._nothing: Int64 = np.zeros(max(1, columns), np.int64)
        """In place of all that a run writes besides its error: as nothing is wanted, zeros stay zeros."""
        self._places: Int64 = np.zeros(2, np.int64)
        """In place of where keys end, and of where an error is."""
        nothing, places = self._nothing.ctypes.data, self._places.ctypes.data
        self._calls = (KernelShred * len(programs))(*(
            KernelShred(
                self._frame.ctypes.data, self._size.ctypes.data, 1, begin, program.address, 0, 0,
                nothing, nothing, nothing, nothing, nothing, nothing, nothing, nothing, _NO_KEYS, places,
                self._errors.ctypes.data + number, places + 8, nothing,
            )
            for number, program in enumerate(programs)
        ))  # fmt: skip

    def of(self, frame: bytes) -> Bool:
        """Return which layouts a frame may fit, `(n,)`."""
        data = np.frombuffer(frame, np.uint8)
        self._frame[0], self._size[0] = data.ctypes.data, len(frame)
        _fits()(self._calls, len(self._programs))
        found: Bool = _MAY_FIT[self._errors]
        return found
