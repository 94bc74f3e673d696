"""Imported releases laid over the shipped tables: what they have and the tables have not, in whole or in some version.

Schemas are not mixed: a version that the tables have is the tables', any other is laid out by the first import that has
it. What can't be told from the tables so (`Overlay.left_out`) is left out and the rest taken: an import breaks nothing.

A request or response is known by its API key: one that goes by another name in an import is the same message.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from dissector.protocol.schema.index import PAIRED_TYPES, IndexEntry
from dissector.protocol.schema.model import LATEST, NONE, MessageSchema, Versions


@dataclass(frozen=True, slots=True)
class ImportedRelease:
    """A release that a user imported; its tables are read one by one, when something in them is new."""

    label: str
    entries: Mapping[str, IndexEntry]
    table: Callable[[str], MessageSchema]


@dataclass(frozen=True, slots=True)
class Overlay:
    """What imports add. `messages` say which versions a message has now; its fields may be of the tables' alone."""

    messages: dict[str, MessageSchema] = field(default_factory=dict)
    sources: dict[str, list[MessageSchema]] = field(default_factory=dict)
    """The schemas of versions that the tables have not, by message."""
    releases: dict[str, dict[str, Versions]] = field(default_factory=dict)
    """The imported releases of every message."""
    left_out: dict[str, str] = field(default_factory=dict)
    """Messages whose new versions could not be taken, and why."""

    def source(self, name: str, version: int) -> MessageSchema | None:
        """The schema that lays out a version that the tables have not."""
        return next((each for each in self.sources.get(name, ()) if each.valid_versions.contains(version)), None)

    def leave_out(self, name: str, reason: str) -> None:
        """Take nothing of a message."""
        self.messages.pop(name, None)
        self.sources.pop(name, None)
        self.left_out[name] = reason


def overlay(
    shipped: Mapping[str, IndexEntry], table: Callable[[str], MessageSchema], imported: Iterable[ImportedRelease]
) -> Overlay:
    """Lay imported releases over the tables, of which `shipped` is the index. Raises `SchemaError` for damaged ones."""
    result = Overlay()
    names = {(e.type, e.api_key): e.name for e in shipped.values() if e.type in PAIRED_TYPES}
    for release in imported:
        for entry in release.entries.values():
            name = (
                names.setdefault((entry.type, entry.api_key), entry.name) if entry.type in PAIRED_TYPES else entry.name
            )
            result.releases.setdefault(name, {})[release.label] = entry.valid_versions
            have = result.messages.get(name) or shipped.get(name)
            if have is None or entry.valid_versions.intersect(have.valid_versions) != entry.valid_versions:
                known = result.messages.get(name) or (table(name) if name in shipped else None)
                _add(result, known, _renamed(release.table(entry.name), name))
    _check_pairs(result, shipped)
    return result


def _renamed(message: MessageSchema, name: str) -> MessageSchema:
    if message.name == name:
        return message
    return replace(message, name=name, aliases=(*message.aliases, message.name))


def _add(result: Overlay, known: MessageSchema | None, other: MessageSchema) -> None:
    """Add what is new of a message."""
    if known is None:
        result.messages[other.name] = other
    elif (known.type, known.api_key) != (other.type, other.api_key):
        result.leave_out(other.name, "another message of the tables is called so")
        return
    else:
        try:
            result.messages[known.name] = _extended(known, other)
        except ValueError as error:
            result.leave_out(known.name, str(error))
            return
    result.sources.setdefault(other.name, []).append(other)


def _extended(known: MessageSchema, other: MessageSchema) -> MessageSchema:
    """`known` with the versions of `other` too. Raises ValueError where they can't be told as ranges."""
    valid = _range({*known.valid_versions, *other.valid_versions})

    def both(ours: Versions, theirs: Versions) -> Versions:
        found = {v for v in valid if (ours if known.valid_versions.contains(v) else theirs).contains(v)}
        if found == {v for v in valid if ours.contains(v)}:
            return ours
        if not found:
            return NONE
        merged = _range(found)
        return replace(merged, high=LATEST) if merged.high == valid.high and theirs.high == LATEST else merged

    newest = other if other.valid_versions.high > known.valid_versions.high else known
    return replace(
        known,
        valid_versions=valid,
        flexible_versions=both(known.flexible_versions, other.flexible_versions),
        deprecated_versions=both(known.deprecated_versions, other.deprecated_versions),
        latest_version_unstable=newest.latest_version_unstable,
        aliases=tuple(dict.fromkeys((*known.aliases, *other.aliases))),
        releases={**known.releases, **other.releases},
    )


def _range(versions: set[int]) -> Versions:
    found = Versions(min(versions), max(versions))
    if len(versions) != found.high - found.low + 1:
        raise ValueError(f"versions {', '.join(map(str, sorted(versions)))} are not one range")
    return found


def _check_pairs(result: Overlay, shipped: Mapping[str, IndexEntry]) -> None:
    """A request and its response go together: where one is missing or has other versions, neither is taken."""
    now: dict[str, MessageSchema | IndexEntry] = {**shipped, **result.messages}
    keys = {each.api_key for each in result.messages.values() if each.type in PAIRED_TYPES}
    for key in keys:
        pair = [each for each in now.values() if each.type in PAIRED_TYPES and each.api_key == key]
        if len(pair) != len(PAIRED_TYPES) or pair[0].valid_versions != pair[1].valid_versions:
            for each in pair:
                result.leave_out(each.name, "its request and its response do not have the same versions")
