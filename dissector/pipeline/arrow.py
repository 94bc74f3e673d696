"""Rows of several tables as Arrow batches of one shape: a struct column for each table, of which a row has one.

Beside them goes what parts left out (`tally`), which is no table's.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final

import pyarrow as pa

from dissector.pipeline.tables import BY_NAME, OF_PARTS, PARTITIONS, Table

MOST_ROWS: Final = 2_000
MOST_BYTES: Final = 4 << 20
"""Of JSON and of what is kept as bytes in one batch, about."""


_SCALARS: Final = {
    "STRING": pa.string(), "BIGINT": pa.int64(), "INT": pa.int32(), "DATE": pa.date32(), "BINARY": pa.binary(),
    "BOOLEAN": pa.bool_(),
}  # fmt: skip


def ddl_of_rows() -> str:
    """The shape, in Spark's words."""
    partitions = ", ".join(f"{column.name} {column.type}" for column in PARTITIONS)
    structs = ", ".join(f"{name} STRUCT<{_struct(BY_NAME[name])}>" for name in OF_PARTS)
    return f"table STRING, {partitions}, {structs}, tally BINARY"


def _struct(table: Table) -> str:
    return ", ".join(f"{c.name}: {'STRING' if c.of_json else c.type}" for c in table.columns)


def arrow_schema() -> pa.Schema:
    """The shape, in Arrow's."""
    fields = [("table", pa.string()), *((column.name, arrow_type(column.type)) for column in PARTITIONS)]
    structs = ((name, arrow_type(f"STRUCT<{_struct(BY_NAME[name])}>")) for name in OF_PARTS)
    return pa.schema([*fields, *structs, ("tally", pa.binary())])


def arrow_type(words: str) -> pa.DataType:
    """A type of Spark's, as `tables` writes them, in Arrow's words."""
    head, _, inner = words.partition("<")
    inner = inner.removesuffix(">")
    if not inner:
        return _SCALARS[head]
    parts = _parts(inner)
    if head == "STRUCT":
        named = (part.partition(":") for part in parts)
        return pa.struct([(name.strip(), arrow_type(kind.strip())) for name, _, kind in named])
    return pa.list_(arrow_type(inner)) if head == "ARRAY" else pa.map_(*(arrow_type(part) for part in parts))


def _parts(inner: str) -> list[str]:
    """What stands between commas, but for those inside of brackets."""
    parts, depth = [""], 0
    for character in inner:
        depth += (character == "<") - (character == ">")
        if character == "," and not depth:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts]


def batches(rows: Iterable[tuple[str, dict[str, Any]]]) -> Iterator[pa.RecordBatch]:
    """Rows as they come, some at a time."""
    schema = arrow_schema()
    waiting: list[tuple[str, dict[str, Any]]] = []
    size = 0
    for table, row in rows:
        waiting.append((table, row))
        size += sum(len(value) for value in row.values() if isinstance(value, bytes))
        if len(waiting) >= MOST_ROWS or size >= MOST_BYTES:
            yield _batch(waiting, schema)
            waiting, size = [], 0
    if waiting:
        yield _batch(waiting, schema)


def _batch(rows: list[tuple[str, dict[str, Any]]], schema: pa.Schema) -> pa.RecordBatch:
    columns = [
        pa.array([table for table, _ in rows], pa.string()),
        *(pa.array([row[column.name] for _, row in rows], schema.field(column.name).type) for column in PARTITIONS),
        *(
            pa.array([row if table == name else None for table, row in rows], schema.field(name).type)
            for name in OF_PARTS
        ),
        pa.array([row.get("tally") for _, row in rows], pa.binary()),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)
