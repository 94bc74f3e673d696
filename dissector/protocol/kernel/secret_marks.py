"""Whether bytes of records may hold a secret, by the native kernel (`secrets.c`): a cheap test before a closer look.

Invariant: it says yes of all bytes in which `embedded.record_secrets` finds one (a property test), and of few others.
"""

import ctypes
from collections.abc import Sequence
from functools import cache
from itertools import product
from math import prod
from typing import Final

import numpy as np

from dissector.core.arrays import Bool, Int64, UInt8, UInt64
from dissector.core.kernel import kernel_function, structure_fields
from dissector.protocol.embedded.secret_names import MARKS, WORDS
from dissector.protocol.kernel.piece_tests import pass_test

_may_hold = kernel_function("may_hold_secrets", "PPqPP")
_BITS: Final = 5
_LOWEST: Final = (1 << _BITS) - 1
_ANY: Final = range(_LOWEST + 1)
_WINDOW: Final = 4
_OFTEN: Final = dict(zip("etaoinsrhldcumfpgwybvkxjqz", range(26, 0, -1), strict=True))
"""How often a letter is met in texts, the greatest first."""
SECRET_MARKS: Final = """
const uint8_t *sets;  /* by the lowest five bits of three bytes: the set of marks that may be there, 0 for none */
const int64_t *first; /* by set, the first of its members, and where the last one ends */
const KernelSecretMark *members;
const uint8_t *text; /* of marks, in small letters; 0 is any byte */
"""
"""What names of secrets contain: `KernelSecretMarks` of kernel.h."""


class _Call(ctypes.Structure):
    """As `SECRET_MARKS`."""

    _fields_ = structure_fields(SECRET_MARKS)


class SecretMarks:
    """The marks, in memory of the kernel's form."""

    def __init__(self) -> None:
        starts = np.cumsum([0, *map(len, MARKS)]).tolist()
        by_bits: dict[int, list[tuple[int, int, int, bool]]] = {}
        for mark, start in zip(MARKS, starts, strict=False):
            window = min(range(len(mark) - _WINDOW + 1), key=lambda at: _frequency(mark[at : at + _WINDOW]))
            for before in (window, window + 1):
                for one, two, three in product(*(_folded(byte) for byte in mark[before : before + 3])):
                    bits = one | two << _BITS | three << 2 * _BITS
                    by_bits.setdefault(bits, []).append((before, start, len(mark), mark in WORDS))
        sets = {members: number for number, members in enumerate(sorted({*map(tuple, by_bits.values())}), 1)}
        self._sets: UInt8 = np.zeros(1 << 3 * _BITS, np.uint8)
        for bits, members in by_bits.items():
            self._sets[bits] = sets[tuple(members)]
        self._first: Int64 = np.cumsum([0, 0, *map(len, sets)])
        self._members: Int64 = np.array([each for members in sets for each in members], np.int64)
        self._text: UInt8 = np.frombuffer(b"".join(MARKS), np.uint8)
        self._call = _Call(*(each.ctypes.data for each in (self._sets, self._first, self._members, self._text)))
        self.address = ctypes.addressof(self._call)

    def are_near(self, addresses: UInt64, sizes: Int64) -> Bool:
        """Return which of the pieces at these addresses may hold a secret, `(n,)`."""
        return pass_test(_may_hold(), addresses, sizes, self.address)

    def is_near(self, data: bytes) -> bool:
        """Whether bytes may hold one."""
        memory = np.frombuffer(data, np.uint8)
        return bool(self.are_near(np.array([memory.ctypes.data], np.uint64), np.array([len(data)]))[0])


def _frequency(window: bytes) -> int:
    """How often the three bytes are met that a window begins or ends with: by this it is chosen."""
    often = [_OFTEN.get(chr(byte), 4) if byte else 1 << 5 for byte in window]
    return prod(often[:3]) + prod(often[1:])


def _folded(byte: int) -> Sequence[int]:
    return _ANY if byte == 0 else (byte & _LOWEST,)


@cache
def secret_marks() -> SecretMarks:
    """The marks of all names."""
    return SecretMarks()
