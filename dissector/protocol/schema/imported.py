"""Releases that a user imported: folders of tables in the user's data folder, written by `importer.user_releases`.

``$XDG_DATA_HOME/kdissect/schemas/4.5.0/`` is structured as `schema/tables`.
"""

import json
import re
from pathlib import Path
from typing import Final

from dissector.core.files import data_folder
from dissector.protocol.schema.index import read_entries
from dissector.protocol.schema.model import MessageSchema, SchemaError
from dissector.protocol.schema.overlay import ImportedRelease
from dissector.protocol.schema.table import message_of

_LABEL: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,63}")


def is_label(text: str) -> bool:
    """Return whether a release may have this name, which becomes a folder's."""
    return _LABEL.fullmatch(text) is not None


def folder() -> Path:
    """Return the folder of imported releases. Raises `SchemaError` if the user has no home."""
    try:
        return data_folder() / "schemas"
    except RuntimeError as error:
        raise SchemaError("no home folder for imported releases; set XDG_DATA_HOME") from error


def labels() -> tuple[str, ...]:
    """Return the names of imported releases; none if their folder can't be read."""
    try:
        return tuple(sorted(each.name for each in folder().iterdir() if is_label(each.name) and each.is_dir()))
    except (OSError, SchemaError):
        return ()


def imported_releases() -> tuple[ImportedRelease, ...]:
    """Return all imported releases; only their indexes are read. Raises `SchemaError`, which says how to remove one."""
    return tuple(imported_release(label) for label in labels())


def imported_release(label: str) -> ImportedRelease:
    """Return one imported release. Raises `SchemaError`."""
    where = folder() / label
    return ImportedRelease(
        label, read_entries(_json(where / "index.json", label), _named(label)), lambda n: _table(label, n)
    )


def _named(label: str) -> str:
    return f"the imported release {label} (kdissect schema remove {label})"


def _json(path: Path, label: str) -> object:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise SchemaError(f"{_named(label)}: {path.name}: cannot be read: {error}") from error


def _table(label: str, name: str) -> MessageSchema:
    return message_of(_json(folder() / label / f"{name}.json", label), f"{_named(label)}: {name}")
