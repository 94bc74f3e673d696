"""Releases in the user's data folder: imported from their jars, completely or not at all, loaded, removed."""

import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from dissector.protocol.schema.imported import folder, imported_release, is_label, labels
from dissector.protocol.schema.importer.jars import Release, read_release, version_of
from dissector.protocol.schema.importer.run import with_current_names
from dissector.protocol.schema.importer.wire_layout import version_differences
from dissector.protocol.schema.importer.write import write_tables
from dissector.protocol.schema.index import PAIRED_TYPES, index_entry
from dissector.protocol.schema.loader import api, entries, message, schema, try_import
from dissector.protocol.schema.model import MessageSchema, SchemaError, Versions
from dissector.protocol.schema.overlay import ImportedRelease


def stored(label: str) -> Release:
    """Load all of an imported release. Raises `SchemaError`."""
    found = imported_release(label)
    return Release(label, {name: found.table(name) for name in found.entries})


def in_memory(release: Release) -> ImportedRelease:
    """Return a release that is not saved (yet) as an imported one."""
    return ImportedRelease(
        release.label, {m.name: index_entry(m) for m in release.messages.values()}, release.messages.__getitem__
    )


def labelled(release: Release) -> Release:
    """Return the release with its label in `releases` of its messages, as in tables."""
    return Release(
        release.label,
        {name: replace(m, releases={release.label: m.valid_versions}) for name, m in release.messages.items()},
    )


def save(release: Release) -> Path:
    """Save a release, completely or not at all, and replace one of the same name. Return its folder."""
    place = folder() / release.label
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=place.parent, prefix=".") as made:
            fresh = Path(made) / "new"
            write_tables(fresh, release.messages.values())
            shutil.rmtree(place, ignore_errors=True)
            fresh.rename(place)
    except OSError as error:
        raise SchemaError(f"{place}: cannot be written: {error.strerror}") from error
    return place


def remove(label: str) -> bool:
    """Remove a release; return whether there was one."""
    if label not in labels():
        return False
    place = folder() / label
    try:
        shutil.rmtree(place)
    except OSError as error:
        raise SchemaError(f"{place}: cannot be removed: {error.strerror}") from error
    return True


@dataclass(frozen=True, slots=True)
class ImportedNames:
    """The result of an import: new versions, omitted ones, and those that have another layout in the tables."""

    label: str
    count: int
    folder: Path
    new: tuple[str, ...]
    left_out: tuple[str, ...]
    otherwise: tuple[str, ...]


def import_user_release(jars: Sequence[Path], name: str | None) -> ImportedNames:
    """Import the jars of one release under `name` (by default its version). Raises `SchemaError`."""
    label = name or _label(jars)
    if not is_label(label):
        raise SchemaError(f"{label}: the name of a release consists of letters, digits, and . _ + -")
    if label in message("ApiVersionsRequest").releases and label not in labels():
        raise SchemaError(f"{label}: is a release that is shipped with kdissect; use --name to choose another name")
    release = labelled(with_current_names(read_release(label, jars)))
    reasons = try_import(in_memory(release)).left_out
    pairs = [(each, _known(each)) for each in release.messages.values()]
    found = [(ours.name if ours else theirs.name, _new_versions(theirs, ours)) for theirs, ours in pairs]
    new = tuple(words for name, versions in found if name not in reasons and (words := _with_versions(name, versions)))
    left_out = tuple(
        f"{_with_versions(name, versions)}: {reasons[name]}" for name, versions in found if name in reasons
    )
    otherwise = tuple(
        words
        for theirs, ours in pairs
        if ours and (words := _with_versions(ours.name, _changed_versions(theirs, ours)))
    )
    return ImportedNames(label, len(release.messages), save(release), new, left_out, otherwise)


def _known(theirs: MessageSchema) -> MessageSchema | None:
    """Return the tables' message: for requests and responses by API key, for others by name."""
    known = api(theirs.api_key) if theirs.type in PAIRED_TYPES and theirs.api_key is not None else None
    if known is not None:
        return message(known.request if theirs.type == "request" else known.response)
    return message(theirs.name) if theirs.name in {entry.name for entry in entries()} else None


def _label(jars: Sequence[Path]) -> str:
    found = {version for jar in jars if (version := version_of(jar))}
    if len(found) == 1:
        return found.pop()
    reason = f"they are of {' and '.join(sorted(found))}" if found else "no jar names its release"
    raise SchemaError(f"{jars[0].name}: {reason}: use --name to name the release")


def _new_versions(theirs: MessageSchema, ours: MessageSchema | None) -> list[int]:
    """Return the versions that the tables lack."""
    return [v for v in theirs.valid_versions if ours is None or not ours.valid_versions.contains(v)]


def _changed_versions(theirs: MessageSchema, ours: MessageSchema) -> list[int]:
    """Return the versions that have another layout in the tables."""
    both = ours.valid_versions.intersect(theirs.valid_versions)
    return [v for v in both if next(version_differences(schema(ours.name, v), theirs, v), None)]


def _with_versions(name: str, versions: list[int]) -> str:
    """Return a message and its versions, ``FetchRequest v0-3, v5``; empty if there are none."""
    runs: list[Versions] = []
    for version in versions:
        if runs and runs[-1].high == version - 1:
            runs[-1] = Versions(runs[-1].low, version)
        else:
            runs.append(Versions(version, version))
    return f"{name} " + ", ".join(f"v{run}" for run in runs) if runs else ""
