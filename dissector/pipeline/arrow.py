"""Tables in Arrow's words: schemas as `tables` has them, JSON as text still; columns of what rows have."""

from collections.abc import Sequence
from itertools import accumulate, chain
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from dissector.core.json_text import encodable
from dissector.pipeline.table_schemas import PARTITIONS, TableSchema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_SCALARS: Final = {
    "STRING": pa.string(), "BIGINT": pa.int64(), "INT": pa.int32(), "DATE": pa.date32(), "BINARY": pa.binary(),
    "BOOLEAN": pa.bool_(),
}  # fmt: skip


def arrow_schema(table: TableSchema, *, partitions: bool) -> pa.Schema:
    """A table's columns, the `partitions` before them or not."""
    columns = (*(PARTITIONS if partitions else ()), *table.columns)
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


def frame(spark: "SparkSession", rows: Sequence[tuple[Any, ...]], words: str) -> "DataFrame":
    """A few rows, of columns in Spark's words. As a list they would go by a worker of Python, which takes longer to
    start than all else."""
    kinds = [part.partition(" ") for part in _parts(words)]
    schema = pa.schema([(name, arrow_type(kind)) for name, _, kind in kinds])
    columns = [column([row[at] for row in rows], field.type) for at, field in enumerate(schema)]
    return spark.createDataFrame(pa.Table.from_arrays(columns, schema=schema), words)


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


def column(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """A column; text that is not UTF-8 as JSON has it."""
    if pa.types.is_list(kind) and pa.types.is_struct(kind.value_type) and None not in values:
        return _lists(values, kind)
    try:
        return pa.array(values, kind)
    except UnicodeEncodeError:
        return pa.array([encodable(value) if isinstance(value, str | list | dict) else value for value in values], kind)


def _lists(values: Sequence[Sequence[Any]], kind: pa.ListType) -> pa.Array:
    """Lists of structures, which are dicts or tuples, field by field: in half the time that Arrow takes to look at
    each."""
    ends = pa.array(accumulate(map(len, values), initial=0), pa.int32())
    flat = list(chain.from_iterable(values))
    is_named = not flat or isinstance(flat[0], dict)
    columns = (
        [[each[field.name] for each in flat] for field in kind.value_type] if is_named else zip(*flat, strict=True)
    )
    fields = [column(some, field.type) for some, field in zip(columns, kind.value_type, strict=True)]
    return pa.ListArray.from_arrays(ends, pa.StructArray.from_arrays(fields, fields=list(kind.value_type)), type=kind)
