"""The difference between two releases of Kafka: messages, versions, fields.

A release is one that the tables were made from, one that a user imported, or a jar. Fields that `resolutions.json`
renames have their new names on both sides, so a rename is not a difference.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from dissector.protocol.codec.plan import StructPlan, plan, plan_of
from dissector.protocol.explain.changes import Change, changes
from dissector.protocol.explain.releases import known_releases
from dissector.protocol.schema.imported import labels
from dissector.protocol.schema.importer.jars import Release, read_release
from dissector.protocol.schema.importer.run import with_current_names
from dissector.protocol.schema.importer.user_releases import stored
from dissector.protocol.schema.loader import alternatives, entries, message
from dissector.protocol.schema.model import NONE, SchemaError, Versions


@dataclass(frozen=True, slots=True)
class ReleaseSide:
    """A release: the versions, types and layouts of its messages."""

    label: str
    versions: Mapping[str, Versions]
    types: Mapping[str, str]
    plan: Callable[[str, int], StructPlan]


@dataclass(frozen=True, slots=True)
class MessageDiff:
    """A message that differs. `was` or `now` is empty if one side lacks it; `steps` are changes by version."""

    name: str
    was: Versions
    now: Versions
    steps: tuple[tuple[int, tuple[Change, ...]], ...]

    @property
    def new_versions(self) -> list[int]:
        return [version for version in self.now if not self.was.contains(version)]


def release_side(text: str) -> ReleaseSide:
    """Return a release by name: an imported release, a known one (``3.9``: the only known of 3.9), or the path of a
    jar. Raises `SchemaError`."""
    if text in labels():
        return _of_release(stored(text))
    if text in known_releases():
        return _shipped(text)
    if Path(text).exists() or "/" in text or text.endswith(".jar"):
        return _of_release(read_release(Path(text).name, [Path(text)]))
    of_minor = [each for each in known_releases() if each.startswith(f"{text}.")]
    if len(of_minor) == 1:
        return release_side(of_minor[0])
    raise SchemaError(f"{text}: neither a jar nor a known release; known are {', '.join(known_releases())}")


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
    """Return the types of messages in a release: the jar of the clients lacks those that brokers store."""
    return {of.types[name] for name in of.versions}


def diff(one: ReleaseSide, other: ReleaseSide) -> Iterator[MessageDiff]:
    """Yield every message that differs, by name. Types that one side lacks are skipped, as a jar may be incomplete."""
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
    """Yield the differences of common versions, and the changes of new versions since the ones before them."""
    for version in now:
        if was.contains(version):
            found = tuple(changes(one.plan(name, version), other.plan(name, version)))
        elif now.contains(version - 1):
            found = tuple(changes(other.plan(name, version - 1), other.plan(name, version)))
        else:
            found = ()
        if found:
            yield version, found
