"""Which of many layouts one frame may fit: the native kernel reads it along each to its last byte, and keeps nothing.

Invariant: a layout that the reader in Python reads to the last byte is among them.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np

from dissector.core.arrays import Bool, Int64, UInt8, UInt64
from dissector.core.kernel import kernel_function
from dissector.protocol.codec.program import Program
from dissector.protocol.kernel.shredding import KernelShred, ShredError

_fits = kernel_function("fits", "Pq")
_NO_KEYS: Final = 0
_MAY_FIT: Final = np.isin(np.arange(256), (ShredError.NONE, ShredError.REPEATED_TAG, ShredError.TOO_DEEP))
"""By error: repeated tags and many levels are what the reader reads, and the kernel does not."""


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
