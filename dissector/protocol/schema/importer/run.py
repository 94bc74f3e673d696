"""The import of all releases: writes the tables, or reports what a person has to decide first.

    read_release -> rename (resolutions) -> merge_releases -> disagreements -> alternatives (resolutions)
    -> write_tables

Invariant: tables are written after `merge_check` found no unresolved disagreement, or not at all.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from dissector.protocol.schema.importer.jars import Release, read_release
from dissector.protocol.schema.importer.merge import merge_releases
from dissector.protocol.schema.importer.merge_check import alternatives, disagreements
from dissector.protocol.schema.importer.resolutions import Resolutions, read_resolutions, rename
from dissector.protocol.schema.importer.write import Alternative, write_tables
from dissector.protocol.schema.model import MessageSchema, SchemaError

SCHEMA_FOLDER: Final = Path(__file__).parent.parent


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
