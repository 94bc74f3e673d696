"""Imported releases laid over the shipped tables: what they have and the tables have not, in whole or in some version.

Invariants (checked each time, for tables of a user may be anything):
  * a version that the tables have keeps its layout, whatever an import says of it;
  * a version that an import alone has is laid out as the import says;
  * a request or response is known by its API key: one that goes by another name in an import is the same message.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from dissector.protocol.schema.importer.layout import version_differences
from dissector.protocol.schema.importer.merge import extend
from dissector.protocol.schema.index import PAIRED, Entry
from dissector.protocol.schema.model import Message, SchemaError, Versions


@dataclass(frozen=True, slots=True)
class Imported:
    """A release that a user imported; its tables are read one by one, when something in them is new."""

    label: str
    entries: Mapping[str, Entry]
    table: Callable[[str], Message]


@dataclass(frozen=True, slots=True)
class Overlay:
    """Messages that take the place of the tables' (or have none there), and the imported releases of every message."""

    messages: dict[str, Message] = field(default_factory=dict)
    releases: dict[str, dict[str, Versions]] = field(default_factory=dict)


def overlay(shipped: Mapping[str, Entry], table: Callable[[str], Message], imported: Iterable[Imported]) -> Overlay:
    """Lay imported releases over the tables, of which `shipped` is the index. Raises `SchemaError`."""
    result = Overlay()
    names = {(e.type, e.api_key): e.name for e in shipped.values() if e.type in PAIRED}
    for release in imported:
        for entry in release.entries.values():
            paired = entry.type in PAIRED
            name = names.setdefault((entry.type, entry.api_key), entry.name) if paired else entry.name
            result.releases.setdefault(name, {})[release.label] = entry.valid_versions
            have = result.messages.get(name) or shipped.get(name)
            if have is None:
                result.messages[name] = release.table(entry.name)
            elif entry.valid_versions.intersect(have.valid_versions) != entry.valid_versions:
                known = result.messages.get(name) or table(name)
                result.messages[name] = _extended(known, _renamed(release.table(entry.name), name))
    return result


def _renamed(message: Message, name: str) -> Message:
    if message.name == name:
        return message
    return replace(message, name=name, aliases=(*message.aliases, message.name))


def _extended(known: Message, other: Message) -> Message:
    """`known` with the versions that `other` alone has, proved."""
    merged = extend(known, other)
    for version in merged.valid_versions:
        source = known if known.valid_versions.contains(version) else other
        for difference in version_differences(merged, source, version):
            words = f"{difference.path}: {difference.ours} instead of {difference.theirs}"
            raise SchemaError(f"{known.name} v{version} can't be laid over the tables: {words}")
    return merged
