"""Why the other side can't read a message: it does not fit its layout. Of many requests at once, which ones surely fit:
nearly all do, and a broker that closed the connection did so for another reason.

Invariant: a request that is found to fit has no `message_faults` when it is decoded (a property test).
"""

from typing import Final

import numpy as np

from dissector.bulk.body_columns import BodyColumns
from dissector.bulk.body_fields import BodyFields, OfBodies
from dissector.core.arrays import Bool, Int64
from dissector.core.finding import Finding, Severity
from dissector.core.store import Store
from dissector.exchange.model import ExchangeMessage
from dissector.index.indexer import Indexer
from dissector.protocol.kernel.shredding import Arena
from dissector.protocol.masked_reasons import MALFORMED, TRAILING
from dissector.protocol.message_layout import PREFIX
from dissector.protocol.misplaced_tags import misplaced_tags

MISPLACED_TAG: Final = "misplaced-tag"


def message_faults(message: ExchangeMessage) -> list[Finding]:
    """Return the findings of a message that was captured in full, with paths in the message: it does not fit its
    layout, has bytes behind it, or tags outside their versions."""
    found = [each for each in message.decoded.findings if each.code in (MALFORMED, TRAILING)]
    for tag in misplaced_tags(message.layout, message.body):
        path = f"body.{tag.path}" if tag.path else "body"
        found.append(Finding(MISPLACED_TAG, Severity.ERROR, tag.words, path))
    return found


class FittingRequests:
    """Of one capture, which may still grow. What a checkpoint has of it are its arguments."""

    def __init__(self, index: Indexer, store: Store) -> None:
        self._arguments = index, store
        self._bodies = BodyColumns(index, store, show_secrets=True)  # nothing is shown of them
        self._fields = BodyFields(self._bodies)
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

    def numbers(self, rows: Int64, name: str) -> OfBodies:
        """Return the number of this name that stands alone in the bodies of these requests: there in those that surely
        fit."""
        found = self._fields.numbers(rows, (name,), is_request=True)[name]
        return found._replace(is_there=found.is_there & self.of(rows))
