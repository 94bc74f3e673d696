"""Compares the header of a batch with its records. Each fault is a few words; none stops decoding."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

from dissector.protocol.records.batch import Batch


def batch_faults(batch: Batch, offsets: Sequence[int], timestamps: Sequence[int]) -> Iterator[str]:
    """Yield faults of one batch; `offsets` are deltas, `timestamps` absolute.

    Compaction removes records and keeps the header's last offset and times: only records outside them are a fault.
    """
    if any(after <= before for before, after in pairwise(offsets)):
        yield "offsets of records do not increase"
    if offsets and not 0 <= min(offsets) <= max(offsets) <= batch.last_offset_delta:
        yield f"offset deltas {min(offsets)} to {max(offsets)} are outside 0 to {batch.last_offset_delta}"
    if timestamps and max(timestamps) > batch.max_timestamp:
        yield f"a record's timestamp {max(timestamps)} is past max_timestamp {batch.max_timestamp}"
    if batch.producer_id >= 0 and (batch.producer_epoch < 0 or (batch.base_sequence < 0 and not batch.is_control)):
        yield f"producer {batch.producer_id} without an epoch or a sequence"


def order_faults(ranges: Sequence[tuple[int, int]]) -> Iterator[str]:
    """Yield faults between the batches of one field; `ranges` are their first and last offsets."""
    for number, (before, after) in enumerate(pairwise(ranges), start=1):
        if after[0] <= before[1]:
            yield f"batch [{number}] begins at offset {after[0]}, the one before ends at {before[1]}"
