"""Message schemas as values: versions, fields, messages, APIs.

The terms are those of the JSON files under ``clients/src/main/resources/common/message`` in Apache Kafka (KIP-482 for
flexible versions and tags), in Python's spelling.

Invariants:
  * everything is immutable and shared: a message is read from its table once;
  * common structs are resolved: a field whose type is a struct has that struct's fields in `Field.fields`;
  * version ranges of fields may be open (``3+``); a message's `valid_versions` never are.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, NamedTuple

LATEST: Final = 32_767
"""The end of an open range: versions are int16 on the wire."""

Default = str | int | bool | None


class SchemaError(Exception):
    """A mistake in a table. The text names the file and the field."""


@dataclass(frozen=True, slots=True)
class Versions:
    """The versions from `low` to `high`, both included. Empty when `high` is below `low`."""

    low: int
    high: int

    @staticmethod
    @lru_cache(maxsize=1024)
    def parse(text: str) -> "Versions":
        """Parse ``"0"``, ``"1-4"``, ``"3+"`` or ``"none"``. Raises ValueError for anything else."""
        if text == "none":
            return NONE
        found = re.fullmatch(r"(\d+)(?:(\+)|-(\d+))?", text, re.ASCII)
        if found is None:
            raise ValueError(f"{text!r} is not a range of versions")
        low = int(found[1])
        high = LATEST if found[2] else int(found[3] or low)
        if not low <= high <= LATEST:
            raise ValueError(f"{text!r} is not a range of versions")
        return Versions(low, high)

    def __str__(self) -> str:
        if not self:
            return "none"
        if self.high == LATEST:
            return f"{self.low}+"
        return f"{self.low}" if self.low == self.high else f"{self.low}-{self.high}"

    def __bool__(self) -> bool:
        return self.low <= self.high

    def __iter__(self) -> Iterator[int]:
        return iter(range(self.low, self.high + 1))

    def contains(self, version: int) -> bool:
        return self.low <= version <= self.high

    def intersect(self, other: "Versions") -> "Versions":
        both = Versions(max(self.low, other.low), min(self.high, other.high))
        return both or NONE


NONE: Final = Versions(0, -1)
"""No version."""


def snake_name(name: str) -> str:
    """Convert ``SessionTimeoutMs`` to ``session_timeout_ms``, as on Kafka's protocol page.

    As ``toSnakeCase`` of Apache's MessageGenerator, it puts an underscore before a capital that follows a character
    that is not one, so a run of capitals is one word.
    """
    return re.sub(r"(?<=[^A-Z])(?=[A-Z])", "_", name).lower()


def camel_name(name: str) -> str:
    """Convert ``SessionTimeoutMs`` to ``sessionTimeoutMs``, as Apache's JSON converters write it."""
    return name[:1].lower() + name[1:]


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a message or struct. `type` is Kafka's: ``int32``, ``[]string``, ``[]FetchTopic``, ``EpochEndOffset``.

    `default` is as in the table, None if it has none (null is written ``"null"``); `flexible_versions` is None unless
    the field is an exception to its message's. `aliases` are names in older releases.
    """

    name: str
    type: str
    versions: Versions
    nullable_versions: Versions = NONE
    tagged_versions: Versions = NONE
    tag: int | None = None
    flexible_versions: Versions | None = None
    default: Default = None
    ignorable: bool = False
    entity_type: str | None = None
    map_key: bool = False
    zero_copy: bool = False
    aliases: tuple[str, ...] = ()
    fields: tuple["Field", ...] = ()

    # Computed once: every reader and every tree node uses it.
    snake_name: str = field(init=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "snake_name", snake_name(self.name))

    @property
    def camel_name(self) -> str:
        """The name in Kafka's JSON."""
        return camel_name(self.name)

    @property
    def is_array(self) -> bool:
        return self.type.startswith("[]")

    @property
    def element_type(self) -> str:
        """The type of an array's elements; for other fields, `type`."""
        return self.type.removeprefix("[]")


@dataclass(frozen=True, slots=True)
class MessageSchema:
    """The schema of a message in all its versions.

    `type` is ``request``, ``response``, ``header`` or ``data`` (other jars have ``metadata``, ``coordinator-key``,
    ``coordinator-value``, whose `api_key` is a record type); `api_key` is None if the schema file has none.
    `deprecated_versions` are those that the newest release deprecates or no longer has; `releases` are the versions by
    release of Kafka. `common_structs` are the structs that the table defines apart from the fields.
    """

    name: str
    type: str
    api_key: int | None
    valid_versions: Versions
    flexible_versions: Versions
    fields: tuple[Field, ...]
    deprecated_versions: Versions = NONE
    latest_version_unstable: bool = False
    listeners: tuple[str, ...] = ()
    common_structs: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    releases: Mapping[str, Versions] = field(default_factory=dict)

    @property
    def unstable_versions(self) -> Versions:
        """The latest version, if it may still change according to the newest release."""
        high = self.valid_versions.high
        return Versions(high, high) if self.latest_version_unstable else NONE


class Api(NamedTuple):
    """A request and its response, by name. `name` is the request's without ``Request``."""

    key: int
    name: str
    versions: Versions
    flexible_versions: Versions
    deprecated_versions: Versions
    unstable_versions: Versions
    request: str
    response: str
    aliases: tuple[str, ...] = ()
