"""Complete filters at the cursor: names from the schema, one level at a time, operators, values.

The text before the cursor is read token by token, as it is rarely a valid filter. Names are those of APIs that the
filter can still match: after ``api == Fetch &&`` only those of Fetch.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from dissector.exchange.field_paths import SIDES, STRUCT, FieldPlace, Path, places
from dissector.exchange.row_fields import ROW_FIELDS
from dissector.filter.message_fields import BODY, HEADER, headers, lookup, value_kind
from dissector.filter.predicates import ORDERS
from dissector.filter.record_fields import RECORD, RECORD_FIELDS, is_record_name, record_field
from dissector.filter.value_types import ValueKind, ValueType, row_field_kind
from dissector.protocol.schema.enums import API_KEY, ERROR_CODE
from dissector.protocol.schema.errors import known_errors
from dissector.protocol.schema.loader import api, api_named, apis

MOST: Final = 50
"""Completions, at most."""
_TOKEN: Final = re.compile(
    r"""\s*(?:(?P<join>&&|\|\||and(?![\w.])|or(?![\w.]))|(?P<not>!(?!=)|not(?![\w.])|exists(?![\w.]))|(?P<open>\()"""
    r"""|(?P<close>\))|(?P<operator>==|!=|<=|>=|<|>|contains(?![\w.])|matches(?![\w.])|in(?![\w.]))"""
    r"""|(?P<brace>[{},])|(?P<quoted>"(?:\\.|[^"\\])*"?|'(?:\\.|[^'\\])*'?)|(?P<word>[^\s(){},&|!<>="']+)|(?P<other>[^\s]))""",
    re.IGNORECASE | re.DOTALL,
)
_WORD: Final = re.compile(r"[^\s(){},&|!<>=\"']*")
_OPERATORS: Final = {
    "==": "any value is", "!=": "any value is not", "<": "below", "<=": "at most", ">": "above", ">=": "at least",
    "in": "one of {a, b, 10..20}", "contains": "has this in it", "matches": "regular expression, whatever the case",
}  # fmt: skip
_JOINS: Final = {"&&": "and", "||": "or"}
_EXAMPLES: Final = {
    ValueType.DURATION: ("10ms", "100ms", "1s"), ValueType.TIME: ("1s", "1m"), ValueType.BOOLEAN: ("true", "false"),
}  # fmt: skip
ApiKeys = frozenset[int] | None
"""API keys that the filter can still match; None for all."""


class Completion(NamedTuple):
    """Replace ``text[start:end]`` by `text`; `words` describe it."""

    start: int
    end: int
    text: str
    words: str


class _Typed(NamedTuple):
    """The text before the cursor: what is expected next, and the part of it that is typed already."""

    expected: str
    """``name``, ``operator``, ``value``, ``set`` (an opening brace), ``more`` (values of a set) or ``join``."""
    part: str
    name: str
    """The last name; `operator` is the one after it."""
    operator: str
    api_keys: ApiKeys


def complete(text: str, cursor: int, record_paths: Sequence[str] = ()) -> list[Completion]:
    """Return at most `MOST` completions at the cursor (0 to the length of the text): those that begin with what is
    typed, then those that contain it. `record_paths` are paths that records have: ``value.order.id``."""
    cursor = min(max(cursor, 0), len(text))
    typed = _typed(text[:cursor])
    rest = _WORD.match(text, cursor) if _WORD.fullmatch(typed.part) and typed.part else None
    end = rest.end() if rest else cursor
    start = cursor - len(typed.part)
    return [Completion(start, end, word, words) for word, words in _candidates(typed, record_paths)]


def _typed(text: str) -> _Typed:
    """Read all tokens; the last one, if the cursor touches it, is being typed."""
    tokens = [(found.lastgroup or "", found[found.lastgroup or 0]) for found in _TOKEN.finditer(text)]
    part = ""
    if tokens and tokens[-1][0] in ("word", "quoted", "other") and text.endswith(tokens[-1][1]):
        part = tokens.pop()[1]
    expected, name, operator, braces = "name", "", "", False
    scopes: list[tuple[ApiKeys, ApiKeys]] = [(None, None)]
    """For each open parenthesis: the APIs that can match where it begins, and now."""
    negated = False
    for kind, token in tokens:
        if kind == "open":
            scopes.append((scopes[-1][1], scopes[-1][1]))
        elif kind == "close" and len(scopes) > 1:
            scopes.pop()
            expected = "join"
        elif kind == "join":
            outer, now = scopes[-1]
            scopes[-1] = (outer, outer if token in ("||", "or") else now)
            expected, negated = "name", False
        elif kind == "not":
            negated = token.casefold() in ("!", "not")
            expected = "join" if expected == "operator" else expected  # `exists` behind the name
        elif kind == "operator":
            operator = token.casefold()
            expected = "set" if operator == "in" else "value"
        elif kind == "brace":
            braces = token != "}"
            expected = "value" if braces else "join"
        elif expected == "value":
            if name == "api" and operator == "==" and not negated:
                scopes[-1] = (scopes[-1][0], _narrowed(scopes[-1][1], token))
            expected = "more" if braces else "join"
        elif kind in ("word", "quoted"):
            name, expected = token, "operator"
    return _Typed(expected, part, name, operator, scopes[-1][1])


def _narrowed(before: ApiKeys, name: str) -> ApiKeys:
    known = api_named(name)
    if known is None:
        return before
    keys = frozenset((known.key,))
    return keys if before is None else keys & before


def _candidates(typed: _Typed, record_paths: Sequence[str]) -> list[tuple[str, str]]:
    match typed.expected:
        case "name" if typed.part.startswith(f"{RECORD}."):
            return _best(typed.part, _record_names(record_paths))
        case "name":
            return _names(typed.part, typed.api_keys)
        case "operator":
            return _best(typed.part, [*_operators(typed.name), *_JOINS.items()])
        case "value" if typed.operator not in ("contains", "matches"):
            return _best(typed.part, _values(typed.name))
        case "join":
            return _best(typed.part, _JOINS.items())
        case "set":
            return _best(typed.part, (("{", "values, and ranges such as 10..20"),))
        case "more":
            return _best(typed.part, ((",", "another value"), ("}", "no more values")))
    return []


def _best(part: str, words: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return the words that begin with what is typed, then those that contain it."""
    folded = part.casefold()
    found = [(folded not in word.casefold()[: len(folded)], at, (word, description))
             for at, (word, description) in enumerate(words) if folded in word.casefold()]  # fmt: skip
    return [each for _, _, each in sorted(found, key=lambda row: row[:2])[:MOST]]


def _names(part: str, api_keys: ApiKeys) -> list[tuple[str, str]]:
    """Return row fields, and field paths one level below what is typed up to the last dot."""
    above, dot, last = part.rpartition(".")
    words: dict[str, str] = {}
    for name in _row_field_names():
        field = ROW_FIELDS[name]
        if dot == "" or name.startswith(f"{above}."):
            kind = row_field_kind(field)
            has_values = kind.type is not ValueType.STRUCT
            words[name] = f"{field.description} ({kind.words})" if has_values else field.description
    if not dot:
        words |= {f"{side}.": f"the fields of the {side}" for side in SIDES}
        words |= {f"{RECORD}.": "the records that it carries: key, value, headers, …"}
    if dot or last:
        found = _below(above.split(".") if dot else [], last, api_keys)
        for name in sorted(found):
            words.setdefault(f"{above}{dot}{name}", "")
    best = _best(part, words.items())
    return [(name, description or _described(name, api_keys)) for name, description in best]


def _record_names(paths: Sequence[str]) -> Iterator[tuple[str, str]]:
    yield from ((name, field.words) for name, field in RECORD_FIELDS.items() if name != RECORD)
    yield from ((f"{RECORD}.{path}", "seen in records") for path in paths)


def _row_field_names() -> list[str]:
    """Return all names and aliases in the order of the registry, but a name before those that only extend it."""
    places = {name: place for place, name in enumerate(ROW_FIELDS)}
    return sorted(
        places, key=lambda name: (min(place for other, place in places.items() if other.startswith(name)), len(name))
    )


def _below(above: list[str], last: str, api_keys: ApiKeys) -> set[str]:
    """Return the names one level below a path, structures with a final dot; from anywhere in messages, if part of the
    name is typed."""
    sides = (above[0],) if above and above[0] in SIDES else SIDES
    path = tuple(above[1:] if above and above[0] in SIDES else above)
    names = set()
    for side in sides:
        if above == [side]:
            names |= {f"{HEADER}.", f"{BODY}."}
        if path == (HEADER,):
            names |= {place.path[-1] for place in headers(side)}
            continue
        anchored = path[:1] == (BODY,)
        parent = path[1:] if anchored else path
        for place in _possible_places(side, api_keys):
            if _is_below(place, parent, anchored=anchored, anywhere=bool(last)):
                names.add(place.called[-1] + ("." if place.type == STRUCT else ""))
    return names


def _is_below(place: FieldPlace, parent: Path, *, anchored: bool, anywhere: bool) -> bool:
    depth = len(parent)
    if anchored or (not depth and not anywhere):
        return place.called[:-1] == parent
    return len(place.called) > depth and place.called[len(place.called) - 1 - depth : -1] == parent


def _possible_places(side: str, api_keys: ApiKeys) -> Iterator[FieldPlace]:
    every = places(side)
    return iter(every) if api_keys is None else (place for place in every if place.api_key in api_keys)


def _described(name: str, api_keys: ApiKeys) -> str:
    """Describe a path: its types, and the APIs that have it, with versions."""
    places = [place for place in lookup(name.rstrip(".")) if api_keys is None or place.api_key in api_keys]
    types = dict.fromkeys(value_kind(place).words for place in places)
    keys: dict[int, FieldPlace] = {}
    for place in places:
        if place.api_key is not None:
            keys.setdefault(place.api_key, place)
    places_by_api = [
        f"{known.name} {_versions(place)}" for key, place in keys.items() if (known := api(key)) is not None
    ]
    more = f" and {len(places_by_api) - 3} more" if len(places_by_api) > 3 else ""
    return " · ".join(filter(None, (" or ".join(types), ", ".join(places_by_api[:3]) + more)))


def _versions(place: FieldPlace) -> str:
    known = api(place.api_key) if place.api_key is not None else None
    return f"v{place.versions.intersect(known.versions)}" if known else f"v{place.versions}"


def _kinds(name: str) -> list[ValueKind]:
    field = ROW_FIELDS.get(name)
    if field is not None:
        return [row_field_kind(field, name)]
    if is_record_name(name):
        of_record = record_field(name)
        return [] if of_record is None else [of_record.kind]
    return list(dict.fromkeys(value_kind(place) for place in lookup(name)))


def _operators(name: str) -> Iterator[tuple[str, str]]:
    kinds = [kind for kind in _kinds(name) if kind.type is not ValueType.STRUCT]
    for operator, words in _OPERATORS.items():
        if operator in ORDERS:
            applies = any(
                kind.ordered and (kind.is_number or kind.type in (ValueType.FLOAT, ValueType.ANY)) for kind in kinds
            )
        elif operator in ("contains", "matches"):
            applies = any(not kind.is_number or kind.enum for kind in kinds if kind.type is not ValueType.BOOLEAN)
        else:
            applies = bool(kinds)
        if applies:
            yield operator, words


def _values(name: str) -> Iterator[tuple[str, str]]:
    """Yield names of numbers, valid texts, and examples of values with units."""
    for kind in _kinds(name):
        if kind.enum == API_KEY:
            yield from ((each.name, f"key {each.key}, v{each.versions}") for each in apis())
        elif kind.enum == ERROR_CODE:
            for each in known_errors().values():
                yield each.name, f"{each.code}{', retriable' if each.retriable else ''}"
        elif kind.enum:
            yield from ((word, f"{number}, {kind.enum}") for number, word in kind.members.items())
        yield from ((word, kind.words) for word in (*kind.names, *_EXAMPLES.get(kind.type, ())))
