"""What numbers on the wire are called: ``operation: 3`` is ``READ``.

`enums.json` is printed from Apache's own classes by `make schemas`; `enum_additions.json` has by hand, each with its
source, what no enum there says, and adds to an imported one where both have its name. `enum_fields.json` says which
field has which enum. Error codes (`errors.json`) and API keys (the index of tables) are enums like all others.

Invariants:
  * an unknown number is no mistake, a newer release may have sent it: it has the name ``UNKNOWN(42)``;
  * where only some numbers are special (``members`` is ``special``: a timestamp of -2, an epoch of -1), all others mean
    themselves and have no name;
  * a field's name means one enum within a message, wherever it stands there.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase
from functools import cache, lru_cache
from types import MappingProxyType
from typing import Final

from dissector.protocol.schema.errors import known_errors
from dissector.protocol.schema.loader import apis
from dissector.protocol.schema.model import SchemaError
from dissector.protocol.schema.resources import read_json

ERROR_CODE: Final = "ErrorCode"
API_KEY: Final = "ApiKey"
BITS_OF_INT32: Final = 32


class MemberKind(StrEnum):
    """What the names of an enum are to its numbers."""

    ALL = "all"
    """Every number has a name, or is unknown."""
    SPECIAL = "special"
    """Some numbers have one; the others are just numbers."""
    BITS = "bits"
    """A set: bit n stands for number n of another enum. Numbers that have a name are no sets."""


@dataclass(frozen=True, slots=True)
class _Enum:
    members: MemberKind
    names: Mapping[int, str]
    bits: Mapping[int, str]
    """Of `BITS` only: the names by the number of the bit."""


def name_of(enum: str, number: int) -> str:
    """``READ`` for 3, ``READ, WRITE`` for a set, ``UNKNOWN(42)`` for an unknown number, nothing for a plain one."""
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
    """The number of a name, whatever its case: what a filter compares with. Of a set's member, its bit's value."""
    return _numbers(enum).get(name.casefold())


def members(enum: str) -> Mapping[int, str]:
    """All names by their numbers; of a set, the names of its bits by their values too."""
    found = _enums()[enum]
    return MappingProxyType({**{1 << n: name for n, name in found.bits.items()}, **found.names})


def enums() -> tuple[str, ...]:
    """The names of all enums."""
    return tuple(_enums())


@lru_cache(maxsize=8192)
def enum_of(message: str, path: str) -> str | None:
    """The enum of a field, by its message's name in the tables and its way there: ``("CreateAclsRequest",
    "creations[0].operation")``. None: its numbers are just numbers, or its values no numbers at all."""
    last = path.rpartition(".")[2].partition("[")[0]
    field = f"{message}.{last}"
    return next((enum for pattern, enum in field_patterns().items() if fnmatchcase(field, pattern)), None)


def field_patterns() -> Mapping[str, str]:
    """Patterns of ``Message.field`` with the enum of the fields that match; no field matches two."""
    return _field_tables()[0]


def plain_fields() -> Mapping[str, str]:
    """Patterns of fields that look like enums and are none, each with the reason."""
    return _field_tables()[1]


@cache
def _numbers(enum: str) -> dict[str, int]:
    return {name.casefold(): number for number, name in members(enum).items()}


@cache
def _enums() -> dict[str, _Enum]:
    """Imported ones, with the facts added to them; then those that other tables have."""
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
