"""Resolutions of disagreements between releases, from `resolutions.json`.

Two releases may have different names or layouts for the same version of a message. A person decides in that file:
  * ``renamed``: the newest name wins, the old one (``was``) becomes an alias. ``field`` is the path with new names; an
    entry without it renames the message;
  * ``otherLayout``: the newest layout wins; that of ``release`` becomes an alternative table for ``versions``.

Invariant: every entry is needed. One that matches no disagreement is stale and stops the import.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace

from dissector.protocol.schema.importer.jars import Release
from dissector.protocol.schema.model import Field, MessageSchema, SchemaError, Versions


@dataclass(frozen=True, slots=True)
class Renamed:
    """A field, or a message if `path` is empty, whose name in an older release is `was`."""

    message: str
    was: str
    path: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"renamed: {'.'.join((self.message, *self.path))} was {self.was}"


@dataclass(frozen=True, slots=True)
class OtherLayout:
    """Versions whose layout in `release` differs from that in the newest release that has them."""

    message: str
    versions: Versions
    release: str

    def __str__(self) -> str:
        return f"otherLayout: {self.message} v{self.versions} of {self.release}"


@dataclass(frozen=True, slots=True)
class Resolutions:
    """All resolutions."""

    renamed: tuple[Renamed, ...] = ()
    other_layouts: tuple[OtherLayout, ...] = ()


def read_resolutions(text: str) -> Resolutions:
    """Parse the text of `resolutions.json`. Raises `SchemaError`."""
    try:
        raw = json.loads(text)
        renamed = [_renamed(**row) for row in raw.pop("renamed", ())]
        others = [_other_layout(**row) for row in raw.pop("otherLayout", ())]
    except (ValueError, TypeError, AttributeError) as error:
        raise SchemaError(f"resolutions.json: {error}") from error
    if raw:
        raise SchemaError(f"resolutions.json: has unknown {', '.join(sorted(raw))}")
    return Resolutions(tuple(renamed), tuple(others))


def _renamed(*, message: str, was: str, field: str = "") -> Renamed:
    return Renamed(message, was, tuple(field.split(".")) if field else ())


def _other_layout(*, message: str, versions: str, release: str) -> OtherLayout:
    return OtherLayout(message, Versions.parse(versions), release)


def rename(releases: list[Release], renamed: Iterable[Renamed]) -> tuple[list[Release], list[Renamed]]:
    """Return the releases (oldest first) with the newest names, and the renames that matched no disagreement."""
    found = list(releases)
    stale: list[Renamed] = []
    for each in renamed:
        before = found
        found = [_rename_message(r, each) if not each.path else _rename_field(r, each) for r in before]
        if not _disagree(before, found, each):
            stale.append(each)
    return found, stale


def _disagree(before: list[Release], after: list[Release], entry: Renamed) -> bool:
    """Return whether a version that had the old name has the new name in a newer release."""
    old: set[int] = set()
    for was, now in zip(before, after, strict=True):
        if was is not now:
            old |= _versions(now, entry)
        elif old & _versions(now, entry):
            return True
    return False


def _versions(release: Release, entry: Renamed) -> set[int]:
    """Return the versions in which a release has the new name."""
    message = release.messages.get(entry.message)
    if message is None:
        return set()
    found = set(message.valid_versions)
    fields = message.fields
    for name in entry.path:
        field = next((f for f in fields if f.name == name), None)
        if field is None:
            return set()
        found = {v for v in found if field.versions.contains(v)}
        fields = field.fields
    return found


def _rename_message(release: Release, entry: Renamed) -> Release:
    messages = dict(release.messages)
    old = messages.pop(entry.was, None)
    if old is None or entry.message in messages:
        return release
    messages[entry.message] = replace(old, name=entry.message, aliases=(*old.aliases, entry.was))
    return Release(release.label, messages)


def _rename_field(release: Release, entry: Renamed) -> Release:
    message = release.messages.get(entry.message)
    if message is None:
        return release
    fields = _renamed_in(message.fields, entry.path, entry.was)
    if fields is message.fields:
        return release
    changed: MessageSchema = replace(message, fields=fields)
    return Release(release.label, release.messages | {entry.message: changed})


def _renamed_in(fields: tuple[Field, ...], path: tuple[str, ...], was: str) -> tuple[Field, ...]:
    """Return the fields with `was` renamed to the last name of `path`; the same tuple if there is nothing to rename."""
    names = {field.name for field in fields}
    if len(path) == 1:
        if was not in names or path[0] in names:
            return fields
        return tuple(replace(f, name=path[0], aliases=(*f.aliases, was)) if f.name == was else f for f in fields)
    deeper = {f.name: _renamed_in(f.fields, path[1:], was) for f in fields if f.name == path[0]}
    if all(deeper[f.name] is f.fields for f in fields if f.name in deeper):
        return fields
    return tuple(replace(f, fields=deeper[f.name]) if f.name in deeper else f for f in fields)
