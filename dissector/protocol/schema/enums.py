"""Names of numbers in fields: ``operation: 3`` is ``READ``.

`enums.json` is printed from Apache's classes by `make schemas`. `enum_additions.json` is written by hand, each entry
with its source: enums that Apache has no class for, and members to add to imported enums. `enum_fields.json` maps
fields to enums. Error codes (`errors.json`) and API keys (the index of tables) are enums like all others.

Invariants:
  * an unknown number is not an error, as a newer release may have sent it: its name is ``UNKNOWN(42)``;
  * if only some numbers are special (``members`` is ``special``: a timestamp of -2, an epoch of -1), the others are
    plain numbers without a name;
  * within a message, fields of the same name have the same enum.
"""

from collections.abc import Mapping
from enum import StrEnum
from fnmatch import fnmatchcase
from functools import cache, lru_cache
from types import MappingProxyType
from typing import Final, NamedTuple

from dissector.protocol.schema.errors import known_errors
from dissector.protocol.schema.loader import apis
from dissector.protocol.schema.model import SchemaError
from dissector.protocol.schema.resources import read_json

ERROR_CODE: Final = "ErrorCode"
API_KEY: Final = "ApiKey"
BITS_OF_INT32: Final = 32
_ANY_FIELD: Final = "*"


class MemberKind(StrEnum):
    """Which numbers of an enum have names."""

    ALL = "all"
    """All; a number without a name is unknown."""
    SPECIAL = "special"
    """Some; the others are plain numbers."""
    BITS = "bits"
    """A bit set: bit n stands for number n of another enum. Numbers with a name are not sets."""


class _Enum(NamedTuple):
    members: MemberKind
    names: Mapping[int, str]
    bits: Mapping[int, str]
    """For `BITS`: names by number of the bit."""


def name_of(enum: str, number: int) -> str:
    """Return ``READ`` for 3, ``READ, WRITE`` for a set, ``UNKNOWN(42)`` if unknown, ``""`` for a plain number."""
    found = _enums()[enum]
    name = found.names.get(number)
    if name is not None:
        return name
    match found.members:
        case MemberKind.SPECIAL:
            return ""
        case MemberKind.BITS:
            return ", ".join(found.bits.get(n, f"UNKNOWN({n})") for n in range(BITS_OF_INT32) if number >> n & 1)
        case MemberKind.ALL:
            return f"UNKNOWN({number})"


def number_of(enum: str, name: str) -> int | None:
    """Return the number of a name, whatever its case, for filters. For a member of a set, the value of its bit."""
    return _numbers(enum).get(name.casefold())


def members(enum: str) -> Mapping[int, str]:
    """Return all names by number; for a set, also the names of its bits by value."""
    found = _enums()[enum]
    return MappingProxyType({**{1 << n: name for n, name in found.bits.items()}, **found.names})


def enums() -> tuple[str, ...]:
    """Return the names of all enums."""
    return tuple(_enums())


@lru_cache(maxsize=8192)
def enum_of(message: str, path: str) -> str | None:
    """Return the enum of a field by message and path: ``("CreateAclsRequest", "creations[0].operation")``.

    None if its values are plain numbers, or not numbers.
    """
    last = path.rpartition(".")[2].partition("[")[0]
    field, patterns = f"{message}.{last}", _patterns_by_field()
    fitting = (*patterns.get(last, ()), *patterns[_ANY_FIELD])
    return next((enum for pattern, enum in fitting if fnmatchcase(field, pattern)), None)


def field_patterns() -> Mapping[str, str]:
    """Return the enums by patterns of ``Message.field``; no field matches two patterns."""
    return _field_tables()[0]


def plain_fields() -> Mapping[str, str]:
    """Return patterns of fields that look like enums and are not, each with the reason."""
    return _field_tables()[1]


@cache
def _patterns_by_field() -> dict[str, list[tuple[str, str]]]:
    """The same by the name of the field that they end with; those that end with a part of it apart."""
    found: dict[str, list[tuple[str, str]]] = {_ANY_FIELD: []}
    for pattern, enum in field_patterns().items():
        last = pattern.rpartition(".")[2]
        found.setdefault(_ANY_FIELD if "*" in last else last, []).append((pattern, enum))
    return found


@cache
def _numbers(enum: str) -> dict[str, int]:
    return {name.casefold(): number for number, name in members(enum).items()}


@cache
def _enums() -> dict[str, _Enum]:
    """Return imported enums with their additions, then error codes and API keys."""
    found: dict[str, _Enum] = {}
    for file in ("enums.json", "enum_additions.json"):
        try:
            for name, row in read_json(file).items():
                known = found[name].names if name in found else {}
                names = {**known, **{int(number): word for number, word in row["names"].items()}}
                bits = found[row["of"]].names if "of" in row else {}
                found[name] = _Enum(MemberKind(row["members"]), dict(sorted(names.items())), bits)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise SchemaError(f"{file}: cannot be read: {error!r}") from error
    found[ERROR_CODE] = _Enum(MemberKind.ALL, {code: each.name for code, each in known_errors().items()}, {})
    found[API_KEY] = _Enum(MemberKind.ALL, {each.key: each.name for each in apis()}, {})
    return found


@cache
def _field_tables() -> tuple[dict[str, str], dict[str, str]]:
    raw = read_json("enum_fields.json")
    try:
        return dict(raw["fields"]), dict(raw["plain"])
    except (TypeError, KeyError, ValueError) as error:
        raise SchemaError(f"enum_fields.json: cannot be read: {error!r}") from error
