"""Counts the records of a `records` field by the headers of its batches and messages, without decompression."""

import struct
from typing import Final, NamedTuple

from dissector.protocol.records.compression import CODEC_MASK, codec_name
from dissector.protocol.records.entries import RecordsEntryKind, is_one_batch, split_entries
from dissector.protocol.records.legacy import ATTRIBUTES_AT as OF_MESSAGE

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
