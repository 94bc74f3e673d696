"""Overlays the shipped tables with messages and versions that only imported releases have.

Schemas are not mixed: a version that the tables have is the tables'; any other is the first import's that has it. A
message whose versions can't be combined is omitted, with the reason in `Overlay.left_out`: an import breaks nothing.

Requests and responses are identified by API key, so one with another name in an import is the same message.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from dissector.protocol.schema.index import PAIRED_TYPES, IndexEntry
from dissector.protocol.schema.model import LATEST, NONE, MessageSchema, Versions


class ImportedRelease(NamedTuple):
    """A release that a user imported. A table of it is read only if something in it is new."""

    label: str
    entries: Mapping[str, IndexEntry]
    table: Callable[[str], MessageSchema]


@dataclass(frozen=True, slots=True)
class Overlay:
    """What imports add. `messages` have all versions; their fields may be those of the tables only."""

    messages: dict[str, MessageSchema] = field(default_factory=dict)
    sources: dict[str, list[MessageSchema]] = field(default_factory=dict)
    """The schemas of versions that the tables lack, by message."""
    releases: dict[str, dict[str, Versions]] = field(default_factory=dict)
    """Versions by message and imported release."""
    left_out: dict[str, str] = field(default_factory=dict)
    """Messages whose new versions were omitted, and why."""

    def source(self, name: str, version: int) -> MessageSchema | None:
        """Return the schema of a version that the tables lack."""
        return next((each for each in self.sources.get(name, ()) if each.valid_versions.contains(version)), None)

    def leave_out(self, name: str, reason: str) -> None:
        """Omit a message."""
        self.messages.pop(name, None)
        self.sources.pop(name, None)
        self.left_out[name] = reason


def overlay(
    shipped: Mapping[str, IndexEntry], table: Callable[[str], MessageSchema], imported: Iterable[ImportedRelease]
) -> Overlay:
    """Overlay the tables, whose index is `shipped`, with imported releases. Raises `SchemaError` for damaged ones."""
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
    """Add the new versions of a message."""
    if known is None:
        result.messages[other.name] = other
    elif (known.type, known.api_key) != (other.type, other.api_key):
        result.leave_out(other.name, "the tables have another message of this name")
        return
    else:
        try:
            result.messages[known.name] = _extended(known, other)
        except ValueError as error:
            result.leave_out(known.name, str(error))
            return
    result.sources.setdefault(other.name, []).append(other)


def _extended(known: MessageSchema, other: MessageSchema) -> MessageSchema:
    """Return `known` with the versions of `other`, too. Raises ValueError if they don't form one range."""
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
    """Omit a request and its response if one is missing or their versions differ."""
    now: dict[str, MessageSchema | IndexEntry] = {**shipped, **result.messages}
    keys = {each.api_key for each in result.messages.values() if each.type in PAIRED_TYPES}
    for key in keys:
        pair = [each for each in now.values() if each.type in PAIRED_TYPES and each.api_key == key]
        if len(pair) != len(PAIRED_TYPES) or pair[0].valid_versions != pair[1].valid_versions:
            for each in pair:
                result.leave_out(each.name, "its request and its response do not have the same versions")
