"""The batches of a capture's Produce requests, `(n,)`, in the order of the requests, for proofs by columns."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from dissector.bulk.single_batches import SingleBatchColumns
from dissector.core.arrays import Bool, Int64
from dissector.protocol.kernel.shredding import numbered_rows
from dissector.protocol.records.batch import NO_PRODUCER, Batch
from dissector.protocol.records.entries import RecordsEntryKind, split_entries


def batches_in(data: bytes) -> list[Batch]:
    """Return the whole batches of a `records` field."""
    return [
        Batch.read(data[entry.start : entry.end])
        for entry in split_entries(data)
        if entry.kind is RecordsEntryKind.BATCH
    ]


class BatchColumns(NamedTuple):
    """Batches that are alone in their `records` fields."""

    is_odd: Bool
    """By exchange, whether its request has batches of producers or transactions, but can't be read in columns, or has
    others beside them: they are not here."""
    columns: SingleBatchColumns
    """By the place of their exchange."""

    @property
    def of_producers(self) -> "BatchColumns":
        """Those with a producer id."""
        return self._replace(columns=self.columns.where(self.columns.producer_id != NO_PRODUCER))

    def kept(
        self, keys: tuple[Int64, ...], follows: Callable[[SingleBatchColumns, Bool], Bool],
        breaks: Bool, *, counts_first: bool,
    ) -> tuple[Int64, Bool]:  # fmt: skip
        """How many verdicts the batches of each exchange are worth, `(e,)`, if each one `follows` those before it of
        its key, which it is asked of all batches, key by key, with the first ones of keys; and the exchanges that must
        be looked at: all of the keys of one that does not, or that `breaks` the rule by itself, and odd ones."""
        at = self.columns.at
        kept = np.zeros(len(self.is_odd), np.int64)
        is_open = self.is_odd.copy()
        if not len(at):
            return kept, is_open
        key = numbered_rows(*keys)[0].astype(np.int64)
        order = np.argsort(key, kind="stable")
        is_first = np.diff(key[order], prepend=-1) != 0
        fits = follows(self.columns.where(order), is_first)
        says = np.ones(len(key), np.bool_)
        says[order] = counts_first | ~is_first
        is_open[at[order[~fits]]] = True
        is_open[at[breaks]] = True
        is_open |= self.is_odd.any()  # whose keys are unknown
        while not is_open[at].all():  # what shares a key with one that is looked at is looked at, too
            with_key = np.isin(key, key[is_open[at]])
            if is_open[at[with_key]].all():
                break
            is_open[at[with_key]] = True
        np.add.at(kept, at[says], 1)
        return kept, is_open
