"""Translates a filter into a condition on Spark columns, which Parquet can evaluate, so that few rows are checked in
Python.

Invariant: a row that matches the filter satisfies the condition; if the condition is exact, also vice versa: a property
test.
"""

from collections.abc import Iterable, Sequence
from functools import partial, reduce
from operator import and_, or_
from typing import Final, NamedTuple

from pyspark.sql import Column
from pyspark.sql import functions as f

from dissector.core.finding import Severity
from dissector.exchange.field_paths import SIDES
from dissector.exchange.model import STORED
from dissector.exchange.row_fields import RowField
from dissector.filter import Filter
from dissector.filter.conditions import (
    Condition,
    FieldTest,
    Joined,
    MessageCondition,
    Negated,
    RowFieldCondition,
    SubjectCondition,
)
from dissector.filter.predicates import LEAST, Contains, Intervals, NoneOf, OneOf, Predicate
from dissector.findings import CODES
from dissector.protocol.schema.loader import alternatives, apis, message
from dissector.protocol.schema.model import Field

MAX_PATHS: Final = 24
"""Maximum field paths that are tested in columns. With more, only their APIs are."""
_TOP: Final = (1 << 63) - 1
_EXCHANGE: Final = "exchange"


class PushedFilter(NamedTuple):
    """A filter as a condition on columns."""

    column: Column
    is_exact: bool
    """Whether every row that satisfies `column` matches the filter."""
    uses_numbers: bool = False
    """Whether `column` uses `number` or `conn`."""
    uses_findings: bool = False
    uses_bodies: bool = False


class _ColumnCondition(NamedTuple):
    """A part of a filter as a condition on columns."""

    column: Column
    is_exact: bool


def push_down(row_filter: Filter | None, start_ns: int) -> PushedFilter:
    """Translate a filter; relative times count from `start_ns`."""
    if row_filter is None:
        return PushedFilter(f.lit(True), is_exact=True)
    columns = _Translator(start_ns)
    column, is_exact = columns.of(row_filter.condition, negated=False)
    return PushedFilter(column, is_exact, columns.uses_numbers, columns.uses_findings, columns.uses_bodies)


class _Translator:
    """Translates parts of a filter, and records which columns they use."""

    def __init__(self, start_ns: int) -> None:
        self._start_ns = start_ns
        self.uses_numbers = False
        self.uses_findings = False
        self.uses_bodies = False

    def of(self, condition: Condition, *, negated: bool) -> _ColumnCondition:
        """Return a condition for rows that may match; if `negated`, for rows that may not match."""
        if isinstance(condition, Negated):
            return self.of(condition.condition, negated=not negated)
        if isinstance(condition, Joined):
            parts = [self.of(part, negated=negated) for part in condition.parts]
            join = and_ if condition.every != negated else or_
            return _ColumnCondition(reduce(join, [part.column for part in parts]), all(part.is_exact for part in parts))
        known = self._leaf(condition)
        if known is None or (negated and not known.is_exact):
            return _ColumnCondition(f.lit(True), is_exact=False)
        return _ColumnCondition(known.column.isNull() | ~known.column, is_exact=True) if negated else known

    def _leaf(self, condition: Condition) -> _ColumnCondition | None:
        """Translate one condition; None if columns can't decide it."""
        if isinstance(condition, RowFieldCondition):
            return self._row(condition.field, condition.predicate, self._start_ns if condition.is_relative else 0)
        if isinstance(condition, SubjectCondition | MessageCondition):
            self.uses_bodies = True
            return _subject(condition) if isinstance(condition, SubjectCondition) else _body(condition)
        return None

    def _row(self, field: RowField, predicate: Predicate | None, shift: int) -> _ColumnCondition | None:
        self.uses_numbers |= field.name in ("number", "connection")
        self.uses_findings |= field.name in ("finding", "severity")
        if field.name == "finding":
            return _ColumnCondition(_finding(predicate), is_exact=True)
        if field.name == "severity":
            return _ColumnCondition(_worst(predicate), is_exact=True)
        if field.name == "api":
            return _api(predicate)
        if not field.table_columns:
            return None
        columns = [_test(f.col(column), predicate, shift) for column in field.table_columns]
        known_columns = [column for column in columns if column is not None]
        if len(known_columns) < len(columns):
            return None
        column = (f.col("kind") == _EXCHANGE) & _any(known_columns) if field.of_exchanges else _any(known_columns)
        return _ColumnCondition(column, is_exact=True)


def _any(columns: Sequence[Column]) -> Column:
    return reduce(or_, columns) if columns else f.lit(False)


def _test(column: Column, predicate: Predicate | None, shift: int = 0) -> Column | None:
    """Test a column of numbers or texts; `shift` is added to the numbers of the predicate."""
    if predicate is None:
        return column.isNotNull()
    if isinstance(predicate, Intervals):
        return _any([_between(column, low, high, shift) for low, high in predicate.spans])
    if isinstance(predicate, Contains):
        return column.contains(predicate.wanted.decode("utf-8", "replace")) if _is_text(predicate.wanted) else None
    if isinstance(predicate, OneOf | NoneOf):
        words = sorted(
            str(value) for value in (predicate.wanted if isinstance(predicate, OneOf) else predicate.unwanted)
        )
        return column.isin(words) if isinstance(predicate, OneOf) else ~column.isin(words)
    return None


def _is_text(raw: bytes) -> bool:
    return raw.decode("utf-8", "replace").encode() == raw


def _between(column: Column, low: int, high: int, shift: int) -> Column:
    """Whether a number is within an interval, its ends included."""
    low, high = (value if value in (LEAST, (1 << 64) - 1) else value + shift for value in (low, high))
    if low > _TOP or high < LEAST or low > high:
        return column.isNull() & column.isNotNull()
    if low == high:
        return column == low
    ends = ([column >= low] if low > LEAST else []) + ([column <= high] if high < _TOP else [])
    return reduce(and_, ends) if ends else column.isNotNull()


def _api(predicate: Predicate | None) -> _ColumnCondition:
    """Test the API key or, if the request is missing, the inferred name."""
    known = [each for each in apis() if predicate is None or predicate(each.key)]
    keys = _test(f.col("api_key"), predicate)
    column = f.col("api").isin([f"{each.name}?" for each in known])
    column = column | (f.col("api_key").isin([each.key for each in known]) if keys is None else keys)
    return _ColumnCondition((f.col("kind") == _EXCHANGE) & column, is_exact=keys is not None)


def _worst(predicate: Predicate | None) -> Column:
    """Test the severity of the gravest finding."""
    column = f.lit(False)
    for at, severity in enumerate(Severity):  # the gravest comes last, and decides
        has_any = f.exists("findings", partial(_has_severity, severity))
        column = f.when(has_any, f.lit(predicate is None or bool(predicate(at)))).otherwise(column)
    return column


def _has_severity(severity: Severity, finding: Column) -> Column:
    return finding["severity"] == severity.value


def _finding(predicate: Predicate | None) -> Column:
    codes = [code for code in CODES if predicate is None or predicate(code)]
    return f.exists("findings", lambda each: each["code"].isin(codes))


def _subject(condition: SubjectCondition) -> _ColumnCondition:
    """Test that the API has such a field and, for names, that the name is in the text of the message."""
    predicate = condition.predicate
    sides = []
    for side in SIDES:
        keys = sorted({place.api_key for place in condition.subject.places
                       if place.side == side and place.api_key is not None})  # fmt: skip
        column = f.col("api_key").isin(keys) & f.col(f"{side}_size").isNotNull()
        if isinstance(predicate, OneOf) and all(_is_plain(word) for word in predicate.wanted):
            column = column & _any([f.col(side).contains(f'"{word}"') for word in sorted(map(str, predicate.wanted))])
        sides.append(column)
    inferred = f.col("api_key").isNull()
    return _ColumnCondition((f.col("kind") == _EXCHANGE) & _any([*sides, inferred]), is_exact=False)


def _is_plain(word: object) -> bool:
    """Whether JSON has a text without escapes."""
    return isinstance(word, str) and all(" " < char < "\x7f" and char not in '"\\/' for char in word)


def _body(condition: MessageCondition) -> _ColumnCondition:
    """Test values at paths of messages, if they can be expressed in columns; otherwise the APIs that have these
    paths."""
    named = {each.request: each.key for each in apis()} | {each.response: each.key for each in apis()}
    in_columns = sum(map(len, condition.tests.values())) <= MAX_PATHS
    conditions = [f.col("kind").isin(sorted(STORED))] if any(name in STORED for _, name in condition.tests) else []
    for (side, name), tests in condition.tests.items():
        if name in STORED:
            continue
        of_api = f.col("kind") == _EXCHANGE if name == side else f.col("api_key") == named[name]
        columns = [_path_condition(side, name, test) if in_columns else None for test in tests]
        known = [column for column in columns if column is not None]
        conditions.append(
            of_api & f.col(f"{side}_size").isNotNull() & (_any(known) if len(known) == len(tests) else f.lit(True))
        )
    inferred = f.col("api_key").isNull() & (f.col("kind") == _EXCHANGE)
    return _ColumnCondition(_any([*conditions, inferred]), is_exact=False)


def _path_condition(side: str, name: str, test: FieldTest) -> Column | None:
    """Test one path of a message; None if columns can't express it."""
    fields = message(f"{side.capitalize()}Header" if name == side else name).fields
    if test.opened or test.predicate is None or any(alternatives(name, version) for version in _versions(name)):
        return None
    steps = _field_path(fields, test.path[1:] if name == side else test.path)
    if steps is None or not isinstance(test.predicate, Intervals | OneOf | Contains):
        return None
    words = test.predicate.wanted if isinstance(test.predicate, OneOf) else ()
    if not all(isinstance(word, str) for word in words):
        return None
    kind = "bigint" if isinstance(test.predicate, Intervals) else "string"
    return _test_path(f.try_parse_json(side), f"$.{'header' if name == side else 'body'}", steps, kind, test.predicate)


def _versions(name: str) -> Iterable[int]:
    known = message(name).valid_versions if name[0].isupper() else None
    return range(known.low, known.high + 1) if known is not None else ()


def _field_path(fields: Sequence[Field], path: Sequence[str]) -> list[tuple[str, bool]] | None:
    """Return the names of a path, each with whether it is an array; None if there is no such path."""
    steps = []
    for name in path:
        found = next((field for field in fields if field.snake_name == name), None)
        if found is None:
            return None
        steps.append((name, found.is_array))
        fields = found.fields
    return steps


def _test_path(
    value: Column, path: str, steps: Sequence[tuple[str, bool]], kind: str, predicate: Predicate
) -> Column | None:
    """Test whether any value at a path matches; arrays element by element."""
    if not steps:
        return _test(f.try_variant_get(value, path, kind), predicate)
    (name, is_array), *rest = steps
    inner = f"{path}.{name}"
    if not is_array:
        return _test_path(value, inner, rest, kind, predicate)
    if _test_path(value, "$", rest, kind, predicate) is None:
        return None

    def matches(element: Column) -> Column:
        column = _test_path(element, "$", rest, kind, predicate)
        assert column is not None
        return column

    return f.exists(f.try_variant_get(value, inner, "array<variant>"), matches)
