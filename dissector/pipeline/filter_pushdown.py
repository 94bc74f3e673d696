"""A filter as columns of Spark: what Parquet can be asked for, so that as few rows as may be are looked at one by one.

Invariant: a row that fits the filter fits the columns; where they are exact, the other way round, too: a property test.
"""

from collections.abc import Iterable, Sequence
from functools import reduce
from operator import and_, or_
from typing import Final, NamedTuple

from pyspark.sql import Column
from pyspark.sql import functions as f

from dissector.core.finding import Severity
from dissector.exchange.field_paths import SIDES
from dissector.exchange.model import STORED
from dissector.exchange.row_fields import RowField
from dissector.filter import Filter
from dissector.filter.conditions import Condition, FieldTest, Joined, Negated, OfBody, OfRow, OfSubject
from dissector.filter.predicates import LEAST, Contains, Intervals, NoneOf, OneOf, Predicate
from dissector.findings import CODES
from dissector.protocol.schema.loader import alternatives, apis, message
from dissector.protocol.schema.model import Field

MAX_PATHS: Final = 24
"""Places of messages that are asked for in columns; of more only the API is."""
_TOP: Final = (1 << 63) - 1
_EXCHANGE: Final = "exchange"


class PushedFilter(NamedTuple):
    """What columns say of a filter."""

    may: Column
    is_exact: bool
    """Whether every row that the columns let through fits."""
    asks_numbers: bool = False
    """Whether `number` or `conn` are among the columns."""
    asks_findings: bool = False


class _ColumnCondition(NamedTuple):
    """Of a part of a filter."""

    may: Column
    is_exact: bool


def push_down(fitting: Filter | None, start_ns: int) -> PushedFilter:
    """A filter in columns; `start_ns` is the time that relative times count from."""
    if fitting is None:
        return PushedFilter(f.lit(True), is_exact=True)
    columns = _Translator(start_ns)
    may, is_exact = columns.of(fitting.condition, negated=False)
    return PushedFilter(may, is_exact, columns.asks_numbers, columns.asks_findings)


class _Translator:
    """Parts of a filter in columns, and what these are."""

    def __init__(self, start_ns: int) -> None:
        self._start_ns = start_ns
        self.asks_numbers = False
        self.asks_findings = False

    def of(self, condition: Condition, *, negated: bool) -> _ColumnCondition:
        """What may fit; of a negated one what may not."""
        if isinstance(condition, Negated):
            return self.of(condition.of, negated=not negated)
        if isinstance(condition, Joined):
            parts = [self.of(part, negated=negated) for part in condition.parts]
            join = and_ if condition.every != negated else or_
            return _ColumnCondition(reduce(join, [part.may for part in parts]), all(part.is_exact for part in parts))
        known = self._leaf(condition)
        if known is None or (negated and not known.is_exact):
            return _ColumnCondition(f.lit(True), is_exact=False)
        return _ColumnCondition(known.may.isNull() | ~known.may, is_exact=True) if negated else known

    def _leaf(self, condition: Condition) -> _ColumnCondition | None:
        """One question; None where columns can't tell."""
        if isinstance(condition, OfRow):
            return self._row(condition.field, condition.predicate, self._start_ns if condition.is_relative else 0)
        if isinstance(condition, OfSubject):
            return _subject(condition)
        return _body(condition) if isinstance(condition, OfBody) else None

    def _row(self, field: RowField, asked: Predicate | None, shift: int) -> _ColumnCondition | None:
        self.asks_numbers |= field.name in ("number", "connection")
        self.asks_findings |= field.name == "finding"
        if field.name == "finding":
            return _ColumnCondition(_finding(asked), is_exact=True)
        if field.name == "severity":
            fits = [severity.value for at, severity in enumerate(Severity) if asked is None or asked(at)]
            return _ColumnCondition(f.col("severity").isin(fits), is_exact=True)
        if field.name == "api":
            return _api(asked)
        if not field.table_columns:
            return None
        columns = [_test(f.col(column), asked, shift) for column in field.table_columns]
        some = [column for column in columns if column is not None]
        if len(some) < len(columns):
            return None
        may = (f.col("kind") == _EXCHANGE) & _any(some) if field.of_exchanges else _any(some)
        return _ColumnCondition(may, is_exact=True)


def _any(columns: Sequence[Column]) -> Column:
    return reduce(or_, columns) if columns else f.lit(False)


def _test(column: Column, asked: Predicate | None, shift: int = 0) -> Column | None:
    """What is asked of a column of numbers or texts; `shift` is added to the numbers of the question."""
    if asked is None:
        return column.isNotNull()
    if isinstance(asked, Intervals):
        return _any([_between(column, low, high, shift) for low, high in asked.spans])
    if isinstance(asked, Contains):
        return column.contains(asked.wanted.decode("utf-8", "replace")) if _is_text(asked.wanted) else None
    if isinstance(asked, OneOf | NoneOf):
        words = sorted(str(value) for value in (asked.wanted if isinstance(asked, OneOf) else asked.unwanted))
        return column.isin(words) if isinstance(asked, OneOf) else ~column.isin(words)
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


def _api(asked: Predicate | None) -> _ColumnCondition:
    """The key; where the request is not there, the name that was inferred."""
    known = [each for each in apis() if asked is None or asked(each.key)]
    keys = _test(f.col("api_key"), asked)
    may = f.col("api").isin([f"{each.name}?" for each in known])
    may = may | (f.col("api_key").isin([each.key for each in known]) if keys is None else keys)
    return _ColumnCondition((f.col("kind") == _EXCHANGE) & may, is_exact=keys is not None)


def _finding(asked: Predicate | None) -> Column:
    codes = [code for code in CODES if asked is None or asked(code)]
    return f.exists("findings", lambda each: each["code"].isin(codes))


def _subject(condition: OfSubject) -> _ColumnCondition:
    """APIs that have such a field; of a name that it is in the text of a message."""
    asked = condition.predicate
    sides = []
    for side in SIDES:
        keys = sorted({place.api_key for place in condition.subject.places
                       if place.side == side and place.api_key is not None})  # fmt: skip
        may = f.col("api_key").isin(keys) & f.col(f"{side}_size").isNotNull()
        if isinstance(asked, OneOf) and all(_is_plain(word) for word in asked.wanted):
            text = f.to_json(f.col(side))
            may = may & _any([text.contains(f'"{word}"') for word in sorted(map(str, asked.wanted))])
        sides.append(may)
    inferred = f.col("api_key").isNull()
    return _ColumnCondition((f.col("kind") == _EXCHANGE) & _any([*sides, inferred]), is_exact=False)


def _is_plain(word: object) -> bool:
    """Whether a text stands in JSON as it is."""
    return isinstance(word, str) and all(" " < char < "\x7f" and char not in '"\\/' for char in word)


def _body(condition: OfBody) -> _ColumnCondition:
    """What stands at paths of messages, as far as they can be written as columns; else the APIs that have them."""
    named = {each.request: each.key for each in apis()} | {each.response: each.key for each in apis()}
    in_columns = sum(map(len, condition.looks.values())) <= MAX_PATHS
    some = [f.col("kind").isin(sorted(STORED))] if any(name in STORED for _, name in condition.looks) else []
    for (side, name), looks in condition.looks.items():
        if name in STORED:
            continue
        of_api = f.col("kind") == _EXCHANGE if name == side else f.col("api_key") == named[name]
        columns = [_path_condition(side, name, look) if in_columns else None for look in looks]
        known = [column for column in columns if column is not None]
        some.append(
            of_api & f.col(f"{side}_size").isNotNull() & (_any(known) if len(known) == len(looks) else f.lit(True))
        )
    inferred = f.col("api_key").isNull() & (f.col("kind") == _EXCHANGE)
    return _ColumnCondition(_any([*some, inferred]), is_exact=False)


def _path_condition(side: str, name: str, look: FieldTest) -> Column | None:
    """One path of a message; None where it can't be written."""
    fields = message(f"{side.capitalize()}Header" if name == side else name).fields
    if look.opened or look.predicate is None or any(alternatives(name, version) for version in _versions(name)):
        return None
    way = _field_path(fields, look.path[1:] if name == side else look.path)
    if way is None or not isinstance(look.predicate, Intervals | OneOf | Contains):
        return None
    words = look.predicate.wanted if isinstance(look.predicate, OneOf) else ()
    if not all(isinstance(word, str) for word in words):
        return None
    kind = "bigint" if isinstance(look.predicate, Intervals) else "string"
    return _test_path(f.col(side), f"$.{'header' if name == side else 'body'}", way, kind, look.predicate)


def _versions(name: str) -> Iterable[int]:
    known = message(name).valid_versions if name[0].isupper() else None
    return range(known.low, known.high + 1) if known is not None else ()


def _field_path(fields: Sequence[Field], path: Sequence[str]) -> list[tuple[str, bool]] | None:
    """The names of a path, and which of them are arrays."""
    way = []
    for name in path:
        found = next((field for field in fields if field.snake_name == name), None)
        if found is None:
            return None
        way.append((name, found.is_array))
        fields = found.fields
    return way


def _test_path(value: Column, path: str, way: Sequence[tuple[str, bool]], kind: str, asked: Predicate) -> Column | None:
    """Whether anything at a path fits: element by element where there are arrays."""
    if not way:
        return _test(f.try_variant_get(value, path, kind), asked)
    (name, is_array), *rest = way
    inner = f"{path}.{name}"
    if not is_array:
        return _test_path(value, inner, rest, kind, asked)
    if _test_path(value, "$", rest, kind, asked) is None:
        return None

    def fits(each: Column) -> Column:
        found = _test_path(each, "$", rest, kind, asked)
        assert found is not None
        return found

    return f.exists(f.try_variant_get(value, inner, "array<variant>"), fits)
