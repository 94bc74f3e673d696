"""Which messages of SaslAuthenticate have nothing doubtful in their token, of many at once: `masking.mask_secrets`
masks secrets in them, and none of them as a whole.

Invariant: of a message that is found to be so, whatever the mechanism is, all parts of the token are masked or clean
(a property test). A token that is not of its mechanism is masked by itself, and of one that is only texts without
control characters are shown, or such between the separators of PLAIN (RFC 4616) and OAUTHBEARER (RFC 7628).
"""

from typing import Final

import numpy as np

from dissector.core.arrays import Bool
from dissector.protocol.bulk_masking import are_clean
from dissector.protocol.codec.program import Part, Program
from dissector.protocol.kernel.json_messages import join
from dissector.protocol.kernel.shredding import Arena, FrameMemory, Shredded
from dissector.protocol.message import AUTH_BYTES, PREFIX

_SEPARATORS: Final = (0, 1)
_IS_DOUBTFUL: Final = np.array([not (0x20 <= byte <= 0x7E or byte in _SEPARATORS) for byte in range(256)])


class CleanTokens:
    """Finds them; it keeps its buffers for the next ones."""

    def __init__(self) -> None:
        self._arena = Arena()

    def of(self, frames: FrameMemory, program: Program) -> Bool:
        """Which of some whole messages of one layout surely are not masked as a whole, `(n,)`."""
        found = np.zeros(len(frames), np.bool_)
        [tokens] = [
            number for number, column in enumerate(program.columns)
            if column.part is Part.VALUE and column.name == AUTH_BYTES
        ]  # fmt: skip
        for part in self._arena.shred(frames, program, program.wanted(values=[tokens], checked=True), PREFIX):
            found[part.first : part.stop] = are_clean(part, frames) & ~_are_doubtful(part, frames, tokens)
        return found


def _are_doubtful(part: Shredded, frames: FrameMemory, tokens: int) -> Bool:
    """Which messages of a part have other bytes in their token than those of text and separators, `(n,)`."""
    found = np.zeros(part.stop - part.first, np.bool_)
    sizes, positions, rows = part.column(tokens)
    some = np.flatnonzero(sizes > 0)
    sizes, positions, rows = sizes[some], positions[some], rows[some].astype(np.int64)
    if len(some):
        data = join(frames.addresses[part.first + rows] + positions.astype(np.uint64), sizes)
        found[rows[np.add.reduceat(_IS_DOUBTFUL[data], np.cumsum(sizes) - sizes, dtype=np.int64) > 0]] = True
    return found
