"""Verifies a merge: the layout of every version of every release is the same in the merged schema.

Invariants:
  * the merged messages have exactly the versions of all releases together;
  * for each version of each release, the merged layout equals the release's, or `resolutions.json` has the
    disagreement and the release's layout becomes an alternative;
  * only the result of the merge is used, and nothing of how it works.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from dissector.protocol.schema.importer.jars import Release
from dissector.protocol.schema.importer.resolutions import OtherLayout
from dissector.protocol.schema.importer.wire_layout import LayoutDifference, version_differences
from dissector.protocol.schema.importer.write import Alternative
from dissector.protocol.schema.model import NONE, MessageSchema, SchemaError


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
