"""Which `records` fields have a compressed section that does not open: such a row has a finding where it is masked, and
nothing but opening the section tells. A field with message sets, which are seldom compressed today, may have one.
"""

from typing import Final

import numpy as np

from dissector.core.arrays import Bool, Int64, UInt8, UInt64
from dissector.protocol.kernel.json_messages import compressed_sections, section_view
from dissector.protocol.records.entries import MAGIC_AT
from dissector.protocol.records.to_json import frame_budget

_MEMORY: Final = 16 << 20
"""Bytes of the largest section that is opened here. A larger one may not open."""


class UnopenedSections:
    """Opens sections, one after the other in the same memory."""

    def __init__(self) -> None:
        self._memory: UInt8 = np.empty(0, np.uint8)

    def of(self, addresses: UInt64, sizes: Int64) -> Bool:
        """Return which of the fields at these addresses, each with so many bytes, may have one, `(n,)`."""
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
                found[field] = plain is None
        return found
