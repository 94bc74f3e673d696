"""Rows of the tables `partitions` and `groups`: what the bodies of an exchange say, in typed columns.

Invariant: they are made of the JSON in `bodies`, so that they say what it says, and no secret.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import orjson
import pyarrow as pa

from dissector.core.arrays import Bool, Int64
from dissector.exchange.whole_exchanges import Texts
from dissector.pipeline import group_cells, partition_cells
from dissector.pipeline.carried_columns import Columns
from dissector.tables.arrow_types import arrow_schema, column
from dissector.tables.rows import Cells
from dissector.tables.schemas import BY_NAME

Body = dict[str, Any]


class _BodyTable(NamedTuple):
    """A table whose rows come from bodies."""

    name: str
    apis: frozenset[int]
    columns: Sequence[str]
    cells: Callable[[int, Body | None, Body | None], Iterable[tuple[Any, ...]]]


_TABLES: Final = (
    _BodyTable("partitions", partition_cells.APIS, partition_cells.COLUMNS, partition_cells.partition_cells),
    _BodyTable("groups", group_cells.APIS, group_cells.COLUMNS, group_cells.group_cells),
)


def body_rows(api_key: int | None, content: Cells, shared: Cells) -> Iterator[tuple[str, Cells]]:
    """Yield the rows of one exchange, given as its JSON object; all have the cells that are `shared`."""
    for table in _TABLES:
        if api_key in table.apis:
            assert api_key is not None
            request, response = (_body(content.get(side)) for side in ("request", "response"))
            for cells in table.cells(api_key, request, response):
                yield table.name, shared | dict(zip(table.columns, cells, strict=True))


def body_columns(
    api_keys: Int64, requests: Texts, responses: Texts, is_kept: Bool, of_row: Columns
) -> Iterator[tuple[str, pa.Table]]:
    """Yield the rows of many exchanges, of those that are kept; `of_row` has the columns that tables share."""
    sides = [(np.append(0, np.cumsum(each.sizes)).tolist(), memoryview(each.data)) for each in (requests, responses)]
    for table in _TABLES:
        chosen = np.flatnonzero(is_kept & np.isin(api_keys, list(table.apis)))
        at: list[int] = []
        rows: list[tuple[Any, ...]] = []
        for place, api_key in zip(chosen.tolist(), api_keys[chosen].tolist(), strict=True):
            request, response = (_parsed(data[ends[place] : ends[place + 1]]) for ends, data in sides)
            made = table.cells(api_key, request, response)
            rows += made
            at += [place] * (len(rows) - len(at))
        if rows:
            schema = arrow_schema(BY_NAME[table.name])
            of_rows = zip(table.columns, zip(*rows, strict=True), strict=True)
            where = {name: values.take(pa.array(at)) for name, values in of_row.items()}
            yield (
                table.name,
                pa.table(where | {name: column(cells, schema.field(name).type) for name, cells in of_rows}),
            )


def _parsed(text: memoryview) -> Body | None:
    return _body(orjson.loads(text)) if len(text) else None


def _body(message: Body | None) -> Body | None:
    body = message and message.get("body")
    return body if isinstance(body, dict) else None
