"""Pieces of the records that many rows carry, joined: a reader yields one for each layout of messages, and to make
columns of Arrow of a few records takes as long as of thousands."""

from collections.abc import Sequence
from typing import Final

import numpy as np

from dissector.core.arrays import Int64
from dissector.exchange.record_columns import CarriedColumns
from dissector.protocol.records.columns import RecordColumns

_POSITIONS: Final = ("key", "value", "header_key", "header_value")
"""Columns with positions in the data."""
_SECTION: Final = ("section_start", "section_end")


def kept(carried: CarriedColumns) -> CarriedColumns:
    """Return a copy, which stays valid, with no more of the data than the sections of records."""
    records, entries = carried.records, carried.records.entries.copy()
    some = entries[entries["records"] > 0]
    start, end = (some["section_start"].min(), some["section_end"].max()) if len(some) else (0, 0)
    columns = {name: column.copy() for name, column in records._asdict().items() if name not in ("data", "entries")}
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
