"""What a reader sees of the tables of a storage: the captures, and the files of each table, of one moment.

Invariant: the facts of every capture in it are in its files. A capture's facts are committed before the capture, and
removed after it, so `captures` must be the same before and after the other tables are looked at.
"""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from deltalake import DeltaTable

from dissector.capture.errors import CaptureError
from dissector.tables.delta_log import CAPTURES, captures_in, delta_table, file_paths
from dissector.tables.evolution import whole_schema
from dissector.tables.file_systems import normal_uri
from dissector.tables.retries import tries
from dissector.tables.schemas import BY_NAME, FACT_TABLES, NO_BODIES, TableSchema


class Snapshot(NamedTuple):
    """The tables of a storage at one moment."""

    captures: list[dict[str, Any]]
    """The rows of `captures`."""
    files: Mapping[str, list[str]]
    """URIs of the files of each table that was asked for, and of `captures`, without escapes."""
    schemas: Mapping[str, TableSchema]
    """The columns of the same tables, with those of users."""


def has_bodies(capture: Mapping[str, Any]) -> bool:
    """Whether a capture, a row of `captures`, has rows in `bodies`."""
    return NO_BODIES not in capture["options"].split(", ")


def snapshot(uri: str, names: Collection[str] = FACT_TABLES) -> Snapshot | None:
    """Return tables of a storage, `captures` and those with these names; None if there are none. Raises
    `StorageError`."""
    for _ in tries(f"{uri}/{CAPTURES}"):
        captures = delta_table(uri, CAPTURES)
        if captures is None:
            return None
        files, schemas = {}, {CAPTURES: whole_schema(uri, CAPTURES, captures)}
        for name in names:
            table = delta_table(uri, name)
            files[name] = [] if table is None else _files(uri, name, table)
            schemas[name] = BY_NAME[name] if table is None else whole_schema(uri, name, table)
        version = captures.version()
        captures.update_incremental()
        if captures.version() == version:
            files[CAPTURES] = _files(uri, CAPTURES, captures)
            found = Snapshot(captures_in(uri, captures, whole=True), files, schemas)
            break
    return found


def seen_tables(folder: str, names: Collection[str] = FACT_TABLES) -> Snapshot:
    """Return what is to be seen of the tables of a folder or URL, as `snapshot`. Raises `CaptureError` if there are
    none, or such that can't be read."""
    found = snapshot(normal_uri(folder), names)
    if found is None:
        is_missing = "://" not in folder and not Path(folder).exists()
        raise CaptureError(f"{folder}: no such folder" if is_missing else f"{folder}: no tables found")
    return found


def _files(uri: str, name: str, table: DeltaTable) -> list[str]:
    return [f"{uri}/{name}/{path}" for path in file_paths(table)]
