"""Which requests surely fit their layout, of many at once: nearly all do, and a broker that closed the connection did
so for another reason.

Invariant: a request that is found to fit has no `message_faults` when it is decoded (a property test).
"""

import numpy as np

from dissector.bulk.body_columns import BodyColumns
from dissector.core.arrays import Bool, Int64
from dissector.core.store import Store
from dissector.index.indexer import Indexer
from dissector.protocol.kernel.shredding import Arena
from dissector.protocol.message import PREFIX


class FittingRequests:
    """Of one capture, which may still grow. What a checkpoint has of it are its arguments."""

    def __init__(self, index: Indexer, store: Store) -> None:
        self._arguments = index, store
        self._bodies = BodyColumns(index, store, show_secrets=True)  # nothing is shown of them
        self._arena = Arena()

    def __getstate__(self) -> tuple[Indexer, Store]:
        return self._arguments

    def __setstate__(self, arguments: tuple[Indexer, Store]) -> None:
        FittingRequests.__init__(self, *arguments)

    def of(self, rows: Int64) -> Bool:
        """Return which requests of these rows of the index are read to their end, with clean texts, times that are
        some, and no tags that their version does not have."""
        found = np.zeros(len(rows), np.bool_)
        for messages in self._bodies.messages(rows, is_request=True):
            wanted = messages.program.wanted(checked=True)
            for part in self._arena.shred(messages.frames, messages.program, wanted, PREFIX):
                found[messages.at[part.first : part.stop]] = (part.errors == 0) & (part.unclean == 0)
        return found
