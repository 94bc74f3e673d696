"""The columns of the tables `batches` and `records`, without those of the exchange that carried them; and pieces of the
records that many rows carry, joined: a reader yields one for each layout of messages, and to make columns of Arrow of a
few records takes as long as of thousands."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from dissector.bulk.record_columns import CarriedColumns
from dissector.core.arrays import Bool, Int64
from dissector.core.grouping import gathered
from dissector.pipeline import record_rows
from dissector.protocol.records.batch import CONTROL, HEADER, LOG_APPEND_TIME, NO_SEQUENCE, SEQUENCES, TRANSACTIONAL
from dissector.protocol.records.columns import RecordColumns, column
from dissector.protocol.records.compression import CODEC_MASK, CODECS
from dissector.tables.arrow_types import chosen

Columns = dict[str, pa.Array]
_CODECS: Final = [CODECS[each].name for each in range(len(CODECS))]
_TIMESTAMP_TYPES: Final = ("CreateTime", "LogAppendTime")


def batch_columns(carried: CarriedColumns, is_batch: Bool) -> Columns:
    """The columns of those entries that are batches."""
    entries = carried.records.entries[is_batch]
    attributes, base = column(entries, "attributes"), column(entries, "base_offset")
    delta = column(entries, "last_offset_delta")
    with np.errstate(over="ignore"):
        last = base + delta
    is_wide = (last < base) != (delta < 0)

    def of(name: str, kind: pa.DataType) -> pa.Array:
        return pa.array(entries[name].copy(), kind)

    return {
        "topic": _topics(carried, is_batch), "partition": pa.array(carried.partition[is_batch], pa.int32()),
        "base_offset": of("base_offset", pa.int64()), "last_offset": pa.array(last, mask=is_wide),
        "record_count": of("records_count", pa.int64()),
        "size": pa.array(column(entries, "end") - column(entries, "start")),
        "uncompressed_size": pa.array(column(entries, "section_end") - column(entries, "section_start") + HEADER.size),
        "codec": chosen(_CODECS, attributes & CODEC_MASK),
        "timestamp_type": chosen(_TIMESTAMP_TYPES, (attributes & LOG_APPEND_TIME != 0).astype(np.int64)),
        "first_timestamp_ms": of("base_timestamp", pa.int64()), "max_timestamp_ms": of("max_timestamp", pa.int64()),
        "producer_id": of("producer_id", pa.int64()), "producer_epoch": of("producer_epoch", pa.int32()),
        "base_sequence": of("base_sequence", pa.int32()), "transactional": pa.array(attributes & TRANSACTIONAL != 0),
        "control": pa.array(attributes & CONTROL != 0), "crc_valid": pa.array(carried.crc_valid[is_batch]),
        "error": pa.nulls(len(entries), pa.string()),
    }  # fmt: skip


def _topics(carried: CarriedColumns, entries: Int64 | Bool) -> pa.Array:
    """The topics of entries."""
    return chosen([topic or None for topic in carried.topics], carried.topic_number[entries].astype(np.int64))


def record_columns(carried: CarriedColumns, *, keeps_contents: bool = True) -> Columns:
    """The columns of records and of their batches, with their contents or with digests of them. Raises `ArrowInvalid`
    if a header's name is not UTF-8."""
    records, entries = carried.records, carried.records.entries
    batch = records.entry

    def of_batch(name: str, kind: pa.DataType) -> pa.Array:
        return pa.array(entries[name][batch], kind)

    first = column(entries, "base_sequence")[batch]
    sequence = (first + records.offset - column(entries, "base_offset")[batch]) % SEQUENCES
    return {
        "topic": _topics(carried, batch),
        "partition": pa.array(carried.partition[batch], pa.int32()), "offset": _numbers(records.offset),
        "timestamp_ms": _numbers(records.timestamp), **_keys_and_values(records, keeps_contents=keeps_contents),
        "key_size": _sizes(records.key_size), "value_size": _sizes(records.value_size),
        "headers": _headers(carried, keeps_contents=keeps_contents),
        "producer_id": of_batch("producer_id", pa.int64()), "producer_epoch": of_batch("producer_epoch", pa.int32()),
        "sequence": pa.array(np.where(first < 0, NO_SEQUENCE, sequence), pa.int32()),
        "codec": chosen(_CODECS, entries["attributes"][batch] & CODEC_MASK),
        "control": pa.array(entries["attributes"][batch] & CONTROL != 0),
    }  # fmt: skip


def _keys_and_values(records: RecordColumns, *, keeps_contents: bool) -> Columns:
    """The columns of keys and values, or of their digests; the others are null."""
    columns: Columns = {}
    for name, starts, sizes in (("key", records.key, records.key_size), ("value", records.value, records.value_size)):
        nothing, content = pa.nulls(len(sizes), pa.binary()), _contents(records.data, starts, sizes)
        digests = nothing if keeps_contents else pa.array(record_rows.sha256(content.to_pylist()), pa.binary())
        columns |= {name: content if keeps_contents else nothing, f"{name}_sha256": digests}
    return columns


def _headers(carried: CarriedColumns, *, keeps_contents: bool) -> pa.Array:
    records = carried.records
    ends = np.append(0, np.cumsum(records.headers)).astype(np.int32)
    names = _contents(records.data, records.header_key, records.header_key_size).cast(pa.string())
    values = (
        _contents(records.data, records.header_value, records.header_value_size)
        if keeps_contents
        else pa.nulls(len(names), pa.binary())
    )
    return pa.ListArray.from_arrays(ends, pa.StructArray.from_arrays([names, values], ["key", "value"]))


def _contents(data: Any, starts: Int64, sizes: Int64) -> pa.Array:
    """Contents in a buffer; null where a size is negative."""
    found = gathered(data, starts, sizes)
    there = np.packbits(sizes >= 0, bitorder="little")
    return pa.BinaryArray.from_buffers(
        pa.binary(), len(sizes), [pa.py_buffer(there), pa.py_buffer(found.offsets), pa.py_buffer(found.data)]
    )


def _numbers(values: Int64) -> pa.Array:
    """A copy: what the reader gave is valid until it reads on."""
    return pa.array(values.copy())


def _sizes(sizes: Int64) -> pa.Array:
    return pa.array(sizes.copy(), mask=sizes < 0)


_POSITIONS: Final = ("key", "value", "header_key", "header_value")
"""Columns with positions in the data."""
_SECTION: Final = ("section_start", "section_end")


def kept(carried: CarriedColumns) -> CarriedColumns:
    """Return a copy, which stays valid, with no more of the data than the sections of records."""
    records, entries = carried.records, carried.records.entries.copy()
    some = entries[entries["records"] > 0]
    start, end = (some["section_start"].min(), some["section_end"].max()) if len(some) else (0, 0)
    columns = {name: values.copy() for name, values in records._asdict().items() if name not in ("data", "entries")}
    for name in _POSITIONS:
        columns[name] -= start
    for name in _SECTION:
        entries[name] -= start
    return carried._replace(records=RecordColumns(records.data[start:end].copy(), entries, **columns))


def joined(pieces: Sequence[CarriedColumns]) -> CarriedColumns:
    """Return pieces as one, in their order."""
    if len(pieces) == 1:
        return pieces[0]
    numbers: dict[str, int] = {}
    topics = [
        np.array([numbers.setdefault(topic, len(numbers)) for topic in piece.topics], np.int32)[piece.topic_number]
        for piece in pieces
    ]
    return CarriedColumns(
        _records([piece.records for piece in pieces]), np.concatenate([piece.row for piece in pieces]),
        np.concatenate(topics), np.concatenate([piece.partition for piece in pieces]),
        np.concatenate([piece.crc_valid for piece in pieces]), list(numbers),
        np.concatenate([piece.may_hold_secrets for piece in pieces]),
    )  # fmt: skip


def _records(pieces: Sequence[RecordColumns]) -> RecordColumns:
    data, entries, records, headers = (
        _starts([len(column) for column in columns])
        for columns in zip(*((each.data, each.entries, each.entry, each.header_key) for each in pieces), strict=True)
    )
    shifts = dict.fromkeys(_POSITIONS, data) | {"entry": entries, "first_header": headers}

    def of(name: str) -> Int64:
        columns = [getattr(each, name) for each in pieces]
        by = shifts.get(name)
        return np.concatenate(columns if by is None else [each + n for each, n in zip(columns, by, strict=True)])

    whole = np.concatenate([each.entries for each in pieces])
    counts = [len(each.entries) for each in pieces]
    for names, by in ((_SECTION, data), (("first_record",), records), (("first_header",), headers)):
        for name in names:
            whole[name] += np.repeat(by, counts)
    rest = {name: of(name) for name in RecordColumns._fields if name not in ("data", "entries")}
    return RecordColumns(np.concatenate([each.data for each in pieces]), whole, **rest)


def _starts(lengths: Sequence[int]) -> Int64:
    """Return where columns of some lengths start, one behind the other."""
    return np.append(0, np.cumsum(lengths[:-1]))
