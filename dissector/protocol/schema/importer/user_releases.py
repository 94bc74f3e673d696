"""Saves, loads and removes imported releases in the user's data folder."""

import shutil
import tempfile
from dataclasses import replace
from pathlib import Path

from dissector.protocol.schema.imported import folder, imported_release, labels
from dissector.protocol.schema.importer.release import Release
from dissector.protocol.schema.importer.write import write_tables
from dissector.protocol.schema.index import index_entry
from dissector.protocol.schema.model import SchemaError
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
