"""From a tree of words to a filter: every name looked up, every value made one of its field's.

A field with several values fits when any of them does, as in Wireshark. So ``error_code != 0`` is an exchange with some
error code that is not 0, which is what whoever writes it looks for; it is not the opposite of ``error_code == 0``, as
another code of the same exchange may be 0. That no value is 0 is ``!(error_code == 0)``, which an exchange without any
error code fits too. A field that is not there fits nothing. A name by itself, or behind ``exists``, asks whether the
field is there and not null. ``matches`` is a regular expression of RE2's, anywhere in the text, whatever the case, as
Wireshark has it; ``(?-i)`` in front makes the case matter.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from dissector.core.arrays import UInt8
from dissector.exchange.field_paths import SIDES, STRUCT, FieldPlace, Path
from dissector.exchange.index_rows import IndexRows
from dissector.exchange.model import Exchange
from dissector.exchange.row_fields import ROW_FIELDS, RowField
from dissector.filter.conditions import Condition, FieldTest, Joined, Negated, OfBody, OfRow, OfSubject
from dissector.filter.errors import FilterError, MisfitError, nearest
from dissector.filter.grammar import ComparisonSyntax, ExistenceSyntax, FilterWord, NegationSyntax, Syntax, read
from dissector.filter.message_fields import by_last, headers, kind_of, lookup
from dissector.filter.predicates import Predicate, predicate
from dissector.filter.row_field_kinds import counts_nanoseconds, kind_of_row_field
from dissector.filter.value_types import ValueKind, ValueType, is_time


@dataclass(frozen=True)
class Filter:
    """A filter that has a meaning."""

    text: str
    condition: Condition

    @property
    def is_of_index(self) -> bool:
        """Whether it needs no decoding, but for the odd row for which the index can't say."""
        return self.condition.is_of_index

    @property
    def asks_findings(self) -> bool:
        """Whether it is about findings, of which only an examined capture has all."""
        return self.condition.asks_findings

    @property
    def reads_row_summaries(self) -> bool:
        """Whether it reads the findings or errors of single rows, which a capture keeps once it has them."""
        return self.condition.reads_row_summaries

    def matches(self, exchange: Exchange, start_ns: int = 0) -> bool:
        """Whether an exchange fits; `start_ns` is the time that relative times count from."""
        return self.condition.holds(exchange, start_ns)

    def answers(self, rows: IndexRows) -> UInt8:
        """The answers of columns of the index, `(n,)`: 0 for no, 2 for yes, 1 for rows that must be decoded."""
        return self.condition.answers(rows)


def parse(text: str) -> Filter:
    """The filter that a text is. Raises `FilterError`."""
    return Filter(text, _Meaning(text).of(read(text)))


class _Meaning:
    def __init__(self, text: str) -> None:
        self._text = text

    def of(self, tree: Syntax) -> Condition:
        if isinstance(tree, NegationSyntax):
            return Negated(self.of(tree.of))
        if isinstance(tree, ComparisonSyntax):
            return self._test(tree.name, tree)
        if isinstance(tree, ExistenceSyntax):
            return self._test(tree.name, None)
        parts = [self.of(part) for part in tree.parts]
        return Joined(tuple(sorted(parts, key=lambda part: not part.is_of_index)), tree.every)

    def _test(self, name: FilterWord, asked: ComparisonSyntax | None) -> Condition:
        try:
            field = ROW_FIELDS.get(name.text)
            if field is not None:
                return _of_row(field, name.text, asked)
            places = lookup(name.text)
            if not places:
                raise MisfitError(name.column, f"unknown field {name.text!r}", near_names(name.text))
            return _of_body(places, asked)
        except MisfitError as error:
            raise FilterError(self._text, error.column, error.message, error.near) from None


def _predicate(kind: ValueKind, asked: ComparisonSyntax | None) -> Predicate | None:
    return None if asked is None else predicate(kind, asked.operator, asked.values)


def _of_row(field: RowField, name: str, asked: ComparisonSyntax | None) -> Condition:
    kind = kind_of_row_field(field, name)
    if field.subject is not None:
        return OfSubject(field, field.subject, _predicate(kind, asked))
    if asked is None or kind.type is not ValueType.TIME:
        return OfRow(field, _predicate(kind, asked))
    bare = counts_nanoseconds(field, name)
    absolute = [
        is_time(FilterWord(part, 0)) or (bare and part.isdecimal())
        for word in asked.values
        for part in word.text.split("..")
    ]
    if any(absolute) and not all(absolute):
        raise MisfitError(asked.values[0].column, "dates and times since the start can't be mixed")
    return OfRow(field, _predicate(kind, asked), is_relative=not any(absolute))


def _of_body(places: Sequence[FieldPlace], asked: ComparisonSyntax | None) -> Condition:
    """A test of every place that the words can be compared with; a `MisfitError` where that is none."""
    misfits: list[MisfitError] = []
    predicates: dict[ValueKind, Predicate | None] = {}
    looks: dict[tuple[str, str], dict[Path, FieldTest]] = {}
    api_keys: dict[str, set[int | None]] = {}
    for place in places:
        kind = kind_of(place)
        if kind not in predicates:
            try:
                predicates[kind] = _predicate(kind, asked)
            except MisfitError as error:
                misfits.append(_with_fields(error, place))
                continue
        look = FieldTest(place.path, place.opened, predicates[kind])
        looks.setdefault((place.side, place.message), {})[place.path] = look
        api_keys.setdefault(place.side, set()).add(place.api_key)
    if not looks:
        raise max(misfits, key=lambda error: len(error.near))
    return OfBody(
        {which: tuple(some.values()) for which, some in looks.items()},
        {side: frozenset(keys) for side, keys in api_keys.items()},
    )


def _with_fields(error: MisfitError, place: FieldPlace) -> MisfitError:
    """A structure has fields to name."""
    if place.type != STRUCT or error.near:
        return error
    return MisfitError(error.column, error.message, tuple(sorted(_fields_below(place)))[:5])


def _fields_below(place: FieldPlace) -> Iterable[str]:
    depth = len(place.called)
    every = (each for some in by_last(place.side).values() for each in some)
    return {
        each.called[depth] for each in every
        if each.message == place.message and len(each.called) == depth + 1 and each.called[:depth] == place.called
    }  # fmt: skip


def near_names(name: str) -> tuple[str, ...]:
    """The names nearest to one that nothing is called."""
    side, dot, rest = name.partition(".")
    if side not in SIDES:
        side, dot, rest = "", "", name
    depth = rest.count(".") + 1
    names: dict[str, None] = {} if dot else dict.fromkeys(ROW_FIELDS)
    for each in (side,) if side else SIDES:
        found = (place for some in by_last(each).values() for place in some)
        for place in (*found, *headers(each)):
            for called in (place.called[-depth:], place.called):
                names[f"{side}{dot}{'.'.join(called)}"] = None
    return nearest(name, names)
