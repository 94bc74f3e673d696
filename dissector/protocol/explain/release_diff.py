"""What one release of Kafka has that another has not: messages, versions, fields.

A release is one of those that the tables were made from, one that a user imported, or the jar of any. Fields whose new
names `resolutions.json` has decided on go by them on both sides: that is no difference.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from dissector.protocol.codec.plan import StructPlan, plan, plan_of
from dissector.protocol.explain.changes import Change, changes
from dissector.protocol.explain.releases import known_releases
from dissector.protocol.schema.imported import labels
from dissector.protocol.schema.importer.jars import read_release
from dissector.protocol.schema.importer.release import Release
from dissector.protocol.schema.importer.run import with_current_names
from dissector.protocol.schema.importer.user_releases import stored
from dissector.protocol.schema.loader import alternatives, entries, message
from dissector.protocol.schema.model import NONE, SchemaError, Versions


@dataclass(frozen=True, slots=True)
class ReleaseSide:
    """A release: the versions of its messages, and how it lays out each."""

    label: str
    versions: Mapping[str, Versions]
    types: Mapping[str, str]
    plan: Callable[[str, int], StructPlan]


@dataclass(frozen=True, slots=True)
class MessageDiff:
    """A message that differs. `was` or `now` is empty where only one side has it; `steps` are changes by version."""

    name: str
    was: Versions
    now: Versions
    steps: tuple[tuple[int, tuple[Change, ...]], ...]

    @property
    def new_versions(self) -> list[int]:
        return [version for version in self.now if not self.was.contains(version)]

    @property
    def gone_versions(self) -> list[int]:
        return [version for version in self.was if not self.now.contains(version)]


def release_side(text: str) -> ReleaseSide:
    """The release that somebody names: a jar that is there, an imported release, a known one. Raises `SchemaError`."""
    if text in labels():
        return _of_release(stored(text))
    if text in known_releases():
        return _shipped(text)
    if Path(text).exists() or "/" in text or text.endswith(".jar"):
        return _of_release(read_release(Path(text).name, [Path(text)]))
    raise SchemaError(f"{text}: neither a jar nor a release that is known: there are {', '.join(known_releases())}")


def _shipped(label: str) -> ReleaseSide:
    found = {each.name: message(each.name).releases.get(label) for each in entries()}

    def layout(name: str, version: int) -> StructPlan:
        other = next((m for m in alternatives(name, version) if label in m.releases), None)
        return plan(name, version) if other is None else plan_of(other, version)

    types = {each.name: each.type for each in entries()}
    return ReleaseSide(label, {name: versions for name, versions in found.items() if versions}, types, layout)


def _of_release(release: Release) -> ReleaseSide:
    found = with_current_names(release).messages
    return ReleaseSide(
        release.label,
        {name: each.valid_versions for name, each in found.items()},
        {name: each.type for name, each in found.items()},
        lambda name, version: plan_of(found[name], version),
    )


def kinds(of: ReleaseSide) -> set[str]:
    """The types of message that a release has: the jar of the clients has none of those that brokers keep."""
    return {of.types[name] for name in of.versions}


def diff(one: ReleaseSide, other: ReleaseSide) -> Iterator[MessageDiff]:
    """Every message that differs, by name; of types that both sides have, as a jar may be a part of a release."""
    both = kinds(one) & kinds(other)
    for name in sorted(one.versions.keys() | other.versions.keys()):
        if (one.types if name in one.versions else other.types)[name] not in both:
            continue
        was, now = one.versions.get(name, NONE), other.versions.get(name, NONE)
        steps = tuple(_steps(one, other, name, was, now)) if was and now else ()
        if steps or was != now:
            yield MessageDiff(name, was, now, steps)


def _steps(
    one: ReleaseSide, other: ReleaseSide, name: str, was: Versions, now: Versions
) -> Iterator[tuple[int, tuple[Change, ...]]]:
    """Of versions that both have, what differs; of new ones, what they changed against the one before."""
    for version in now:
        if was.contains(version):
            found = tuple(changes(one.plan(name, version), other.plan(name, version)))
        elif now.contains(version - 1):
            found = tuple(changes(other.plan(name, version - 1), other.plan(name, version)))
        else:
            found = ()
        if found:
            yield version, found
