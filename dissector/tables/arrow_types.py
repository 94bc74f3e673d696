"""Arrow schemas of the tables, and Arrow columns of values."""

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.abc import MetaPathFinder
from itertools import accumulate, chain
from typing import Any, Final

import numpy as np
import pyarrow as pa

from dissector.core.arrays import Int64
from dissector.core.json_text import encodable
from dissector.tables.schemas import KEYS, TableSchema

SCALARS: Final = {
    "STRING": pa.string(), "BIGINT": pa.int64(), "INT": pa.int32(), "DATE": pa.date32(), "BINARY": pa.binary(),
    "BOOLEAN": pa.bool_(), "TIMESTAMP": pa.timestamp("us", tz="UTC"),
    "TIMESTAMP_NTZ": pa.timestamp("us"), "SMALLINT": pa.int16(), "TINYINT": pa.int8(), "FLOAT": pa.float32(),
    "DOUBLE": pa.float64(),
}  # fmt: skip
"""Those from `TIMESTAMP_NTZ` on only columns of users have."""
TEXTS: Final = pa.dictionary(pa.int32(), pa.string())
REPEATED: Final = frozenset((
    "capture", "connection", "client", "server", "kind", "api", "client_id", "software_name", "software_version",
    "isolation_level", "topic", "group_id", "transactional_id", "codec", "timestamp_type",
))  # fmt: skip
"""Columns with texts that many rows share. As dictionaries they are taken, joined and written by their numbers, which
takes a third of the time; in a file they are texts as others."""
_NS, _MS = 1, 1_000_000
"""Nanoseconds of a unit."""
TIMES: Final = {
    "time": ("time_ns", _NS), "first_time": ("first_ns", _NS), "begin_time": ("begin_ns", _NS),
    "end_time": ("end_ns", _NS), "closed_time": ("closed_ns", _NS), "timestamp": ("timestamp_ms", _MS),
    "first_timestamp": ("first_timestamp_ms", _MS), "max_timestamp": ("max_timestamp_ms", _MS),
}  # fmt: skip
"""Columns with the same times as others, which are numbers, and the unit of those."""
_FIRST_MS, _LAST_MS = -62_135_596_800_000, 253_402_300_799_999
"""Of the years 1 and 9999. No reader knows others."""


def arrow_schema(table: TableSchema) -> pa.Schema:
    """Return the schema of a table."""
    return arrow_columns(", ".join(f"{each.name} {each.type}" for each in (*KEYS, *table.columns)))


def with_dictionaries(schema: pa.Schema) -> pa.Schema:
    """Return a schema with dictionaries for columns of repeated texts."""
    fields = (field.with_type(TEXTS) if field.name in REPEATED else field for field in schema)
    return pa.schema(fields)


def chosen(texts: Sequence[str | None], which: Int64) -> pa.DictionaryArray:
    """Return a column of repeated texts: one for each row, by its number. Bytes that are no UTF-8 are escaped."""
    is_null = np.array([text is None for text in texts], np.bool_)
    numbers = pa.array(which, pa.int32(), mask=is_null[which] if is_null.any() else None)
    words = [(text or "").encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace") for text in texts]
    return pa.DictionaryArray.from_arrays(numbers, pa.array(words, pa.string()))


def of_type(values: pa.ChunkedArray | pa.Array, field: pa.Field) -> pa.ChunkedArray | pa.Array:
    """Return a column as one of its field, if that is one of repeated texts."""
    is_plain = pa.types.is_dictionary(field.type) and not pa.types.is_dictionary(values.type)
    return values.dictionary_encode() if is_plain else values


def all_columns(schema: pa.Schema, of: Callable[[pa.Field], pa.Array]) -> list[pa.Array]:
    """Return the columns of a schema: those that `of` gives, and times made of the numbers in others."""
    given = {field.name: of(field) for field in schema if field.name not in TIMES}
    return [given[field.name] if field.name in given else _times(given, field) for field in schema]


def _times(given: Mapping[str, pa.Array], field: pa.Field) -> pa.Array:
    """Return times with microseconds; null where no calendar has them."""
    import pyarrow.compute as pc  # takes a tenth of a small question, which makes no times

    source, unit = TIMES[field.name]
    numbers = given[source]
    if unit == _NS:
        if field.name != "time":  # of a file, or of an end of a connection: 0 is none
            numbers = pc.if_else(pc.not_equal(numbers, 0), numbers, None)
        return pc.cast(numbers.cast(pa.timestamp("ns", tz="UTC")), field.type, safe=False)
    is_known = pc.and_(pc.greater_equal(numbers, _FIRST_MS), pc.less_equal(numbers, _LAST_MS))
    return pc.if_else(is_known, numbers, None).cast(pa.timestamp("ms", tz="UTC")).cast(field.type)


def arrow_columns(words: str) -> pa.Schema:
    """Return the Arrow schema of columns that are given as Spark's DDL."""
    kinds = [part.partition(" ") for part in _parts(words)]
    return pa.schema([(name, arrow_type(kind)) for name, _, kind in kinds])


def arrow_type(words: str) -> pa.DataType:
    """Return the Arrow type of a Spark type, as `schemas` writes it."""
    head, _, inner = words.partition("<")
    inner = inner.removesuffix(">")
    if not inner:
        return SCALARS[head]
    parts = _parts(inner)
    if head == "STRUCT":
        named = (part.partition(":") for part in parts)
        return pa.struct([(name.strip(), arrow_type(kind.strip())) for name, _, kind in named])
    return pa.list_(arrow_type(inner)) if head == "ARRAY" else pa.map_(*(arrow_type(part) for part in parts))


def _parts(inner: str) -> list[str]:
    """Split at commas that are not inside of angle brackets."""
    parts, depth = [""], 0
    for character in inner:
        depth += (character == "<") - (character == ">")
        if character == "," and not depth:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts]


def column(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """Return a column. Text that is not UTF-8 is escaped as in JSON."""
    if pa.types.is_dictionary(kind):
        return column(values, kind.value_type).dictionary_encode()
    if pa.types.is_map(kind):
        return _shared(values, kind)
    if pa.types.is_list(kind) and pa.types.is_struct(kind.value_type) and None not in values:
        return _lists(values, kind)
    try:
        return pa.array(values, kind)
    except UnicodeEncodeError:
        return pa.array([encodable(value) if isinstance(value, str | list | dict) else value for value in values], kind)


def _shared(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """Return a column of objects that many rows share, each converted once."""
    distinct = {id(value): value for value in values}
    numbers = {each: number for number, each in enumerate(distinct)}
    return pa.array(list(distinct.values()), kind).take(pa.array([numbers[id(value)] for value in values], pa.int32()))


def _lists(values: Sequence[Sequence[Any]], kind: pa.ListType) -> pa.Array:
    """Return lists of structs, given as dicts or tuples, field by field: half the time that Arrow needs to convert each
    struct."""
    ends = pa.array(accumulate(map(len, values), initial=0), pa.int32())
    flat = list(chain.from_iterable(values))
    is_named = not flat or isinstance(flat[0], dict)
    columns = (
        [[each[field.name] for each in flat] for field in kind.value_type] if is_named else zip(*flat, strict=True)
    )
    fields = [column(cells, field.type) for cells, field in zip(columns, kind.value_type, strict=True)]
    return pa.ListArray.from_arrays(ends, pa.StructArray.from_arrays(fields, fields=list(kind.value_type)), type=kind)


class _NoPandas(MetaPathFinder):
    def find_spec(self, fullname: str, *_: object) -> None:
        """Raise the error of a module that is not installed, for pandas alone."""
        if fullname == "pandas":
            raise ModuleNotFoundError(fullname)


def keep_pandas_out() -> None:
    """Hide pandas from pyarrow, which imports it before it makes its first column, to see whether the values are of it:
    a sixth of the CPU of a small ingest, and 40 MB. pyarrow looks for it once; who asks for it by name still gets it.
    For processes whose objects are all our own."""
    if "pandas" not in sys.modules:
        sys.meta_path.insert(0, _NoPandas())
        pa.array([])
        del sys.meta_path[0]
