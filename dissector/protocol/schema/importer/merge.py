"""Merges the same message of all releases into one, so that no version is lost.

Invariants (`run` verifies them on every import):
  * a version in only one release keeps that release's layout;
  * a version in more than one keeps the newest release's layout.

A field's range means "from this version on" within the versions of its release, so older versions have to be added to
the ranges of the newest release: 4.x has ``3+`` for fields that 3.9 has since version 0.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from dissector.protocol.schema.importer.jars import Release
from dissector.protocol.schema.model import LATEST, NONE, Field, MessageSchema, SchemaError, Versions


def merge_releases(releases: list[Release]) -> dict[str, MessageSchema]:
    """Return every message of the releases, which are given oldest first."""
    merged: dict[str, MessageSchema] = {}
    for release in releases:
        for name, message in release.messages.items():
            labelled = replace(message, releases={release.label: message.valid_versions})
            merged[name] = merge(merged[name], labelled) if name in merged else labelled
    newest = releases[-1].messages
    return {
        name: m if name in newest else replace(m, deprecated_versions=m.valid_versions, latest_version_unstable=False)
        for name, m in sorted(merged.items())
    }


def merge(older: MessageSchema, newer: MessageSchema) -> MessageSchema:
    """Return the message with the versions of both; a version in both is as in `newer`."""
    if (older.api_key, older.type) != (newer.api_key, newer.type):
        raise SchemaError(f"{newer.name}: key or type changed: {older.api_key} {older.type} was another message")
    ranges = _Ranges(newer.name, older.valid_versions, newer.valid_versions)
    flexible = ranges.of(older.flexible_versions, newer.flexible_versions, "flexibleVersions")
    fields = _Fields(ranges, older.flexible_versions, newer.flexible_versions, flexible)
    return replace(
        newer,
        valid_versions=ranges.valid,
        # Versions that the newest release no longer has count as deprecated.
        deprecated_versions=ranges.of(older.valid_versions, newer.deprecated_versions, "deprecatedVersions"),
        flexible_versions=flexible,
        fields=fields.merge(older.fields, newer.fields, ""),
        common_structs=newer.common_structs + tuple(s for s in older.common_structs if s not in newer.common_structs),
        aliases=_union(older.aliases, newer.aliases),
        releases={**older.releases, **newer.releases},
    )


def _union(older: Iterable[str], newer: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*older, *newer)))


@dataclass(frozen=True, slots=True)
class _Ranges:
    """Merges ranges: those of `newer` for its versions, those of `older` for all others."""

    name: str
    older: Versions
    newer: Versions

    @property
    def valid(self) -> Versions:
        return self._range(set(self.older) | set(self.newer), "validVersions")

    def of(self, older: Versions, newer: Versions, what: str) -> Versions:
        chosen = {v for v in self.newer if newer.contains(v)}
        chosen |= {v for v in self.older if older.contains(v) and not self.newer.contains(v)}
        valid = set(self.valid)
        for original in (newer, older):
            # Kafka's range is used if it means the same: `0+` reads better than a computed one.
            if {v for v in valid if original.contains(v)} == chosen:
                return original
        found = self._range(chosen, what)
        return Versions(found.low, LATEST) if newer.high == LATEST and found.high == max(valid) else found

    def _range(self, versions: set[int], what: str) -> Versions:
        if not versions:
            return NONE
        found = Versions(min(versions), max(versions))
        if set(found) != versions:
            raise SchemaError(f"{self.name}: {what}: {sorted(versions)} is not one range")
        return found


@dataclass(frozen=True, slots=True)
class _Fields:
    """Merges the fields of structs, level by level."""

    ranges: _Ranges
    older_flexible: Versions
    newer_flexible: Versions
    flexible: Versions

    def merge(self, older: tuple[Field, ...], newer: tuple[Field, ...], above: str) -> tuple[Field, ...]:
        """Return the fields of both, in the order of both: a removed field follows the one that was before it."""
        known = {each.name: each for each in older}
        names = {each.name for each in newer}
        merged = [
            self._both(known[each.name], each, above) if each.name in known else self._only(None, each, above)
            for each in newer
        ]
        at = 0
        for each in older:
            if each.name in names:
                at = 1 + next(i for i, m in enumerate(merged) if m.name == each.name)
                continue
            removed = self._only(each, None, above)
            if removed.versions:
                merged.insert(at, removed)
                at += 1
        return tuple(merged)

    def _only(self, older: Field | None, newer: Field | None, above: str) -> Field:
        """Return a field that one of the releases lacks, without the versions of that release."""
        field = older or newer
        assert field is not None
        versions = self.ranges.of(
            older.versions if older else NONE, newer.versions if newer else NONE, f"{above}{field.name}: versions"
        )
        tagged = field.tagged_versions.intersect(versions)
        return replace(
            field,
            versions=versions,
            nullable_versions=field.nullable_versions.intersect(versions),
            tagged_versions=tagged,
            tag=field.tag if tagged else None,
        )

    def _both(self, older: Field, newer: Field, above: str) -> Field:
        at = above + newer.name

        def pick(what: str, old: Versions, new: Versions) -> Versions:
            return self.ranges.of(old, new, f"{at}: {what}")

        flexible = None
        if older.flexible_versions is not None or newer.flexible_versions is not None:
            flexible = pick(
                "flexibleVersions",
                self.older_flexible if older.flexible_versions is None else older.flexible_versions,
                self.newer_flexible if newer.flexible_versions is None else newer.flexible_versions,
            )
            flexible = None if flexible == self.flexible else flexible
        tagged = pick("taggedVersions", older.tagged_versions, newer.tagged_versions)
        both_structs = bool(older.fields and newer.fields)
        return replace(
            newer,
            versions=pick("versions", older.versions, newer.versions),
            nullable_versions=pick("nullableVersions", older.nullable_versions, newer.nullable_versions),
            tagged_versions=tagged,
            tag=(newer.tag if newer.tag is not None else older.tag) if tagged else None,
            flexible_versions=flexible,
            aliases=_union(older.aliases, newer.aliases),
            fields=self.merge(older.fields, newer.fields, f"{at}.") if both_structs else newer.fields,
        )
