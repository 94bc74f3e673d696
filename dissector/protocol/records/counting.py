"""Counts the records of `records` fields by the headers of their batches and messages, without decompression.

Invariant: `count_at` gives for each of its fields what `count_records` gives (a property test).
"""

import struct
from typing import Final, NamedTuple

import numpy as np

from dissector.core.arrays import Int64, UInt8, UInt64
from dissector.core.kernel import kernel_function
from dissector.protocol.records.compression import CODEC_MASK, codec_name
from dissector.protocol.records.entries import RecordsEntryKind, is_one_batch, split_entries
from dissector.protocol.records.legacy import ATTRIBUTES_AT as OF_MESSAGE

_kernel = kernel_function("count_records", "PqPPqPP")
OF_BATCH: Final = 22
"""Offset of the lower byte of a batch's attributes."""
COUNT: Final = struct.Struct(">i")
COUNT_AT: Final = 57


class RecordCount(NamedTuple):
    """A number of records, and the codecs of their batches."""

    records: int
    codecs: set[str]


def count_records(data: bytes) -> RecordCount:
    """Count the records of a field. A wrapper message (magic 0, 1) counts as one, as its header has no count."""
    if is_one_batch(data):
        return RecordCount(max(0, COUNT.unpack_from(data, COUNT_AT)[0]), {codec_name(data[OF_BATCH] & CODEC_MASK)})
    count = 0
    codecs: set[str] = set()
    for kind, start, _ in split_entries(data):
        if kind is RecordsEntryKind.BATCH:
            count += max(0, COUNT.unpack_from(data, start + COUNT_AT)[0])
            codecs.add(codec_name(data[start + OF_BATCH] & CODEC_MASK))
        elif kind is RecordsEntryKind.MESSAGE:
            count += 1
            codecs.add(codec_name(data[start + OF_MESSAGE] & CODEC_MASK))
    return RecordCount(count, codecs)


class RecordCounts(NamedTuple):
    """Of many fields, an element each."""

    records: Int64
    codecs: UInt8
    """A bit for the number of each codec: 1 is none, 2 gzip."""


def count_at(addresses: UInt64, sizes: Int64) -> RecordCounts:
    """Count the records of fields that are in memory at these addresses, `(n,)`, natively. The size of null is
    negative. The caller keeps that memory."""
    counts = RecordCounts(np.empty(len(sizes), np.int64), np.empty(len(sizes), np.uint8))
    if len(sizes):
        first = int(addresses.min())
        starts = (addresses - np.uint64(first)).astype(np.int64)
        ends = starts + sizes
        arrays = starts.ctypes.data, ends.ctypes.data, len(sizes), counts.records.ctypes.data, counts.codecs.ctypes.data
        _kernel()(first, int(ends.max()), *arrays)
    return counts


def codec_names(bits: int) -> set[str]:
    """Return the names of the codecs whose bits are set."""
    return {codec_name(codec) for codec in range(CODEC_MASK + 1) if bits >> codec & 1}
