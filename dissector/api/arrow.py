"""Exchanges and what they carry as tables of Arrow's, by the columns that `kdissect ingest` writes.

What only tables of many captures need is left out: the capture, its day, the ingest. `number` is that of the exchange.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from dissector.capture_session import Capture
from dissector.core.arrays import Int64
from dissector.core.suggestions import did_you_mean
from dissector.pipeline.origins import FileOrigins, Origin, Origins, Sources
from dissector.pipeline.partition_rows import RowBuilder, WriteOptions
from dissector.tables.row_batches import RowBatches
from dissector.tables.schemas import BY_NAME, KEYS

TABLES: Final = (
    "exchanges", "records", "batches", "partitions", "groups", "topics", "brokers", "findings", "connections",
)  # fmt: skip
_OF_MANY: Final = frozenset((*(each.name for each in KEYS), "merged_packet", "start", "nth", "replaces"))
"""Columns that a table of one capture has no use for."""
_ORIGIN: Final = Origin(0, "", 0, 0)
CONNECTION: Final = "connection"


def arrow_table(capture: Capture, name: str, chosen: Sequence[range | Int64] | None) -> pa.Table:
    """Return a table of a capture that was read and examined, of chosen rows or of all. Raises `ValueError` for a table
    that there is not."""
    if name not in TABLES:
        hint = did_you_mean(name, TABLES) if isinstance(name, str) else ""
        raise ValueError(f"{name!r} is not a table" + (hint or f": there are {', '.join(TABLES)}"))
    every = np.arange(len(capture))
    rows = every if chosen is None else np.concatenate([every[:0], *(np.asarray(each) for each in chosen)])
    found: list[pa.Table] = []
    batches = RowBatches(BY_NAME[name], found.append)
    origins = Origins(FileOrigins([_ORIGIN], []), Sources())
    for table, row in RowBuilder(capture, origins, WriteOptions(secrets=capture.shows_secrets)).rows_of(rows):
        if table == name:
            batches.add(row)
    batches.finish()
    made = pa.concat_tables([batches.schema.empty_table(), *found])
    columns = {each: _plain(made.column(each)) for each in made.column_names if each not in _OF_MANY}
    if CONNECTION in columns:
        numbers = _connections(capture)
        columns[CONNECTION] = pa.array([numbers.get(each) for each in columns[CONNECTION].to_pylist()], pa.int64())
    order = (CONNECTION,)
    if name != "connections":
        columns = {"number": _numbers(capture, rows, made)} | columns
        order = ("number",)
    return pa.table(columns).sort_by([(each, "ascending") for each in order])


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return shared texts as the texts that a file has: pandas refuses dictionaries that name a text twice."""
    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column


def _connections(capture: Capture) -> dict[str, int]:
    """Return the numbers of connections by their names in tables."""
    known = capture.connections
    return {f":{known.first_packet(number) + 1}": number for number in range(1, len(known) + 1)}


def _numbers(capture: Capture, rows: Int64, made: pa.Table) -> pa.Array:
    """Return the number of the exchange of each row."""
    packets, starts = capture.frames.positions(rows)
    begins = zip((packets + 1).tolist(), starts.tolist(), strict=True)
    numbers = dict(zip(begins, (rows + 1).tolist(), strict=True))
    keys = zip(made.column("packet").to_pylist(), made.column("start").to_pylist(), strict=True)
    return pa.array([numbers[key] for key in keys], pa.int64())
