"""Translates a filter into a condition in SQL, so that few rows are checked in Python.

Invariant: a row that matches the filter satisfies the condition; if the condition is exact, also vice versa: a property
test.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Final, NamedTuple

from dissector.core.finding import Severity
from dissector.exchange.field_paths import SIDES
from dissector.exchange.model import STORED
from dissector.exchange.row_field import RowField
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
from dissector.filter.record_fields import RecordCondition
from dissector.protocol.schema.loader import alternatives, apis, message
from dissector.protocol.schema.model import Field
from dissector.tables.schemas import OF_REQUEST, OF_RESPONSE
from dissector.tables.sql import PushedFilter, any_of, text

_COLUMNS: Final = {"request": frozenset(OF_REQUEST) - {"isolation_level"}, "response": frozenset(OF_RESPONSE)}
"""Numbers of bodies that have columns, by side."""
MAX_PATHS: Final = 24
"""Maximum field paths that are tested in columns. With more, only their APIs are."""
_NO_ERROR: Final = 0
_TOP: Final = (1 << 63) - 1
_IS_EXCHANGE: Final = "kind = 'exchange'"
_IS_INFERRED: Final = "api_key IS NULL"
"""Of an exchange: the request is missing."""


class _Sql(NamedTuple):
    """A part of a filter as a condition."""

    sql: str
    is_exact: bool


def push_down(row_filter: Filter, start_ns: int, *, in_columns: bool = True) -> PushedFilter:
    """Translate a filter; relative times count from `start_ns`. Numbers of bodies that have columns are compared there
    if they are `in_columns`."""
    translator = _Translator(start_ns, in_columns=in_columns)
    sql, is_exact = translator.of(row_filter.condition, negated=False)
    return PushedFilter(
        sql, is_exact, translator.uses_numbers, translator.uses_findings, translator.uses_bodies,
        " OR ".join(translator.undecided),
    )  # fmt: skip


class _Translator:
    """Translates parts of a filter, and records which columns they use."""

    def __init__(self, start_ns: int, *, in_columns: bool) -> None:
        self._start_ns = start_ns
        self._in_columns = in_columns
        self.undecided: list[str] = []
        self.uses_numbers = False
        self.uses_findings = False
        self.uses_bodies = False

    def of(self, condition: Condition, *, negated: bool) -> _Sql:
        """Return a condition for rows that may match; if `negated`, for rows that may not match."""
        if isinstance(condition, Negated):
            return self.of(condition.condition, negated=not negated)
        if isinstance(condition, Joined):
            parts = [self.of(part, negated=negated) for part in condition.parts]
            join = _all if condition.every != negated else _any
            return _Sql(join([part.sql for part in parts]), all(part.is_exact for part in parts))
        known = self._leaf(condition)
        if known is None or (negated and not known.is_exact):
            return _Sql("TRUE", is_exact=False)
        return _Sql(f"NOT coalesce({known.sql}, FALSE)", is_exact=True) if negated else known

    def _leaf(self, condition: Condition) -> _Sql | None:
        """Translate one condition; None if columns can't decide it."""
        if isinstance(condition, RowFieldCondition):
            return self._row(condition.field, condition.predicate, self._start_ns if condition.is_relative else 0)
        if isinstance(condition, MessageCondition) and self._in_columns and (known := self._numbers(condition)):
            return known
        if isinstance(condition, SubjectCondition | MessageCondition):
            self.uses_bodies = True
            return self._subject(condition) if isinstance(condition, SubjectCondition) else self._body(condition)
        self.uses_bodies |= isinstance(condition, RecordCondition)
        return None

    def _row(self, field: RowField, predicate: Predicate | None, shift: int) -> _Sql | None:
        self.uses_numbers |= field.name in ("number", "connection") or field.name.startswith("tls.")
        self.uses_findings |= field.name in ("finding", "severity")
        if field.name == "finding":
            return _Sql(self._finding(predicate), is_exact=True)
        if field.name == "severity":
            return _Sql(self._worst(predicate), is_exact=True)
        if field.name == "api":
            return self._api(predicate)
        if not field.table_columns:
            return None
        tests = [self._test(column, predicate, shift) for column in field.table_columns]
        known = [test for test in tests if test is not None]
        if len(known) < len(tests):
            return None
        return _Sql(f"{_IS_EXCHANGE} AND {_any(known)}" if field.of_exchanges else _any(known), is_exact=True)

    def _test(self, value: str, predicate: Predicate | None, shift: int = 0) -> str | None:
        """Test a number or a text; `shift` is added to the numbers of the predicate."""
        if predicate is None:
            return f"{value} IS NOT NULL"
        if isinstance(predicate, Intervals):
            return _any([_between(value, low, high, shift) for low, high in predicate.spans])
        if isinstance(predicate, Contains):
            wanted = predicate.wanted
            return f"contains({value}, {text(wanted.decode())})" if _is_text(wanted) else None
        if isinstance(predicate, OneOf | NoneOf):
            words = predicate.wanted if isinstance(predicate, OneOf) else predicate.unwanted
            listed = self._in(value, map(str, words))
            return listed if isinstance(predicate, OneOf) else f"NOT {listed}"
        return None

    def _in(self, value: str, words: Iterable[str]) -> str:
        """Whether a text is one of some."""
        literals = ", ".join(text(word) for word in sorted(words))
        return f"({value} IN ({literals}))" if literals else "FALSE"

    def _api(self, predicate: Predicate | None) -> _Sql:
        """Test the API key or, if the request is missing, the inferred name."""
        known = [each for each in apis() if predicate is None or predicate(each.key)]
        keys = self._test("api_key", predicate)
        inferred = self._in("api", (f"{each.name}?" for each in known))
        listed = f"(api_key IN ({', '.join(str(each.key) for each in known)}))" if known else "FALSE"
        sql = f"{_IS_EXCHANGE} AND {_any([inferred, listed if keys is None else keys])}"
        return _Sql(f"({sql})", is_exact=keys is not None)

    def _finding(self, predicate: Predicate | None) -> str:
        from dissector.findings.registry import CODES  # with all detectors, which few filters need

        codes = [code for code in CODES if predicate is None or predicate(code)]
        return any_of("findings", lambda each: self._in(f"{each}.code", codes))

    def _worst(self, predicate: Predicate | None) -> str:
        """Test the severity of the gravest finding."""
        sql = "FALSE"
        for at, severity in enumerate(Severity):  # the gravest comes last, and decides
            has_any = any_of("findings", partial(_is_severity, severity))
            sql = f"CASE WHEN {has_any} THEN {predicate is None or bool(predicate(at))} ELSE {sql} END"
        return sql

    def _subject(self, condition: SubjectCondition) -> _Sql:
        """Test that the API has such a field and, for names, that the name is in the text of the message."""
        predicate = condition.predicate
        sides = [_IS_INFERRED]
        for side in SIDES:
            keys = sorted({place.api_key for place in condition.subject.places
                           if place.side == side and place.api_key is not None})  # fmt: skip
            if not keys:
                continue
            tests = [f"api_key IN ({', '.join(map(str, keys))})", f"{side}_size IS NOT NULL"]
            if condition.field.name == "error" and not (predicate is not None and predicate(_NO_ERROR)):
                tests.append("len(errors) > 0")
            elif isinstance(predicate, OneOf) and all(_is_plain(word) for word in predicate.wanted):
                words = (text(f'"{word}"') for word in sorted(map(str, predicate.wanted)))
                tests.append(_any([f"contains({side}, {word})" for word in words]))
            sides.append(_all(tests))
        return _Sql(f"({_IS_EXCHANGE} AND {_any(sides)})", is_exact=False)

    def _body(self, condition: MessageCondition) -> _Sql:
        """Test values at paths of messages, if they can be expressed in columns; otherwise the APIs that have these
        paths."""
        named = {each.request: each.key for each in apis()} | {each.response: each.key for each in apis()}
        in_columns = sum(map(len, condition.tests.values())) <= MAX_PATHS
        parts = [f"({_IS_EXCHANGE} AND {_IS_INFERRED})"]
        if any(name in STORED for _, name in condition.tests):
            parts.append(self._in("kind", STORED))
        for (side, name), tests in condition.tests.items():
            if name in STORED:
                continue
            of_api = _IS_EXCHANGE if name == side else f"api_key = {named[name]}"
            found = [self._path_condition(side, name, test) if in_columns else None for test in tests]
            known = [each for each in found if each is not None]
            parts.append(
                _all([of_api, f"{side}_size IS NOT NULL", *([_any(known)] if len(known) == len(tests) else [])])
            )
        return _Sql(_any(parts), is_exact=False)

    def _numbers(self, condition: MessageCondition) -> _Sql | None:
        """Test numbers that have a column; None if another field of messages is tested. Rows of tables of earlier
        versions have none in these columns, nor have messages that are not read; nor is it known of which API a
        response is whose request is missing."""
        keys = {each.request: each.key for each in apis()} | {each.response: each.key for each in apis()}
        found: list[str] = []
        undecided: list[str] = []
        for (side, name), tests in condition.tests.items():
            for test in tests:
                [*above, column] = test.path
                is_number = isinstance(test.predicate, Intervals) and not test.opened and not above
                if name not in keys or not is_number or column not in _COLUMNS[side]:
                    return None
                of_api = f"api_key = {keys[name]} AND {side}_size IS NOT NULL"
                found.append(_all([of_api, self._test(column, test.predicate) or "FALSE"]))
                lacking = ", ".join(map(str, _versions_without(name, column)))
                has_field = [f"coalesce(api_version NOT IN ({lacking}), TRUE)"] if lacking else []
                undecided.append(_all([of_api, f"{column} IS NULL", *has_field]))
            if side == SIDES[1]:
                undecided.append(f"({_IS_EXCHANGE} AND {_IS_INFERRED})")
        self.undecided += dict.fromkeys(undecided)
        return _Sql(_any(found), is_exact=True)

    def _path_condition(self, side: str, name: str, test: FieldTest) -> str | None:
        """Test one path of a message; None if columns can't express it."""
        fields = message(f"{side.capitalize()}Header" if name == side else name).fields
        predicate = test.predicate
        if test.opened or predicate is None or any(alternatives(name, version) for version in _versions(name)):
            return None
        steps = _field_path(fields, test.path[1:] if name == side else test.path)
        if steps is None or not isinstance(predicate, Intervals | OneOf | Contains):
            return None
        words = predicate.wanted if isinstance(predicate, OneOf) else ()
        if not all(isinstance(word, str) for word in words) or self._test("value", predicate) is None:
            return None
        kind = "BIGINT" if isinstance(predicate, Intervals) else "STRING"
        whole = [("header" if name == side else "body", False), *steps]
        return _at_path(side, whole, kind, lambda value: self._test(value, predicate) or "TRUE")


def _any(conditions: Sequence[str]) -> str:
    return f"({' OR '.join(conditions)})" if conditions else "FALSE"


def _all(conditions: Sequence[str]) -> str:
    return f"({' AND '.join(conditions)})"


def _is_text(raw: bytes) -> bool:
    return raw.decode("utf-8", "replace").encode() == raw


def _between(value: str, low: int, high: int, shift: int) -> str:
    """Whether a number is within an interval, its ends included."""
    low, high = (each if each in (LEAST, (1 << 64) - 1) else each + shift for each in (low, high))
    if low > _TOP or high < LEAST or low > high:
        return "FALSE"
    if low == high:
        return f"{value} = {low}"
    ends = ([f"{value} >= {low}"] if low > LEAST else []) + ([f"{value} <= {high}"] if high < _TOP else [])
    return _all(ends) if ends else f"{value} IS NOT NULL"


def _is_severity(severity: Severity, finding: str) -> str:
    return f"{finding}.severity = '{severity.value}'"


def _is_plain(word: object) -> bool:
    """Whether JSON has a text without escapes."""
    return isinstance(word, str) and all(" " < char < "\x7f" and char not in '"\\/' for char in word)


def _versions(name: str) -> Iterable[int]:
    known = message(name).valid_versions if name[0].isupper() else None
    return range(known.low, known.high + 1) if known is not None else ()


def _versions_without(name: str, field: str) -> list[int]:
    """Return the versions of a message that lack a field."""
    having = [each.versions for each in message(name).fields if each.snake_name == field]
    return [version for version in _versions(name) if not any(each.contains(version) for each in having)]


def _at_path(json: str, steps: Sequence[tuple[str, bool]], kind: str, test: Callable[[str], str]) -> str:
    """Return whether a test is true of a value in JSON text, at the names of `steps`, each of which may be an array.
    Values have the SQL type `kind`; those of another type are null."""
    path = "$" + "".join(f'."{name}"' + "[*]" * is_array for name, is_array in steps)
    values = f"json_extract_string({json}, {text(path)})"
    if not any(is_array for _, is_array in steps):
        return test(_as_kind(values, kind))
    return any_of(values, lambda each: test(_as_kind(each, kind)))


def _as_kind(value: str, kind: str) -> str:
    """Return a text of JSON as a value of an SQL type: integers may be truth values."""
    if kind == "STRING":
        return value
    return f"CASE {value} WHEN 'true' THEN 1 WHEN 'false' THEN 0 ELSE try_cast({value} AS {kind}) END"


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
