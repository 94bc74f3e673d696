"""Reads a table (the JSON of one message) as a `MessageSchema`, with all checks that a table must pass.

Invariants:
  * every mistake in a table is a `SchemaError` here, with the names of table and field, and not a failure in a decode;
  * an unknown key is a mistake and not ignored: a new Kafka release may have given it a meaning;
  * names are plain words (they become file names, and names in generated code), and the size of a schema is bounded:
    users import tables that are not ours.
"""

import re
from collections.abc import Mapping
from typing import Final, NoReturn

from dissector.protocol.schema.model import NONE, Default, Field, MessageSchema, SchemaError, Versions

FIXED_TYPES: Final = frozenset(
    ("bool", "int8", "int16", "uint16", "int32", "uint32", "int64", "float64", "uuid"),
)
VARIABLE_TYPES: Final = frozenset(("string", "bytes", "records"))
MESSAGE_TYPES: Final = frozenset(("request", "response", "header", "data", "metadata", "coordinator-key",
                                  "coordinator-value"))  # fmt: skip

_MESSAGE_KEYS: Final = frozenset((
    "apiKey", "type", "name", "listeners", "validVersions", "deprecatedVersions", "flexibleVersions",
    "latestVersionUnstable", "releases", "aliases", "commonStructs", "fields",
))  # fmt: skip
_FIELD_KEYS: Final = frozenset((
    "name", "type", "versions", "nullableVersions", "taggedVersions", "tag", "flexibleVersions", "default", "ignorable",
    "entityType", "mapKey", "zeroCopy", "aliases", "fields",
))  # fmt: skip

MOST_VERSIONS: Final = 1_000
MOST_FIELDS: Final = 10_000
"""Fields of a message; those of a common struct count at each use."""
MOST_LAYOUT_FIELDS: Final = 20_000
"""Fields of a message in all its versions; Apache's largest message has 600."""
MOST_DEPTH: Final = 12
MOST_KEY: Final = (1 << 15) - 1
"""API keys are INT16, ..."""
MOST_TAG: Final = (1 << 31) - 1
"""... and tags have five bytes at most."""
_RANGES: Final = {
    f"{sign}int{bits}": (0, 2**bits - 1) if sign else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    for bits in (8, 16, 32, 64) for sign in ("", "u")
}  # fmt: skip
_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,99}")

Table = Mapping[str, object]


def message_of(table: object, where: str) -> MessageSchema:
    """Return the message of a table; `where` names the table in errors (a file's name)."""
    return _Reader(where).message(table)


class _Reader:
    """Reads one table; has its common structs, and its name for errors."""

    def __init__(self, where: str) -> None:
        self._where = where
        self._common: dict[str, list[object]] = {}
        self._flexible = NONE
        self._open: list[str] = []
        self._count = 0
        self._used: set[str] = set()

    def message(self, raw: object) -> MessageSchema:
        table = self._table(raw, _MESSAGE_KEYS, "(message)")
        if self._text(table, "type", "(message)") not in MESSAGE_TYPES:
            self._fail("(message)", f"type {table['type']!r} is not known")
        valid = self._versions(table, "validVersions", "(message)")
        if not valid or str(valid).endswith("+"):
            self._fail("(message)", f"validVersions {valid} must be a closed range")
        if valid.high >= MOST_VERSIONS:
            self._fail("(message)", f"validVersions {valid} are too many")
        self._flexible = self._versions(table, "flexibleVersions", "(message)")
        for each in self._list(table, "commonStructs", "(message)"):
            struct = self._table(each, frozenset(("name", "versions", "fields")), "commonStructs")
            self._common[self._name(struct, "commonStructs")] = self._list(struct, "fields", "commonStructs")
        key = table.get("apiKey")
        if not isinstance(key, int | None) or (key is not None and not is_api_key(key)):
            self._fail("(message)", f"apiKey {_shortened(key)} is not a number from 0 to {MOST_KEY}")
        releases = table.get("releases", {})
        if not isinstance(releases, dict):
            self._fail("(message)", "releases is not an object")
        name = self._name(table, "(message)")
        if not name[0].isupper():
            self._fail("(message)", f"name {name!r} does not begin with a capital")
        fields = self._fields(self._list(table, "fields", "(message)"), "")
        if self._count * (valid.high - valid.low + 1) > MOST_LAYOUT_FIELDS:
            words = f"{self._count:,} fields in {valid.high - valid.low + 1:,} versions are too many"
            self._fail("(message)", f"{words}: at most {MOST_LAYOUT_FIELDS:,} in all")
        return MessageSchema(
            name=name,
            type=self._text(table, "type", "(message)"),
            api_key=key,
            valid_versions=valid,
            flexible_versions=self._flexible,
            fields=fields,
            deprecated_versions=self._versions(table, "deprecatedVersions", "(message)", NONE),
            latest_version_unstable=self._flag(table, "latestVersionUnstable", "(message)"),
            listeners=self._names(table, "listeners", "(message)"),
            common_structs=tuple(name for name in self._common if name in self._used),
            aliases=self._names(table, "aliases", "(message)"),
            releases={each: self._versions(releases, each, "releases") for each in releases},
        )

    def _fields(self, raw: list[object], above: str) -> tuple[Field, ...]:
        self._count += len(raw)
        if self._count > MOST_FIELDS:
            self._fail(above.removesuffix(".") or "(message)", f"more than {MOST_FIELDS:,} fields")
        fields = tuple(self._field(each, above) for each in raw)
        names: set[str] = set()
        tags: set[int] = set()
        for each in fields:
            if each.snake_name in names:
                self._fail(above + each.name, "stands twice")
            if each.tag is not None and each.tag in tags:
                self._fail(above + each.name, f"tag {each.tag} is taken")
            names.add(each.snake_name)
            tags |= {each.tag} if each.tag is not None else set()
        return fields

    def _field(self, raw: object, above: str) -> Field:
        name = raw.get("name") if isinstance(raw, dict) else None
        at = above + (name if isinstance(name, str) else "?")
        table = self._table(raw, _FIELD_KEYS, at)
        kind = self._text(table, "type", at)
        default = table.get("default")
        if not isinstance(default, str | int | bool | None):
            self._fail(at, f"default {default!r} is not a plain value")
        flexible = self._versions(table, "flexibleVersions", at) if "flexibleVersions" in table else None
        entity = self._text(table, "entityType", at) if "entityType" in table else None
        tag = table.get("tag")
        if tag is not None and (type(tag) is not int or not 0 <= tag <= MOST_TAG):
            self._fail(at, f"tag {_shortened(tag)} is not a number from 0 to {MOST_TAG}")
        field = Field(
            name=self._name(table, at),
            type=kind,
            versions=self._versions(table, "versions", at),
            nullable_versions=self._versions(table, "nullableVersions", at, NONE),
            tagged_versions=self._versions(table, "taggedVersions", at, NONE),
            tag=tag,
            flexible_versions=flexible,
            default=default,
            ignorable=self._flag(table, "ignorable", at),
            entity_type=entity,
            map_key=self._flag(table, "mapKey", at),
            zero_copy=self._flag(table, "zeroCopy", at),
            aliases=self._names(table, "aliases", at),
            fields=self._struct(kind, self._list(table, "fields", at), at),
        )
        self._check(field, at)
        return field

    def _struct(self, kind: str, raw: list[object], at: str) -> tuple[Field, ...]:
        element = kind.removeprefix("[]")
        if element in FIXED_TYPES or element in VARIABLE_TYPES:
            if raw:
                self._fail(at, f"{kind} has fields")
            return ()
        if not (element[:1].isupper() and _NAME.fullmatch(element)):
            self._fail(at, f"type {kind!r} is not known")
        if not raw and element in self._common:
            raw = self._common[element]
            self._used.add(element)
        if not raw:
            self._fail(at, f"struct {element} has no fields")
        if element in self._open:
            self._fail(at, f"struct {element} contains itself")
        if len(self._open) == MOST_DEPTH:
            self._fail(at, f"more than {MOST_DEPTH} structs within each other")
        self._open.append(element)
        fields = self._fields(raw, at + ".")
        self._open.pop()
        return fields

    def _check(self, field: Field, at: str) -> None:
        if (field.tag is None) == bool(field.tagged_versions):
            self._fail(at, "tag and taggedVersions go together")
        for words, part, whole in (
            ("taggedVersions", field.tagged_versions, field.versions),
            ("taggedVersions", field.tagged_versions, self._flexible),
            ("flexibleVersions", field.flexible_versions or NONE, self._flexible),
        ):
            if part and part.intersect(whole) != part:
                self._fail(at, f"{words} {part} reaches beyond {whole}")
        if field.nullable_versions and field.type in FIXED_TYPES:
            self._fail(at, f"{field.type} cannot be null")
        if not _is_valid_default(field.type, field.default):
            self._fail(at, f"default {field.default!r} is no {field.type}")

    def _table(self, raw: object, keys: frozenset[str], at: str) -> Table:
        if not isinstance(raw, dict):
            self._fail(at, "is not an object")
        if unknown := sorted(set(raw) - keys):
            self._fail(at, f"has unknown {', '.join(unknown)}")
        return raw

    def _text(self, table: Table, key: str, at: str) -> str:
        value = table.get(key)
        if not isinstance(value, str) or not value:
            self._fail(at, f"{key} is missing" if value is None else f"{key} {value!r} is not a name")
        return value

    def _name(self, table: Table, at: str) -> str:
        name = self._text(table, "name", at)
        if not _NAME.fullmatch(name):
            self._fail(at, f"name {name!r} is not a name")
        return name

    def _flag(self, table: Table, key: str, at: str) -> bool:
        value = table.get(key, False)
        if not isinstance(value, bool):
            self._fail(at, f"{key} {value!r} is neither true nor false")
        return value

    def _list(self, table: Table, key: str, at: str) -> list[object]:
        value = table.get(key, [])
        if not isinstance(value, list):
            self._fail(at, f"{key} is not an array")
        return value

    def _names(self, table: Table, key: str, at: str) -> tuple[str, ...]:
        names = tuple(str(each) for each in self._list(table, key, at))
        for name in names:
            if not _NAME.fullmatch(name):
                self._fail(at, f"{key} {name!r} is not a name")
        return names

    def _versions(self, table: Table, key: str, at: str, absent: Versions | None = None) -> Versions:
        value = table.get(key)
        if value is None and absent is not None:
            return absent
        try:
            return Versions.parse(value if isinstance(value, str) else repr(value))
        except ValueError as error:
            self._fail(at, f"{key} {error}")

    def _fail(self, at: str, words: str) -> NoReturn:
        raise SchemaError(f"{self._where}: {at}: {words}")


def is_api_key(value: object) -> bool:
    """Return whether a value may be an API key."""
    return type(value) is int and 0 <= value <= MOST_KEY


def is_name(value: object) -> bool:
    """Return whether a value may be the name of a message or a field."""
    return isinstance(value, str) and _NAME.fullmatch(value) is not None


def _shortened(value: object) -> str:
    text = repr(value) if not isinstance(value, int) or value.bit_length() < 256 else f"of {value.bit_length()} bits"
    return text if len(text) < 80 else text[:77] + "..."


def _is_valid_default(kind: str, default: Default) -> bool:
    """Return whether a default is a value of its field's type."""
    if default is None or kind not in FIXED_TYPES or kind == "uuid":
        return True
    if kind == "bool":
        return default in (True, False, "true", "false")
    try:
        if kind == "float64":
            float(default)
            return True
        low, high = _RANGES[kind]
        return low <= int(str(default), 0) <= high
    except ValueError:
        return False
