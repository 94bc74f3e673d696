"""Compile the syntax tree of a filter: look up names, convert values to the types of their fields.

A field with more than one value matches if any of them does, as in Wireshark. So ``error_code != 0`` means an exchange
with some error code that is not 0; it is not the opposite of ``error_code == 0``, as another code of the same exchange
may be 0. ``!(error_code == 0)`` means that no value is 0, and matches an exchange without any error code too. A missing
field matches nothing. A name by itself, or after ``exists``, tests whether the field is there and not null. ``matches``
searches for a regular expression of RE2, ignoring case, as in Wireshark; ``(?-i)`` in front makes it case-sensitive.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from dissector.core.arrays import UInt8
from dissector.core.suggestions import nearest
from dissector.exchange.field_paths import SIDES, STRUCT, FieldPlace, Path, places
from dissector.exchange.index_rows import IndexRows
from dissector.exchange.model import Exchange
from dissector.exchange.row_field import RowField
from dissector.exchange.row_fields import ROW_FIELDS
from dissector.filter.conditions import (
    Condition,
    FieldTest,
    Joined,
    MessageCondition,
    Negated,
    RecordSubject,
    RowFieldCondition,
    SubjectCondition,
)
from dissector.filter.errors import FilterError, MismatchError
from dissector.filter.grammar import ComparisonSyntax, ExistenceSyntax, FilterWord, NegationSyntax, Syntax, read
from dissector.filter.message_fields import headers, lookup, value_kind
from dissector.filter.predicates import Predicate, predicate
from dissector.filter.record_fields import RECORD_FIELDS, RecordCondition, is_record_name, record_field
from dissector.filter.value_types import ValueKind, ValueType, counts_nanoseconds, is_time, row_field_kind
from dissector.protocol.schema.error_codes import ErrorCode
from dissector.protocol.schema.loader import api_named
from dissector.records.record import PLAIN_OPENER
from dissector.records.values.opener import ValueOpener

WIRESHARK: Final = {
    "frame.number": "number", "frame.time": "time", "frame.time_relative": "time", "frame.len": "size",
    "tcp.stream": "conn", "_ws.expert": "finding",
    "kafka.api_key": "api", "kafka.api_version": "version", "kafka.client_id": "client_id",
    "kafka.consumer_group": "group", "kafka.correlation_id": "corr", "kafka.error": "error", "kafka.len": "size",
    "kafka.partition_id": "partition", "kafka.request_frame": "request", "kafka.required_acks": "request.acks",
    "kafka.response_frame": "response", "kafka.topic_name": "topic",
    "tls.handshake.extensions_server_name": "tls.sni",
}  # fmt: skip
"""Fields of Wireshark's, and the names of ours that have the same: what is suggested to those who type them."""


@dataclass(frozen=True)
class Filter:
    """A compiled filter."""

    text: str
    condition: Condition

    @property
    def is_indexed(self) -> bool:
        """Whether the index decides it, except for a few rows that are decoded."""
        return self.condition.is_indexed

    @property
    def reads_findings(self) -> bool:
        """Whether it is about findings: only an examined capture has all of them."""
        return self.condition.reads_findings

    def matches(self, exchange: Exchange, start_ns: int = 0) -> bool:
        """Return whether an exchange matches; relative times count from `start_ns`."""
        return self.condition.holds(exchange, start_ns)

    @property
    def is_per_record(self) -> bool:
        """Whether records of one exchange may differ in it."""
        return self.condition.is_per_record

    def matches_record(self, subject: RecordSubject, start_ns: int = 0) -> bool:
        """Return whether one record matches."""
        return self.condition.holds_for(subject, start_ns)

    def evaluate_records(self, rows: IndexRows) -> UInt8:
        """Evaluate for records: 0 where none of a row's matches, 2 where all do, 1 where each has to be asked."""
        return self.condition.evaluate_records(rows)

    def evaluate(self, rows: IndexRows) -> UInt8:
        """Evaluate on columns of the index, `(n,)`: 0 for no, 2 for yes, 1 for rows that must be decoded."""
        return self.condition.evaluate(rows)


def parse(text: str, opener: ValueOpener = PLAIN_OPENER) -> Filter:
    """Parse and compile a filter; `opener` opens keys and values of records. Raises `FilterError`."""
    return Filter(text, _Compiler(text, opener).compile(read(text)))


class _Compiler:
    """Compiles the syntax tree of `text`."""

    def __init__(self, text: str, opener: ValueOpener) -> None:
        self._text = text
        self._opener = opener

    def compile(self, tree: Syntax) -> Condition:
        """Return the condition of a tree. Raises `FilterError`."""
        if isinstance(tree, NegationSyntax):
            return Negated((self.compile(tree.operand),))
        if isinstance(tree, ComparisonSyntax):
            return self._test(tree.name, tree)
        if isinstance(tree, ExistenceSyntax):
            return self._test(tree.name, None)
        parts = [self.compile(part) for part in tree.parts]
        return Joined(tuple(sorted(parts, key=lambda part: not part.is_indexed)), tree.every)

    def _test(self, name: FilterWord, comparison: ComparisonSyntax | None) -> Condition:
        try:
            field = ROW_FIELDS.get(name.text)
            if field is not None:
                return _row_condition(field, name.text, comparison)
            if is_record_name(name.text):
                return _record_condition(name, comparison, self._opener)
            meant = lookup(name.text)
            if not meant:
                raise MismatchError(name.column, f"unknown field {name.text!r}", near_names(name.text))
            return _message_condition(meant, comparison)
        except MismatchError as error:
            raise FilterError(self._text, error.column, error.message, error.near) from None


def _predicate(kind: ValueKind, comparison: ComparisonSyntax | None) -> Predicate | None:
    return None if comparison is None else predicate(kind, comparison.operator, comparison.values)


def _row_condition(field: RowField, name: str, comparison: ComparisonSyntax | None) -> Condition:
    kind = row_field_kind(field, name)
    if field.subject is not None:
        return SubjectCondition(field, field.subject, _predicate(kind, comparison))
    if comparison is None or kind.type is not ValueType.TIME:
        return RowFieldCondition(field, _predicate(kind, comparison))
    is_relative = _is_relative(comparison, takes_numbers=counts_nanoseconds(field, name))
    return RowFieldCondition(field, _predicate(kind, comparison), is_relative)


def _record_condition(name: FilterWord, comparison: ComparisonSyntax | None, opener: ValueOpener) -> Condition:
    field = record_field(name.text)
    if field is None:
        raise MismatchError(name.column, f"unknown field {name.text!r}", nearest(name.text, RECORD_FIELDS))
    is_relative = (
        comparison is not None and field.kind.type is ValueType.TIME and _is_relative(comparison, takes_numbers=True)
    )
    return RecordCondition(field, _predicate(field.kind, comparison), opener, is_relative)


def _is_relative(comparison: ComparisonSyntax, *, takes_numbers: bool) -> bool:
    """Return whether times are since the start, and not dates; plain numbers count from 1970 if it `takes_numbers`.
    Raises `MismatchError` for both together."""
    absolute = [
        is_time(part) or (takes_numbers and part.isdecimal())
        for word in comparison.values
        for part in word.text.split("..")
    ]
    if any(absolute) and not all(absolute):
        raise MismatchError(comparison.values[0].column, "dates and times since the start can't be mixed")
    return not any(absolute)


def _message_condition(meant: Sequence[FieldPlace], comparison: ComparisonSyntax | None) -> Condition:
    """Return the tests of those of the places `meant` that the values can be compared with. Raises `MismatchError`
    without any."""
    mismatches: list[MismatchError] = []
    predicates: dict[ValueKind, Predicate | None] = {}
    tests: dict[tuple[str, str], dict[Path, FieldTest]] = {}
    api_keys: dict[str, set[int | None]] = {}
    for place in meant:
        kind = value_kind(place)
        if kind not in predicates:
            try:
                predicates[kind] = _predicate(kind, comparison)
            except MismatchError as error:
                mismatches.append(_with_fields(error, place))
                continue
        test = FieldTest(place.path, place.opened, predicates[kind])
        tests.setdefault((place.side, place.message), {})[place.path] = test
        api_keys.setdefault(place.side, set()).add(place.api_key)
    if not tests:
        raise max(mismatches, key=lambda error: len(error.near))
    return MessageCondition(
        {key: tuple(some.values()) for key, some in tests.items()},
        {side: frozenset(keys) for side, keys in api_keys.items()},
    )


def _with_fields(error: MismatchError, place: FieldPlace) -> MismatchError:
    """Add the fields of a structure to an error as suggestions."""
    if place.type != STRUCT or error.near:
        return error
    return MismatchError(error.column, error.message, tuple(sorted(_fields_below(place)))[:5])


def _fields_below(place: FieldPlace) -> Iterable[str]:
    depth = len(place.called)
    return {
        each.called[depth] for each in places(place.side)
        if each.message == place.message and len(each.called) == depth + 1 and each.called[:depth] == place.called
    }  # fmt: skip


def near_names(name: str) -> tuple[str, ...]:
    """Return the names most similar to an unknown one; of a field of Wireshark's, ours; of an API or an error, the
    comparison with it."""
    if name in WIRESHARK:
        return (WIRESHARK[name],)
    if (meant := api_named(name)) is not None:
        return (f"api == {meant.name}",)
    if name.upper() in ErrorCode.__members__:
        return (f"error == {name.upper()}",)
    side, dot, rest = name.partition(".")
    if side not in SIDES:
        side, dot, rest = "", "", name
    depth = rest.count(".") + 1
    names: dict[str, None] = {} if dot else dict.fromkeys(ROW_FIELDS)
    for each in (side,) if side else SIDES:
        for place in (*places(each), *headers(each)):
            for called in (place.called[-depth:], place.called):
                names[f"{side}{dot}{'.'.join(called)}"] = None
    return nearest(name, names)
