"""Compressed sections of many messages: decompressed in one memory, which is used again and again, or opened to see
what holds of them.

Invariant: the sections of a message are what a `DecompressionBudget` of its own allows, or are left out.
"""

from collections.abc import Callable
from typing import Final

import numpy as np

from dissector.core.arrays import Bool, Int64, UInt8, UInt64
from dissector.protocol.kernel.json_messages import Sections, compressed_sections, section_view
from dissector.protocol.records.compression import DecompressionBudget, DecompressionError
from dissector.protocol.records.entries import MAGIC_AT
from dissector.protocol.records.to_json import frame_budget

MOST_BYTES: Final = 8 << 20
"""Decompressed bytes that are held together, and twice the largest section that is decompressed in place."""


class DecompressedSections:
    """The sections of some messages, in the order of the wire."""

    def __init__(self) -> None:
        self._memory: UInt8 = np.empty(0, np.uint8)
        self._address = 0
        self.clear()

    def clear(self) -> None:
        """Forget all sections."""
        self._filled = self._held = 0
        self._first, self._addresses, self._sizes = [0], list[int](), list[int]()
        self._elsewhere: list[UInt8] = []
        """Those that are not in the memory, of `_held` bytes."""

    @property
    def is_full(self) -> bool:
        """Whether others should wait until these are forgotten."""
        return self._filled + self._held >= MOST_BYTES // 2

    def add(self, sections: list[tuple[int, memoryview]]) -> bool:
        """Decompress those of a message, given by codec; return whether all could be."""
        if not len(self._memory):
            self._memory = np.empty(MOST_BYTES, np.uint8)
            self._address = self._memory.ctypes.data
        budget, count, filled = frame_budget(), len(self._sizes), self._filled
        try:
            for codec, section in sections:
                self._add(codec, section, budget)
        except DecompressionError:
            del self._addresses[count:], self._sizes[count:]
            self._filled = filled
            return False
        self._first.append(len(self._sizes))
        return True

    def _add(self, codec: int, section: memoryview, budget: DecompressionBudget) -> None:
        """Decompress a section. Raises `DecompressionError`."""
        size = budget.decompressed_into(codec, section, self._memory[self._filled :])
        if size is None:
            plain = np.frombuffer(budget.decompressed(codec, bytes(section)), np.uint8)
            self._elsewhere.append(plain)
            self._held += len(plain)
            address, size = plain.ctypes.data, len(plain)
        else:
            address = self._address + self._filled
            self._filled += size
        self._addresses.append(address)
        self._sizes.append(size)

    def sections(self) -> Sections:
        """All sections, by message."""
        return Sections(
            np.array(self._first, np.int64), np.array(self._addresses, np.uint64), np.array(self._sizes, np.int64),
            (self._memory, *self._elsewhere),
        )  # fmt: skip


_MEMORY: Final = 8 << 20
"""Bytes of the largest section that is opened here. A larger one may not open."""


class SectionFilter:
    """Which `records` fields have a compressed section of which something holds that only opening it tells."""

    def __init__(self, holds: Callable[[memoryview | None], bool]) -> None:
        """`holds` gets the decompressed bytes of a section, valid for now; None if it does not open."""
        self._holds = holds
        self._memory: UInt8 = np.empty(0, np.uint8)

    def of(self, addresses: UInt64, sizes: Int64) -> Bool:
        """Return which of the fields at these addresses, each with so many bytes, may have one, `(n,)`: also those with
        message sets, which are seldom compressed today and not opened here."""
        magics = [section_view(at + MAGIC_AT, 1)[0] for at in addresses[sizes > MAGIC_AT].tolist()]
        found = np.zeros(len(addresses), np.bool_)
        found[sizes > MAGIC_AT] = np.array(magics, np.uint8) < 2
        sections = compressed_sections(addresses, sizes)
        if len(sections.field) and not len(self._memory):
            self._memory = np.empty(_MEMORY, np.uint8)
        places = zip(*(column.tolist() for column in sections), strict=True)
        for field, codec, address, size in places:
            if not found[field]:
                plain = frame_budget().decompressed_into(codec, section_view(address, size), self._memory)
                found[field] = self._holds(self._memory[:plain].data if plain is not None else None)
        return found
