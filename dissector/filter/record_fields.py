"""Fields of records in filters: ``record.offset``, ``record.value.order.id``, ``record.headers.tenant``.

A condition on a record holds for an exchange with any such record. Where records themselves are filtered, all of a
filter's conditions on records, and those on the row fields `topic` and `partition`, are about the same record.

A path leads into what the key or the value is when it is opened; elements of arrays have no names, and any of them may
match. Connect's schema need not be named: ``record.value.id`` is ``record.value.payload.id``, too.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, NamedTuple

import numpy as np

from dissector.core.arrays import UInt8
from dissector.core.times import MILLISECOND
from dissector.exchange.index_rows import IndexRows
from dissector.exchange.model import Exchange
from dissector.filter.column_evaluation import NO, OPEN, has_any
from dissector.filter.conditions import RecordSubject
from dissector.filter.predicates import Predicate
from dissector.filter.value_types import ValueKind, ValueType
from dissector.protocol.schema.api_keys import ApiKey
from dissector.records.record import ExchangeRecord, records_of
from dissector.records.values.json_values import read_json
from dissector.records.values.opened import BYTES, FORMS, TEXT, OpenedValue, UnreadableError
from dissector.records.values.opener import ValueOpener
from dissector.records.values.trace_context import header_value

RECORD: Final = "record"
KEY, VALUE, HEADERS = "record.key", "record.value", "record.headers"
_OPENED: Final = (KEY, VALUE)
PRODUCED: Final = (ApiKey.PRODUCE,)
FETCHED: Final = (ApiKey.FETCH, ApiKey.SHARE_FETCH, ApiKey.FETCH_SNAPSHOT)
"""APIs whose requests carry records, and those whose responses do."""
_ANY: Final = ValueKind(ValueType.ANY, nullable=True)
_NUMBER: Final = ValueKind(ValueType.INTEGER, nullable=True)
_BOOLEAN: Final = ValueKind(ValueType.BOOLEAN)
_SCALAR: Final = 64
"""Characters of a text that may be a number."""


class RecordField(NamedTuple):
    """A field of records: its kind, what it is, its values."""

    kind: ValueKind
    words: str
    values: Callable[[ExchangeRecord], Sequence[object]]


RECORD_FIELDS: Final = {
    "record": RecordField(ValueKind(ValueType.STRUCT), "the records of the exchange", lambda _: (True,)),
    "record.topic": RecordField(ValueKind(ValueType.TEXT), "topic of the record", lambda it: (it.topic,)),
    "record.partition": RecordField(_NUMBER, "partition of the record", lambda it: (it.partition,)),
    "record.offset": RecordField(_NUMBER, "offset; in a Produce counted from 0 in each batch", lambda it: (it.offset,)),
    "record.timestamp": RecordField(
        ValueKind(ValueType.TIME, scale=MILLISECOND, nullable=True), "timestamp of the record",
        lambda it: (it.timestamp,),
    ),
    KEY: RecordField(
        _ANY, "key: text, number or bytes; record.key.NAME inside it", lambda it: _whole(it.opened_key, it.key)
    ),
    VALUE: RecordField(
        _ANY, "value: text, number or bytes; record.value.NAME inside it", lambda it: _whole(it.opened_value, it.value)
    ),
    HEADERS: RecordField(
        ValueKind(ValueType.STRUCT), "headers: record.headers.NAME", lambda it: [name for name, _ in it.headers]
    ),
    "record.key_size": RecordField(_NUMBER, "bytes of the key", lambda it: (_size(it.key),)),
    "record.value_size": RecordField(_NUMBER, "bytes of the value", lambda it: (_size(it.value),)),
    "record.format": RecordField(
        ValueKind(ValueType.TEXT, names=FORMS), "what the value is", lambda it: (it.opened_value.form,)
    ),
    "record.schema_id": RecordField(
        ValueKind(ValueType.TEXT, nullable=True), "id of the value's schema", lambda it: (it.schema_id,)
    ),
    "record.envelope": RecordField(
        ValueKind(ValueType.TEXT, nullable=True), "Connect, Debezium update, CloudEvents, …",
        lambda it: (it.opened_value.envelope or None,),
    ),
    "record.unreadable": RecordField(
        _BOOLEAN, "whether key or value can't be opened",
        lambda it: (it.opened_value.problem is not None or it.opened_key.problem is not None,),
    ),
    "record.control": RecordField(
        _BOOLEAN, "whether it ends a transaction, or is KRaft's own", lambda it: (it.is_control,)
    ),
}  # fmt: skip


def record_field(name: str) -> RecordField | None:
    """Return the field of a name; None if there is none."""
    known = RECORD_FIELDS.get(name)
    if known is not None:
        return known
    for above in _OPENED:
        if name.startswith(f"{above}.") and not name.endswith("."):
            path = name[len(above) + 1 :].split(".")
            return RecordField(_ANY, "", partial(_inside, of=above, path=path))
    if name.startswith(f"{HEADERS}.") and not name.endswith("."):
        header = name[len(HEADERS) + 1 :]
        return RecordField(_ANY, "", lambda it: list(_headers(it, header)))
    return None


def is_record_name(name: str) -> bool:
    """Return whether a name is meant for a field of records."""
    return name == RECORD or name.startswith(f"{RECORD}.")


def values_at(value: object, path: Sequence[str], at: int = 0) -> Iterator[object]:
    """Yield the values at a path, null included, in any elements of arrays. Names may have dots."""
    if isinstance(value, list) and at < len(path):
        for each in value:
            yield from values_at(each, path, at)
    elif at == len(path):
        yield from value if isinstance(value, list) else (value,)
    elif isinstance(value, dict):
        for end in range(at + 1, len(path) + 1):
            name = ".".join(path[at:end])
            if name in value:
                yield from values_at(value[name], path, end)


def _inside(record: ExchangeRecord, of: str, path: Sequence[str]) -> list[object]:
    opened = record.opened_key if of == KEY else record.opened_value
    found = list(values_at(opened.value, path))
    inner = opened.inner
    return found if inner is opened.value else found + list(values_at(inner, path))


def _whole(opened: OpenedValue, data: bytes | None) -> list[object]:
    """Return a key or a value as all that it may be compared with: bytes, text, the number that a text is."""
    if data is None:
        return [None]
    found: list[object] = [data]
    if opened.form not in (BYTES, TEXT):
        try:
            found.append(data.decode())
        except UnicodeDecodeError:
            return found
    elif isinstance(opened.value, str):
        found.append(opened.value)
    return found + _scalar(data)


def _scalar(data: bytes) -> list[object]:
    if not 0 < len(data) <= _SCALAR or data[:1] in b'{["' or not data.isascii():
        return []
    try:
        return [read_json(data)]
    except UnreadableError:
        return []


def _headers(record: ExchangeRecord, name: str) -> Iterator[object]:
    for each, content in record.headers:
        if each == name:
            yield header_value(each, content)
            if content is not None:
                yield from (content, *_scalar(content))


def _size(data: bytes | None) -> int | None:
    return None if data is None else len(data)


@dataclass(frozen=True, eq=False)
class RecordCondition:
    """A predicate on a field of records; without a predicate, whether a record has it."""

    field: RecordField
    predicate: Predicate | None
    opener: ValueOpener
    is_relative: bool = False
    """Whether values are times since the start of the capture."""

    is_indexed = False
    reads_findings = False
    is_per_record = True

    def evaluate(self, rows: IndexRows) -> UInt8:
        produced = rows.has_request & (has_any(rows.api_keys, PRODUCED) | rows.is_orphan)
        fetched = rows.has_response & (has_any(rows.api_keys, FETCHED) | rows.is_orphan)
        return np.where(produced | fetched, np.uint8(OPEN), np.uint8(NO))

    evaluate_records = evaluate

    def holds(self, exchange: Exchange, start_ns: int) -> bool:
        return any(self._is(record, start_ns) for record in records_of(exchange, self.opener))

    def holds_for(self, subject: RecordSubject, start_ns: int) -> bool:
        return self._is(subject.record, start_ns)

    def _is(self, record: ExchangeRecord, start_ns: int) -> bool:
        values = self.field.values(record)
        if self.predicate is None:
            nothing = (None, False) if self.field.kind is _BOOLEAN else (None,)
            return any(each not in nothing for each in values)
        if self.is_relative:
            start = start_ns // MILLISECOND
            values = [each - start for each in values if isinstance(each, int)]
        return any(map(self.predicate, values))
