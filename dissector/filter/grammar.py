"""The grammar of filters: from text to a syntax tree.

``!``, ``&&``, ``||`` bind in this order, as in Wireshark; ``not``, ``and``, ``or`` are the same. After an operator any
bare word is a value, even ``not``. A name by itself tests whether the field exists, as with ``exists`` before or behind
it. Names inside records may have dashes: ``record.headers.x-request-id``.

Invariants:
  * any text gives a tree or a `FilterError`: length and depth are bounded;
  * every word has its column.
"""

import re
from dataclasses import dataclass
from functools import cache
from typing import Final, cast

from lark import Lark, Token, Transformer
from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken

from dissector.core.times import NANOSECONDS
from dissector.filter.errors import FilterError

BYTES: Final = {
    "B": 1, "k": 10**3, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "kB": 10**3, "KB": 10**3, "MB": 10**6,
    "GB": 10**9, "TB": 10**12, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "KiB": 2**10, "MiB": 2**20,
    "GiB": 2**30, "TiB": 2**40,
}  # fmt: skip
"""Units of sizes and of numbers; decimal ones as the list of rows prints them."""
UNITS: Final = NANOSECONDS.keys() | BYTES.keys()
LONGEST: Final = 1 << 16
"""Characters of a filter, at most."""
DEEPEST: Final = 100
"""Depth of the syntax tree, at most."""
GRAMMAR: Final = r"""
    start: any
    ?any: all (_OR all)*
    ?all: _one (_AND _one)*
    _one: negation | "(" any ")" | comparison | membership | existence
    negation: _NOT _one
    comparison: NAME (COMPARES | CONTAINS | MATCHES) value
    membership: NAME IN "{" value ("," value)* "}"
    existence: _EXISTS NAME | NAME _EXISTS?
    value: QUOTED | WORD

    _OR.2: "||" | /or(?![\w.])/i
    _AND.2: "&&" | /and(?![\w.])/i
    _NOT.2: /!(?!=)|not(?![\w.])/i
    IN.2: /in(?![\w.])/i
    _EXISTS.2: /exists(?![\w.])/i
    CONTAINS.2: /contains(?![\w.])/i
    MATCHES.2: /matches(?![\w.])/i
    COMPARES.2: /==|!=|<=|>=|<|>/
    NAME: /record\.(?:key|value|headers)\.[\w.$@-]+|[A-Za-z_][\w.]*/
    QUOTED: /"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'/s
    WORD: /[^\s(){},&|!<>="']+/
    %ignore /\s+/
"""
EXPECTED: Final = {
    "_OR": "||", "_AND": "&&", "IN": "in", "CONTAINS": "contains", "MATCHES": "matches", "COMPARES": "==",
    "LPAR": "(", "RPAR": ")", "LBRACE": "{", "RBRACE": "}", "COMMA": ",", "NAME": "a name", "WORD": "a value",
}  # fmt: skip
"""Suggestions for the terminals of the grammar; obvious ones are not suggested."""
_NUMBER_BEFORE: Final = re.compile(r"(?<!\S)(\d+(?:\.\d+)?)\s+$", re.ASCII)
_NAME_BEFORE: Final = re.compile(r"(?<![\w.])([A-Za-z_][\w.]*)\s+$", re.ASCII)
_CORRECTIONS: Final = {
    "=": "==", "&": "&&", "|": "||", "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=",
    "is": "==", "equals": "==", "like": "contains", "~": "matches",
}  # fmt: skip
"""What is meant by other spellings, of which Wireshark has some."""
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r"}


@dataclass(frozen=True, slots=True)
class FilterWord:
    """A name, an operator or a value (`text` is without its quotes)."""

    text: str
    column: int
    quoted: bool = False


@dataclass(frozen=True, slots=True)
class ComparisonSyntax:
    """A name, an operator and one value, or for ``in`` one or more."""

    name: FilterWord
    operator: FilterWord
    values: tuple[FilterWord, ...]


@dataclass(frozen=True, slots=True)
class ExistenceSyntax:
    """A name by itself."""

    name: FilterWord


@dataclass(frozen=True, slots=True)
class NegationSyntax:
    """A negated expression."""

    operand: "Syntax"


@dataclass(frozen=True, slots=True)
class JoinSyntax:
    """Expressions joined by ``&&`` (`every`) or by ``||``."""

    parts: tuple["Syntax", ...]
    every: bool


Syntax = ComparisonSyntax | ExistenceSyntax | NegationSyntax | JoinSyntax


def read(text: str) -> Syntax:
    """Parse a filter. Raises `FilterError`."""
    if len(text) > LONGEST:
        raise FilterError(text, LONGEST, f"a filter has at most {LONGEST:,} characters")
    if not text.strip():
        raise FilterError(text, 0, "the filter is empty")
    try:
        tree = cast(Syntax, _parser().parse(text))  # the transformer returns it
    except UnexpectedInput as error:
        raise _unexpected(text, error) from None
    if _depth(tree) > DEEPEST:
        raise FilterError(text, 0, f"more than {DEEPEST} levels of parentheses")
    return tree


def unquoted(text: str) -> str:
    r"""Return the text of a quoted value: ``\"``, ``\\``, ``\n``, ``\t``, ``\r`` and ``\u{1b}`` are escapes."""
    found, at, end = [], 1, len(text) - 1
    while at < end:
        char = text[at]
        if char == "\\":
            at += 1
            char = text[at]
            close = text.find("}", at)
            if text.startswith("u{", at) and 0 < close - at - 2 <= 6 and _is_hex(text[at + 2 : close]):
                number = int(text[at + 2 : close], 16)
                char, at = chr(min(number, 0x10FFFF)), close
            else:
                # Any other backslash stays: it belongs to a regular expression.
                char = _ESCAPES.get(char, char if char in "\"'\\" else "\\" + char)
        found.append(char)
        at += 1
    return "".join(found)


def _is_hex(text: str) -> bool:
    return text.isascii() and text.isalnum() and all(char in "0123456789abcdefABCDEF" for char in text)


class _Builder(Transformer[Token, Syntax]):
    """Builds the tree during parsing, so that deep nesting needs no recursion."""

    def start(self, parts: list[Syntax]) -> Syntax:
        return parts[0]

    def any(self, parts: list[Syntax]) -> Syntax:
        return JoinSyntax(tuple(parts), every=False)

    def all(self, parts: list[Syntax]) -> Syntax:
        return JoinSyntax(tuple(parts), every=True)

    def negation(self, parts: list[Syntax]) -> Syntax:
        [operand] = parts
        return operand.operand if isinstance(operand, NegationSyntax) else NegationSyntax(operand)

    def comparison(self, parts: list[Token | FilterWord]) -> Syntax:
        name, operator = (part for part in parts if isinstance(part, Token))
        values = tuple(part for part in parts if isinstance(part, FilterWord))
        return ComparisonSyntax(_word(name), FilterWord(operator.lower(), operator.start_pos or 0), values)

    membership = comparison

    def existence(self, parts: list[Token]) -> Syntax:
        return ExistenceSyntax(_word(parts[0]))

    def value(self, parts: list[Token]) -> FilterWord:
        [token] = parts
        if token.type == "QUOTED":
            return FilterWord(unquoted(token), token.start_pos or 0, quoted=True)
        return _word(token)


def _word(token: Token) -> FilterWord:
    return FilterWord(str(token), token.start_pos or 0)


@cache
def _parser() -> Lark:
    return Lark(GRAMMAR, parser="lalr", lexer="contextual", transformer=_Builder())


def _unexpected(text: str, error: UnexpectedInput) -> FilterError:
    column = min(max(error.pos_in_stream or 0, 0), len(text))
    if isinstance(error, UnexpectedToken):
        expected, found = error.expected, "" if error.token.type == "$END" else str(error.token)
    else:
        assert isinstance(error, UnexpectedCharacters)
        expected, found = error.allowed, text[column]
    near = tuple(word for name, word in EXPECTED.items() if name in expected and _may_follow(word, text[:column]))
    if not found:
        return FilterError(text, len(text), "incomplete filter", near, is_syntax=True)
    if found in "\"'":
        return FilterError(text, column, "unterminated quote")
    if found in _CORRECTIONS and text[column : column + 2] != _CORRECTIONS[found]:
        return FilterError(text, column, f"unexpected {found!r}", (_CORRECTIONS[found],))
    name = _NAME_BEFORE.search(text[:column])
    if name and "COMPARES" in expected and (found[0].isalnum() or found[0] == "_"):
        return FilterError(text, column, f"no operator after {name[1]}", (f"{name[1]} == {found}",))
    number = _NUMBER_BEFORE.search(text[:column])
    if number and found in UNITS:
        return FilterError(text, column, f"a space before the unit {found}", (number[1] + found,))
    return FilterError(text, column, f"unexpected {found!r}", near, is_syntax=True)


def _may_follow(word: str, before: str) -> bool:
    """Return whether a closing bracket or a comma has an opening bracket before it."""
    opened = {")": "(", "}": "{", ",": "{"}.get(word)
    return opened is None or before.count(opened) > before.count(")" if opened == "(" else "}")


def _depth(tree: Syntax) -> int:
    """Return the depth of a tree, without recursion: it may be deeper than Python's limit."""
    level, depth = [tree], 0
    while level:
        depth += 1
        level = [part for each in level for part in _parts(each)]
    return depth


def _parts(tree: Syntax) -> tuple[Syntax, ...]:
    if isinstance(tree, NegationSyntax):
        return (tree.operand,)
    return tree.parts if isinstance(tree, JoinSyntax) else ()
