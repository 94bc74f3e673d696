"""Tables in Arrow's words: schemas as `tables` has them, JSON as text still."""

from typing import Final

import pyarrow as pa

from dissector.pipeline.tables import PARTITIONS, Table

_SCALARS: Final = {
    "STRING": pa.string(), "BIGINT": pa.int64(), "INT": pa.int32(), "DATE": pa.date32(), "BINARY": pa.binary(),
    "BOOLEAN": pa.bool_(),
}  # fmt: skip


def arrow_schema(table: Table) -> pa.Schema:
    """A table's columns, the partitions first."""
    columns = (*PARTITIONS, *table.columns)
    return pa.schema([(c.name, pa.string() if c.of_json else arrow_type(c.type)) for c in columns])


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
