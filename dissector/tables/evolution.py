"""What a table of another version, or with columns of users, may be: columns are found by name.

Invariants:
  * columns of ours that a table lacks are null in its rows, and are added when it is written to;
  * columns of users are kept, and null in the rows of an ingest;
  * a column of ours with another type is refused, and so is a table without `KEYS`: a commit of files would notice
    neither.
"""

import json
from typing import Any, Final

from deltalake import DeltaTable, Schema

from dissector.core.text import clean
from dissector.tables.arrow_types import arrow_schema
from dissector.tables.file_systems import LOCAL
from dissector.tables.schemas import BY_NAME, KEYS, TableColumn, TableSchema
from dissector.tables.storage import StorageError

_WAY_OUT: Final = "ingest the captures into another folder"
_INTEGERS: Final = {"long": "BIGINT", "integer": "INT", "short": "SMALLINT", "byte": "TINYINT"}


def whole_schema(uri: str, name: str, table: DeltaTable) -> TableSchema:
    """Return the columns of this version, and behind them those of users. Raises `StorageError` for a table that can't
    be read."""
    where = f"{uri.removeprefix(LOCAL)}/{name}"
    ours = BY_NAME[name]
    found = {field["name"].lower(): field for field in json.loads(table.schema().to_json())["fields"]}
    for column in (*KEYS, *ours.columns):
        field = found.pop(column.name, None)
        if field is None:
            if column in KEYS:
                raise StorageError(f"{where}: no column {column.name}: kdissect did not write this table: {_WAY_OUT}")
        elif (there := (field["name"], _words(field["type"]))) != (column.name, column.type):
            raise StorageError(
                f"{where}: its column {clean(' '.join(there))} would be {column.name} {column.type}: {_WAY_OUT}"
            )
    others = (TableColumn(field["name"], _words(field["type"]), "a user's") for field in found.values())
    return ours._replace(columns=(*ours.columns, *others))


def add_columns(name: str, table: DeltaTable) -> list[str]:
    """Add the columns of this version that a table lacks; return their names."""
    there = {field.name for field in table.schema().fields}
    fields = [field for field in Schema.from_arrow(arrow_schema(BY_NAME[name])).fields if field.name not in there]
    if fields:
        table.alter.add_columns(fields)
    return [field.name for field in fields]


def _words(kind: Any) -> str:
    """Return a type of Delta's as `schemas` writes it."""
    if isinstance(kind, str):
        return _INTEGERS.get(kind, kind.upper())
    if kind["type"] == "array":
        return f"ARRAY<{_words(kind['elementType'])}>"
    if kind["type"] == "map":
        return f"MAP<{_words(kind['keyType'])}, {_words(kind['valueType'])}>"
    inside = ", ".join(f"{each['name']}: {_words(each['type'])}" for each in kind["fields"])
    return f"STRUCT<{inside}>"
