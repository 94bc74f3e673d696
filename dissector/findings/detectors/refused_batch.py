"""Batches that a broker refused, with what their bytes show of the reason: the errors by themselves name several, and
some of them blame the network for what the producer wrote."""

from collections.abc import Iterator
from typing import ClassVar, Final

import numpy as np

from dissector.core.arrays import Bool, Int64
from dissector.core.columns import is_in
from dissector.core.finding import Finding, Severity
from dissector.core.text import counted
from dissector.findings.explanation import Explanation
from dissector.findings.framework.detector import MessageDetector
from dissector.findings.framework.read_fields import ReadFields
from dissector.protocol.records.batch import Batch
from dissector.protocol.records.compression import DecompressionError
from dissector.protocol.records.entries import RecordsEntryKind, split_entries
from dissector.protocol.records.format_rules import ZSTD_SINCE, inner_offset_words, newest_magic
from dissector.protocol.records.legacy import LegacyRecord
from dissector.protocol.records.to_json import frame_budget
from dissector.protocol.schema.api_keys import ApiKey
from dissector.protocol.schema.error_codes import ErrorCode
from dissector.protocol.schema.errors import error_name
from dissector.protocol.schema.field_enums import CompressionType
from dissector.protocol.wire import WireError

INVALID: Final = (ErrorCode.CORRUPT_MESSAGE, ErrorCode.INVALID_RECORD)
"""Errors that mean anything from a wrong checksum to a record without a key."""
FORMAT: Final = (ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
UNKNOWN: Final = (ErrorCode.UNKNOWN_SERVER_ERROR,)
"""Brokers fail with it on record headers in a topic of an old message format."""
SIZE: Final = (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE)
_EXAMINED: Final = np.array([*INVALID, *FORMAT, *UNKNOWN, *SIZE], np.int64)
_ERROR: Final = "response.responses.partition_responses.error_code"
_RECORDS: Final = "request.topic_data.partition_data.records"
_SENT: Final = ("request.topic_data.name", "request.topic_data.topic_id", "request.topic_data.partition_data.index")
_GOT: Final = (
    "response.responses.name", "response.responses.topic_id", "response.responses.partition_responses.index",
)  # fmt: skip


def _is_examined(codes: Int64) -> Bool:
    return is_in(codes, _EXAMINED)


class RefusedBatch(MessageDetector):
    """Finds what is wrong, or special, with a batch that was refused."""

    explanation: ClassVar = Explanation(
        "refused-batch",
        "Why a batch was refused",
        Severity.ERROR,
        "The broker refused the records of a partition, and their bytes show a reason: a magic, codec or checksum that "
        "does not belong to the request's version, inner offsets that are not relative, a record without a key, a "
        "feature that a topic of an old message format lacks, or their size.",
        "CORRUPT_MESSAGE stands for much more than damage. Brokers before 2.4 respond with it to a record without a "
        "key for a topic with cleanup.policy=compact, as newer ones do with INVALID_RECORD; brokers of any age to a "
        'batch that the client wrote wrongly. Where the message says "may", the bytes are right, and the reason is '
        "the topic's configuration.",
        "Correct the client as the message says, or configure the broker's version in it. Give records of compacted "
        "topics a key. Azure Event Hubs take no compressed batches in some tiers: set compression.type=none.",
    )
    apis: ClassVar = frozenset((ApiKey.PRODUCE,))
    reads: ClassVar = {_ERROR: _is_examined, _RECORDS: None, **dict.fromkeys((*_SENT, *_GOT))}

    def find(self, fields: ReadFields) -> Iterator[Finding]:
        """One for each partition with such an error and a reason."""
        sent = {key: (path, data) for key, path, data in _partitions(fields, _RECORDS, _SENT)}
        for key, _, error in _partitions(fields, _ERROR, _GOT):
            path, data = sent.get(key, ("", b""))
            if isinstance(error, int) and error in _EXAMINED and isinstance(data, bytes) and data:
                words = _reason(error, fields.version, data)
                if words:
                    yield self.finding(f"{error_name(error)}: {words}", path)


def _partitions(
    fields: ReadFields, value: str, names: tuple[str, str, str]
) -> Iterator[tuple[tuple[object, object], str, object]]:
    """Yield the topic's name or id with the number of each partition, and a field of it with its path."""
    by_topic = {path.rpartition(".")[0]: topic for name in names[:2] for path, topic in fields.places(name)}
    numbers = {path.rpartition(".")[0]: number for path, number in fields.places(names[2])}
    for path, each in fields.places(value):
        partition = path.rpartition(".")[0]
        yield (by_topic.get(partition.rpartition(".")[0]), numbers.get(partition)), path, each


def _reason(error: int, version: int, data: bytes) -> str:
    """What the records of a partition show of why they were refused; empty for nothing."""
    if error in SIZE:
        return (
            f"the records are {counted(len(data), 'byte')}: send smaller batches (max.request.size, batch.size), or "
            "raise max.message.bytes of the topic and message.max.bytes of the broker"
        )
    entries = [*split_entries(data)]
    if not entries or entries[0].kind not in (RecordsEntryKind.BATCH, RecordsEntryKind.MESSAGE):
        return ""
    first = data[entries[0].start : entries[0].end]
    try:
        if entries[0].kind is RecordsEntryKind.MESSAGE:
            return _of_message(error, version, first)
        return _of_batches(error, version, first, len(entries))
    except (WireError, DecompressionError):
        return "" if error in UNKNOWN else "its records can't be read"


def _of_message(error: int, version: int, data: bytes) -> str:
    message = LegacyRecord.read(data)
    newest = newest_magic("Produce", version)
    if message.magic > newest:
        return _too_new(message.magic, version, newest)
    if error not in INVALID:
        return ""
    if not message.crc_valid:
        return "the checksum is not that of the message's bytes"
    words = inner_offset_words(data, is_produced=True)
    if words:
        return f"{words} (KIP-31): correct the client, or send without compression"
    return _WITHOUT_KEY if message.key is None and not message.codec else ""


def _too_new(magic: int, version: int, newest: int) -> str:
    return (
        f"records of magic {magic} in Produce v{version}, which has magic {newest} at most: the client writes a format "
        "that is newer than the version of its request"
    )


_WITHOUT_KEY: Final = (
    "a record has no key, and all else fits: the topic may have cleanup.policy=compact, which needs keys"
)


def _of_batches(error: int, version: int, data: bytes, count: int) -> str:
    batch = Batch.read(data)
    newest = newest_magic("Produce", version)
    if newest < batch.magic:
        return _too_new(batch.magic, version, newest)
    if batch.codec == CompressionType.ZSTD and version < ZSTD_SINCE:
        return f"zstd in Produce v{version}, which brokers take from v{ZSTD_SINCE} on (KIP-110): use another codec"
    if error in INVALID:
        return _of_invalid(batch, count)
    return _of_format(error, batch)


def _of_invalid(batch: Batch, count: int) -> str:
    if batch.is_masked:
        return ""
    if not batch.crc_valid:
        return "the checksum is not that of the batch's bytes, already here: look at the producer, not behind it"
    if count > 1:
        return f"{count:,} batches for one partition, and Produce takes one"
    if batch.records_count <= 0 or batch.last_offset_delta != batch.records_count - 1:
        return f"last_offset_delta is {batch.last_offset_delta:,} of {counted(batch.records_count, 'record')}"
    if any(record.key is None for record in batch.records(frame_budget())):
        return _WITHOUT_KEY
    return ""


def _of_format(error: int, batch: Batch) -> str:
    """What of a batch a topic of an old message format, or a service, does not take."""
    if error in UNKNOWN:
        has_headers = any(record.headers for record in batch.records(frame_budget()))
        return f"a record has headers, and a topic of {_OLD_FORMAT}" if has_headers else ""
    if batch.producer_id >= 0 and error == ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT:
        return f"the batch has a producer id (enable.idempotence, transactional.id), and a topic of {_OLD_FORMAT}"
    if batch.codec == CompressionType.NONE:
        return ""
    return (
        f"the batch is compressed ({batch.compression}): the broker may not take that, as Azure Event Hubs do not in "
        "some tiers; set compression.type=none"
    )


_OLD_FORMAT: Final = "a message format before 0.11 (log.message.format.version) takes none: it may be one"
