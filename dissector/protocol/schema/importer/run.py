"""The import of all releases: writes the tables, or reports what a person has to decide first.

    read_release -> rename (resolutions) -> merge_releases -> disagreements -> alternatives (resolutions)
    -> write_tables

Invariants, which are verified by the result of the merge alone, whatever it does:
  * the merged messages have exactly the versions of all releases together;
  * for each version of each release, the merged layout equals the release's, or `resolutions.json` has the
    disagreement and the release's layout becomes an alternative;
  * else no table is written.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from dissector.protocol.schema.importer.jars import Release, read_release
from dissector.protocol.schema.importer.merge import merge_releases
from dissector.protocol.schema.importer.resolutions import OtherLayout, Resolutions, read_resolutions, rename
from dissector.protocol.schema.importer.wire_layout import LayoutDifference, version_differences
from dissector.protocol.schema.importer.write import Alternative, write_tables
from dissector.protocol.schema.model import NONE, MessageSchema, SchemaError

SCHEMA_FOLDER: Final = Path(__file__).parent.parent


@dataclass(frozen=True, slots=True)
class Disagreement:
    """A version whose layout in `release` differs from the merged schema, which is that of `winner`."""

    message: str
    version: int
    release: str
    winner: str
    difference: LayoutDifference

    def __str__(self) -> str:
        one = self.difference
        return (
            f"{self.message} v{self.version} {one.path}: "
            f"{self.winner} says {one.ours}; {self.release} says {one.theirs}"
        )


def disagreements(releases: list[Release], merged: Mapping[str, MessageSchema]) -> list[Disagreement]:
    """Return every difference between the releases (oldest first) and the merged messages."""
    _check_versions(releases, merged)
    return [
        Disagreement(name, version, release.label, _winner(releases, name, version), difference)
        for release in releases
        for name, message in release.messages.items()
        for version in message.valid_versions
        for difference in version_differences(merged[name], message, version)
    ]


def _winner(releases: list[Release], name: str, version: int) -> str:
    """Return the newest release that has the version."""
    having = [r.label for r in releases if name in r.messages and r.messages[name].valid_versions.contains(version)]
    return having[-1]


def _check_versions(releases: list[Release], merged: Mapping[str, MessageSchema]) -> None:
    wanted: dict[str, set[int]] = {}
    for release in releases:
        for name, message in release.messages.items():
            wanted.setdefault(name, set()).update(message.valid_versions)
    found = {name: set(message.valid_versions) for name, message in merged.items()}
    if wrong := sorted(name for name in wanted.keys() | found.keys() if wanted.get(name) != found.get(name)):
        raise SchemaError(f"{', '.join(wrong)}: merged into other versions than the releases have")


def alternatives(
    releases: list[Release], found: list[Disagreement], resolutions: tuple[OtherLayout, ...]
) -> tuple[list[Alternative], list[Disagreement], list[OtherLayout]]:
    """Return the alternative layouts, the disagreements without a resolution, and the resolutions of nothing."""
    by_label = {release.label: release for release in releases}
    differing = {(d.message, d.release, d.version) for d in found}
    chosen: list[Alternative] = []
    stale: list[OtherLayout] = []
    named: set[tuple[str, str, int]] = set()
    for each in resolutions:
        keys = {(each.message, each.release, version) for version in each.versions}
        if not keys <= differing:
            stale.append(each)
            continue
        named |= keys
        theirs = by_label[each.release].messages[each.message]
        chosen.append(
            Alternative(
                replace(
                    theirs,
                    valid_versions=each.versions,
                    deprecated_versions=NONE,
                    latest_version_unstable=False,
                    releases={each.release: each.versions},
                ),
                each.release,
            )
        )
    return chosen, [d for d in found if (d.message, d.release, d.version) not in named], stale


class UnresolvedError(SchemaError):
    """A disagreement between releases is not in `resolutions.json`, or an entry there is stale."""


@dataclass(frozen=True, slots=True)
class ImportResult:
    """The result of an import: messages by name, and alternative layouts of some versions."""

    messages: dict[str, MessageSchema]
    alternatives: tuple[Alternative, ...]


def merged(releases: list[Release], resolutions: Resolutions) -> ImportResult:
    """Return the verified union of the releases (oldest first). Raises `UnresolvedError`, which lists all conflicts."""
    named, stale_renames = rename(releases, resolutions.renamed)
    messages = merge_releases(named)
    chosen, unresolved, stale_layouts = alternatives(named, disagreements(named, messages), resolutions.other_layouts)
    stale = [*stale_renames, *stale_layouts]
    if unresolved or stale:
        lines = [f"  {each}" for each in unresolved]
        lines += [f"  resolutions.json: stale, no releases disagree so: {each}" for each in stale]
        raise UnresolvedError("\n".join(["not imported, resolutions.json must decide:", *lines]))
    return ImportResult(messages, tuple(chosen))


def import_jars(jars: Mapping[str, Iterable[Path]], folder: Path = SCHEMA_FOLDER) -> ImportResult:
    """Import the jars of each release (oldest first) into `folder`/tables, by the resolutions in the same folder."""
    releases = [read_release(label, paths) for label, paths in jars.items()]
    resolutions = read_resolutions((folder / "resolutions.json").read_text(encoding="utf-8"))
    found = merged(releases, resolutions)
    write_tables(folder / "tables", found.messages.values(), found.alternatives)
    return found


def with_current_names(release: Release) -> Release:
    """Return a release with the names that the tables use for fields and messages."""
    resolutions = read_resolutions((SCHEMA_FOLDER / "resolutions.json").read_text(encoding="utf-8"))
    [renamed], _ = rename([release], resolutions.renamed)
    return renamed
