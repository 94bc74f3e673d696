"""Which responses that may have records of the metadata log are shown as they are, of many at once.

Invariant: of a response that is found to be so, `masking.mask_secrets` masks nothing (a property test). Of one that is
not what it should be it masks all fields, so a reader of columns must not tell what they are.
"""

import numpy as np

from dissector.core.arrays import Bool
from dissector.exchange.body_columns import Messages
from dissector.protocol.bulk_masking import are_clean
from dissector.protocol.bulk_metadata_log import MetadataRecords
from dissector.protocol.codec.program import Part
from dissector.protocol.kernel.shredding import Arena, FrameMemory, Shredded
from dissector.protocol.message import PREFIX
from dissector.protocol.metadata_log import LARGEST


class ShownResponses:
    """Finds them; it keeps its buffers for the next ones."""

    def __init__(self) -> None:
        self._arena = Arena()
        self._records = MetadataRecords()

    def of(self, messages: Messages) -> Messages:
        """Those of some responses of which nothing is masked; of those that may name the metadata log, the ones that
        surely have no secret."""
        log = np.flatnonzero(messages.names_log)
        if not len(log):
            return messages
        shown = ~messages.names_log
        program, frames = messages.program, messages.frames.at(log)
        records = [
            number for number, column in enumerate(program.columns)
            if column.part is Part.VALUE and column.type == "records"
        ]  # fmt: skip
        for part in self._arena.shred(frames, program, program.wanted(values=records, checked=True), PREFIX):
            is_shown = are_clean(part, frames)
            for number in records:
                is_shown &= ~self._may_be_masked(part, frames, number)
            shown[log[part.first : part.stop]] = is_shown
        some = np.flatnonzero(shown)
        return messages._replace(
            at=messages.at[some], frames=messages.frames.at(some), names_log=messages.names_log[some]
        )

    def _may_be_masked(self, part: Shredded, frames: FrameMemory, number: int) -> Bool:
        """Which messages of a part may have a secret in the records of a column, `(n,)`."""
        found = np.zeros(part.stop - part.first, np.bool_)
        sizes, positions, rows = part.column(number)
        there = np.flatnonzero(sizes > 0)
        rows, sizes, positions = rows[there], sizes[there], positions[there]
        of = part.first + rows.astype(np.int64)
        is_small = frames.sizes[of] <= LARGEST
        found[rows[~is_small]] = True
        addresses = frames.addresses[of] + positions.astype(np.uint64)
        are_public = self._records.are_public(addresses[is_small], sizes[is_small])
        found[rows[is_small][~are_public]] = True
        return found
