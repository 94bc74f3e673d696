"""What may stand where somebody types: names from the schema tables, one level at a time, operators, values.

The text left of the cursor is read token by token, whatever it is: it is mostly not a filter yet. Names are those of
messages of the APIs that it leaves, after ``api == Fetch &&`` those of Fetch alone.
"""

import re
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Final, NamedTuple

from dissector.exchange.field_paths import SIDES, STRUCT, FieldPlace, Path
from dissector.exchange.row_fields import ROW_FIELDS
from dissector.filter.message_fields import BODY, HEADER, by_last, headers, kind_of, lookup
from dissector.filter.predicates import ORDERS
from dissector.filter.row_field_kinds import kind_of_row_field
from dissector.filter.value_types import ValueKind, ValueType
from dissector.protocol.schema.enums import API_KEY, ERROR_CODE
from dissector.protocol.schema.errors import known_errors
from dissector.protocol.schema.loader import api, api_named, apis

MOST: Final = 50
"""Candidates."""
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
"""Which APIs are left; None: all."""


class Completion(NamedTuple):
    """Replace ``text[start:end]`` by `text`; `words` say what it is."""

    start: int
    end: int
    text: str
    words: str


class _Typed(NamedTuple):
    """What stands left of the cursor: what is expected there, and what of it is typed already."""

    expected: str
    """``name``, ``operator``, ``value``, ``set`` (an opening brace), ``more`` (another value of it) or ``join``."""
    part: str
    name: str
    """The last name; `operator`, what stands behind it."""
    operator: str
    api_keys: ApiKeys


def complete(text: str, cursor: int) -> list[Completion]:
    """What may stand at the cursor (0 to the text's length), likeliest first, at most `MOST`: what begins with what is
    typed, then what has it inside."""
    cursor = min(max(cursor, 0), len(text))
    typed = _typed(text[:cursor])
    rest = _WORD.match(text, cursor) if _WORD.fullmatch(typed.part) and typed.part else None
    end = rest.end() if rest else cursor
    start = cursor - len(typed.part)
    return [Completion(start, end, word, words) for word, words in _candidates(typed)]


def _typed(text: str) -> _Typed:
    """Read all tokens; the last one, if the cursor touches it, is what is being typed."""
    tokens = [(found.lastgroup or "", found[found.lastgroup or 0]) for found in _TOKEN.finditer(text)]
    part = ""
    if tokens and tokens[-1][0] in ("word", "quoted", "other") and text.endswith(tokens[-1][1]):
        part = tokens.pop()[1]
    expected, name, operator, braces = "name", "", "", False
    scopes: list[tuple[ApiKeys, ApiKeys]] = [(None, None)]
    """Of each parenthesis that is open: the APIs left where it began, and now."""
    negated = False
    for kind, token in tokens:
        if kind == "open":
            scopes.append((scopes[-1][1], scopes[-1][1]))
        elif kind == "close" and len(scopes) > 1:
            scopes.pop()
            expected = "join"
        elif kind == "join":
            began, now = scopes[-1]
            scopes[-1] = (began, began if token in ("||", "or") else now)
            expected, negated = "name", False
        elif kind == "not":
            negated = token.casefold() in ("!", "not")
        elif kind == "operator":
            operator = token.casefold()
            expected = "set" if operator == "in" else "value"
        elif kind == "brace":
            braces = token != "}"
            expected = "value" if braces else "join"
        elif expected == "value":
            if name == "api" and operator == "==" and not negated:
                scopes[-1] = (scopes[-1][0], _left(scopes[-1][1], token))
            expected = "more" if braces else "join"
        elif kind in ("word", "quoted"):
            name, expected = token, "operator"
    return _Typed(expected, part, name, operator, scopes[-1][1])


def _left(before: ApiKeys, name: str) -> ApiKeys:
    known = api_named(name)
    if known is None:
        return before
    keys = frozenset((known.key,))
    return keys if before is None else keys & before


def _candidates(typed: _Typed) -> list[tuple[str, str]]:
    match typed.expected:
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
    """What begins with what is typed, then what has it inside."""
    folded = part.casefold()
    found = [(folded not in word.casefold()[: len(folded)], at, (word, said))
             for at, (word, said) in enumerate(words) if folded in word.casefold()]  # fmt: skip
    return [each for _, _, each in sorted(found, key=lambda row: row[:2])[:MOST]]


def _names(part: str, api_keys: ApiKeys) -> list[tuple[str, str]]:
    """Fields of rows, and paths: below what is typed up to its last dot, one level."""
    above, dot, last = part.rpartition(".")
    words: dict[str, str] = {}
    for name in _row_field_names():
        field = ROW_FIELDS[name]
        if dot == "" or name.startswith(f"{above}."):
            kind = kind_of_row_field(field)
            has_values = kind.type is not ValueType.STRUCT
            words[name] = f"{field.description} ({kind.words})" if has_values else field.description
    if not dot:
        words |= {f"{side}.": f"the fields of the {side}" for side in SIDES}
    if dot or last:
        found = _below(above.split(".") if dot else [], last, api_keys)
        for name in sorted(found):
            words.setdefault(f"{above}{dot}{name}", "")
    best = _best(part, words.items())
    return [(name, said or _described(name, api_keys)) for name, said in best]


def _row_field_names() -> list[str]:
    """All names and aliases in the order of the registry, but a name before those that only extend it."""
    places = {name: place for place, name in enumerate(ROW_FIELDS)}
    return sorted(
        places, key=lambda name: (min(place for other, place in places.items() if other.startswith(name)), len(name))
    )


def _below(above: list[str], last: str, api_keys: ApiKeys) -> set[str]:
    """The names one level below a path, structures with a dot behind them; anywhere in messages, where something of
    the name is typed."""
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
        to = path[1:] if anchored else path
        for place in _left_places(side, api_keys):
            if _is_below(place, to, anchored=anchored, anywhere=bool(last)):
                names.add(place.called[-1] + ("." if place.type == STRUCT else ""))
    return names


def _is_below(place: FieldPlace, to: Path, *, anchored: bool, anywhere: bool) -> bool:
    depth = len(to)
    if anchored or (not depth and not anywhere):
        return place.called[:-1] == to
    return len(place.called) > depth and place.called[len(place.called) - 1 - depth : -1] == to


def _left_places(side: str, api_keys: ApiKeys) -> Iterator[FieldPlace]:
    places = _all_places(side)
    return iter(places) if api_keys is None else (place for place in places if place.api_key in api_keys)


@cache
def _all_places(side: str) -> tuple[FieldPlace, ...]:
    return tuple(place for some in by_last(side).values() for place in some)


def _described(name: str, api_keys: ApiKeys) -> str:
    """The types of a path, and which APIs have it, in which versions."""
    places = [place for place in lookup(name.rstrip(".")) if api_keys is None or place.api_key in api_keys]
    types = dict.fromkeys(kind_of(place).words for place in places)
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
        return [kind_of_row_field(field, name)]
    return list(dict.fromkeys(kind_of(place) for place in lookup(name)))


def _operators(name: str) -> Iterator[tuple[str, str]]:
    kinds = [kind for kind in _kinds(name) if kind.type is not ValueType.STRUCT]
    for operator, words in _OPERATORS.items():
        if operator in ORDERS:
            fits = any(
                kind.ordered and (kind.is_number or kind.type in (ValueType.FLOAT, ValueType.ANY)) for kind in kinds
            )
        elif operator in ("contains", "matches"):
            fits = any(not kind.is_number or kind.enum for kind in kinds if kind.type is not ValueType.BOOLEAN)
        else:
            fits = bool(kinds)
        if fits:
            yield operator, words


def _values(name: str) -> Iterator[tuple[str, str]]:
    """Names of numbers, choices, and examples of what has units."""
    for kind in _kinds(name):
        if kind.enum == API_KEY:
            yield from ((each.name, f"key {each.key}, v{each.versions}") for each in apis())
        elif kind.enum == ERROR_CODE:
            for each in known_errors().values():
                yield each.name, f"{each.code}{', retriable' if each.retriable else ''}"
        elif kind.enum:
            yield from ((word, f"{number}, {kind.enum}") for number, word in kind.members.items())
        yield from ((word, kind.words) for word in (*kind.names, *_EXAMPLES.get(kind.type, ())))
