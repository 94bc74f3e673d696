"""What a `records` field says that it holds, by the heads of its batches and messages: nothing is decompressed."""

import struct
from typing import Final, NamedTuple

from dissector.protocol.records.compression import CODEC_MASK, codec_name
from dissector.protocol.records.legacy import ATTRIBUTES_AT as OF_MESSAGE
from dissector.protocol.records.log_entries import LogEntryKind, is_one_batch, split_entries

OF_BATCH: Final = 22
"""Where a batch has the lower byte of its attributes."""
COUNT: Final = struct.Struct(">i")
COUNT_AT: Final = 57


class RecordCount(NamedTuple):
    """So many records, and the codecs of what has them."""

    records: int
    codecs: set[str]


def count_records(data: bytes) -> RecordCount:
    """Records of a field: a wrapper of messages of before 0.11 counts as one, as its head tells of no other."""
    if is_one_batch(data):
        return RecordCount(max(0, COUNT.unpack_from(data, COUNT_AT)[0]), {codec_name(data[OF_BATCH] & CODEC_MASK)})
    count = 0
    codecs: set[str] = set()
    for kind, start, _ in split_entries(data):
        if kind is LogEntryKind.BATCH:
            count += max(0, COUNT.unpack_from(data, start + COUNT_AT)[0])
            codecs.add(codec_name(data[start + OF_BATCH] & CODEC_MASK))
        elif kind is LogEntryKind.MESSAGE:
            count += 1
            codecs.add(codec_name(data[start + OF_MESSAGE] & CODEC_MASK))
    return RecordCount(count, codecs)
