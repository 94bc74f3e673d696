"""Statistics of a data file, as Delta's log has them: by column the smallest and the greatest value and how many are
null, so that readers skip files.

Invariants:
  * every scalar column has all three, those inside of structs too: some readers take a column that lacks one, beside
    columns that have them, for one that holds nothing. Bytes, lists and maps have none, as in files of other writers;
  * a bound may be wider than the values, never narrower: long texts are cut.
"""

import json
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final

import pyarrow as pa

MAX_TEXT: Final = 32
"""Characters of a text that are kept."""
_GREATEST: Final = "\U0010ffff"
"""Behind the beginning of a text: greater than whatever follows there."""
_LATEST: Final = datetime.max.replace(microsecond=999_000, tzinfo=UTC)
Bounds = dict[str, Any]


class FileStatistics:
    """Statistics of the rows of one file, table by table."""

    def __init__(self) -> None:
        self._rows = 0
        self._least: Bounds = {}
        self._most: Bounds = {}
        self._nulls: Bounds = {}

    def add(self, rows: pa.Table) -> None:
        """Count the rows of a table."""
        self._rows += rows.num_rows
        for field, column in zip(rows.schema, rows.columns, strict=True):
            _add(field.name, column, self._least, self._most, self._nulls)

    def json(self) -> str:
        """Return the text for the log."""
        return json.dumps({
            "numRecords": self._rows, "minValues": _written(self._least, is_least=True),
            "maxValues": _written(self._most, is_least=False), "nullCount": self._nulls,
        })  # fmt: skip


def _add(name: str, column: pa.ChunkedArray, least: Bounds, most: Bounds, nulls: Bounds) -> None:
    kind = column.type
    if pa.types.is_struct(kind):
        inside = [bounds.setdefault(name, {}) for bounds in (least, most, nulls)]
        for field, values in zip(kind, column.flatten(), strict=True):
            _add(field.name, values, *inside)
    elif not (pa.types.is_nested(kind) or pa.types.is_binary(kind)):
        nulls[name] = nulls.get(name, 0) + column.null_count
        if column.null_count < len(column):
            import pyarrow.compute as pc  # takes a tenth of a small question, which needs no statistics

            found = pc.min_max(_values(column))
            low, high = _plain(found["min"]), _plain(found["max"])
            least[name] = min(low, least.get(name, low))
            most[name] = max(high, most.get(name, high))


def _values(column: pa.ChunkedArray) -> pa.ChunkedArray | pa.Array:
    """Return the values of a column; of a dictionary those that are there."""
    return column.unique().dictionary_decode() if pa.types.is_dictionary(column.type) else column


def _plain(value: pa.Scalar) -> Any:
    """Return a value that compares as in Parquet: texts by their bytes."""
    return value.as_buffer().to_pybytes() if pa.types.is_string(value.type) else value.as_py()


def _written(bounds: Bounds, *, is_least: bool) -> Bounds:
    """Return the bounds as JSON has them."""
    found: Bounds = {}
    for name, value in bounds.items():
        if isinstance(value, dict):
            found[name] = _written(value, is_least=is_least)
        elif isinstance(value, bytes):
            found[name] = _text(value, is_least=is_least)
        else:
            found[name] = _plain_json(value, is_least=is_least)
    return found


def _plain_json(value: Any, *, is_least: bool) -> Any:
    """Return a value as JSON has it: times with milliseconds."""
    if isinstance(value, datetime):
        whole = value.replace(microsecond=value.microsecond // 1000 * 1000)
        if not is_least and whole < value < _LATEST:
            whole += timedelta(milliseconds=1)
        return whole.strftime(f"{whole.year:04}-%m-%dT%H:%M:%S.{whole.microsecond // 1000:03}Z")
    return value.isoformat() if isinstance(value, date) else value


def _text(value: bytes, *, is_least: bool) -> str:
    text = value.decode()
    return text if len(text) <= MAX_TEXT else text[:MAX_TEXT] + ("" if is_least else _GREATEST)
