"""Tagged fields that stand in a version of a message that does not have them, though another version does.

A tag that no version defines may be of a newer release or of a vendor, and a reader skips it (KIP-482). One that
another version defines is a mistake of the sender: Kafka's readers reject the message, and a broker closes the
connection.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple, cast

from dissector.protocol.codec.plan import ArrayPlan, StructPlan, plan
from dissector.protocol.codec.reader import UNKNOWN_TAGS
from dissector.protocol.message import Values
from dissector.protocol.message_layout import MessageLayout
from dissector.protocol.schema.loader import schema
from dissector.protocol.schema.model import Field, Versions


class MisplacedTag(NamedTuple):
    """A tagged field outside its versions."""

    path: str
    """Of the structure that has it, in the body; empty for the body itself."""
    tag: int
    name: str
    """The field that has this tag in other versions."""
    versions: Versions
    version: int
    """That of the message."""

    @property
    def words(self) -> str:
        """What is wrong, as a clause."""
        known = f"begins in v{self.versions.low}" if self.version < self.versions.low else f"is of v{self.versions}"
        return f"tag {self.tag} ({self.name}) in v{self.version}, which {known}"


class _Walk(NamedTuple):
    """A structure of a layout, with those in it that have tags in any version."""

    tags: Mapping[int, Field]
    """All tagged fields, of any version."""
    inner: tuple[tuple[str, bool, "_Walk"], ...]
    """Fields with structures: name, whether it is an array, and the structure's own."""


def misplaced_tags(layout: MessageLayout, body: Values) -> Iterator[MisplacedTag]:
    """Yield the tags outside their versions of a body that was read along a layout, outer ones first."""
    if layout.body is not None and body:
        walk = _walk_of(layout.body, layout.body_version)
        if walk is not None:
            yield from _of_struct(walk, body, "", layout.body_version)


@lru_cache(maxsize=1024)
def _walk_of(name: str, version: int) -> _Walk | None:
    """Return the walk over a message; None in a version without tags."""
    root = plan(name, version)
    return _walk(root, schema(name, version).fields) if root.flexible else None


def _walk(layout: StructPlan, fields: Iterable[Field]) -> _Walk:
    inner = []
    for each in (*layout.fields, *layout.tagged):
        kind = each.type.element if isinstance(each.type, ArrayPlan) else each.type
        if isinstance(kind, StructPlan):
            walk = _walk(kind, each.schema.fields)
            if walk.tags or walk.inner:  # else no tag in it is one of another version
                inner.append((each.name, isinstance(each.type, ArrayPlan), walk))
    return _Walk({each.tag: each for each in fields if each.tag is not None}, tuple(inner))


def _of_struct(walk: _Walk, values: Values, path: str, version: int) -> Iterator[MisplacedTag]:
    if UNKNOWN_TAGS in values:
        for unknown in cast(list[dict[str, int]], values[UNKNOWN_TAGS]):
            field = walk.tags.get(unknown["tag"])
            if field is not None:
                yield MisplacedTag(path, unknown["tag"], field.snake_name, field.tagged_versions, version)
    for name, is_array, inner in walk.inner:
        value = values.get(name)
        place = f"{path}.{name}" if path else name
        if is_array and isinstance(value, list):
            for n, element in enumerate(value):
                yield from _of_struct(inner, element, f"{place}[{n}]", version)
        elif isinstance(value, dict):
            yield from _of_struct(inner, value, place, version)
