"""Responses with records of the metadata log that surely have no secret: nearly all of them, as brokers fetch that log
again and again, and few of its records hold one.

Invariant: of a response that is found to be so, tracing would mask nothing (a property test). Whatever is rare (records
that are compressed, have headers, or may hold secrets; numbers that are no times) is left to the trace, which decides.
"""

from typing import Final

from dissector.core import limits
from dissector.protocol.codec.reader import UNKNOWN_TAGS
from dissector.protocol.embedded.context import DecodingContext
from dissector.protocol.embedded.formats import FORMATS
from dissector.protocol.embedded.messages import EmbeddedMessages
from dissector.protocol.embedded.secrets import (
    CARRIERS_BY_NAME,
    SECRET_CARRIERS,
    SECRET_FIELDS,
    is_secret,
    is_time,
    is_unclean,
    may_name_metadata_log,
)
from dissector.protocol.embedded.topics import CLUSTER_METADATA, INTERNAL_TOPICS, RECORDS_FIELDS, control_record
from dissector.protocol.masked_reasons import is_of_end
from dissector.protocol.message import Decoded, read
from dissector.protocol.message_layout import MessageLayout
from dissector.protocol.records.batch import Batch, read_records
from dissector.protocol.records.entries import RecordsEntryKind, split_entries
from dissector.protocol.wire import WireError

LARGEST: Final = limits.DEFAULT.tree_nodes // 8
"""Bytes of a frame that surely has no more nodes, and no more records, than a tree may have."""
_METADATA: Final = INTERNAL_TOPICS[CLUSTER_METADATA]


def without_secrets(data: bytes, layout: MessageLayout, context: DecodingContext) -> Decoded | None:
    """Return the values of a whole response that fetches the metadata log; None if it may have a secret, or is none."""
    body = layout.body or ""
    is_fetched = body == "FetchResponse" and context.fetches_metadata
    if not (is_fetched or body == "FetchSnapshotResponse") or len(data) > LARGEST:
        return None
    decoded = read(data, layout)
    if decoded.findings or decoded.rest or not _are_clean(decoded.header, decoded.body):
        return None
    topics, partitions, records = RECORDS_FIELDS[body].split(".")
    for topic in _list(decoded.body.get(topics)):
        for partition in _list(topic.get(partitions)):
            raw = partition.get(records)
            if raw and not _have_no_secrets(raw):
                return None
    return decoded


def is_of_other_topics(
    data: bytes, layout: MessageLayout, end: int, context: DecodingContext, *, is_whole: bool
) -> bool:
    """Whether a message with records was read to its end, or as far as it is there, and neither its topics nor those of
    its request may be the metadata log. What looks like the log's topic id is in its records, or is numbers, then."""
    if layout.body not in CARRIERS_BY_NAME or layout.unread is not None or context.fetches_metadata:
        return False
    decoded = read(data, layout, end)
    if is_whole and (decoded.findings or decoded.rest):
        return False
    if not is_whole and (CLUSTER_METADATA.encode() in data or not all(map(is_of_end, decoded.findings))):
        return False
    body = decoded.body or decoded.partial
    topics = body.get(RECORDS_FIELDS[layout.body].partition(".")[0])
    is_there = is_whole or bool(topics)
    return is_there and _are_clean(decoded.header, body, has_times=False) and not may_name_metadata_log(topics)


def _list(values: object) -> list[dict[str, bytes]]:
    return values if isinstance(values, list) else []


def _are_clean(*values: object, has_times: bool = True) -> bool:
    """Whether nothing in values is doubtful (`secrets.is_clean`). If it `has_times`, numbers of all sizes are held to
    be some."""
    rest = list(values)
    while rest:
        value = rest.pop()
        if isinstance(value, dict):
            if UNKNOWN_TAGS in value:
                return False
            rest += value.values()
        elif isinstance(value, list):
            rest += value
        elif isinstance(value, str):
            if is_unclean(value):
                return False
        elif has_times and isinstance(value, int) and not is_time(value):
            return False
    return True


def _have_no_secrets(data: bytes) -> bool:
    """Whether a `records` field has batches of the metadata log without secrets, and nothing else."""
    for kind, start, end in split_entries(data):
        if kind is not RecordsEntryKind.BATCH:
            return False
        batch = Batch.read(data[start:end])
        times = batch.base_offset, batch.base_timestamp, batch.max_timestamp, batch.producer_id
        if batch.codec or batch.is_masked or not batch.crc_valid or not all(map(is_time, times)):
            return False
        try:
            records = read_records(batch.section, batch)
        except WireError:
            return False
        form = control_record if batch.is_control else _METADATA
        for record in records:
            found = form(record.key, record.value)
            if record.headers or not _is_opened(record.value, found.value):
                return False
            if batch.is_control and not _is_opened(record.key, found.key):
                return False
    return True


def _is_opened(raw: bytes | None, found: EmbeddedMessages | None) -> bool:
    """Whether bytes have messages without secrets, or there are none."""
    if not raw:
        return True
    values = None if found is None else found.read(raw)
    if found is None or values is None or not _are_clean(values):
        return False
    names = [each.message for each in found.messages]
    if any(name in FORMATS or name in SECRET_CARRIERS for name in names):
        return False
    return not any(
        is_secret(field, values.get(field), [values]) for name in names for field in SECRET_FIELDS.get(name, ())
    )
