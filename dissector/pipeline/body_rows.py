"""Rows of the tables `partitions`, `groups`, `topics` and `brokers`: what bodies of exchanges say, in typed columns.

Invariant: they are made of the JSON in `bodies`, so that they say what it says, and no secret. Nearly all rows of
`partitions` come by columns instead (`partition_columns`).
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from typing import Any, Final, NamedTuple

import numpy as np
import orjson
import pyarrow as pa

from dissector.bulk.packed_exchanges import Texts
from dissector.core.arrays import Bool, Int64
from dissector.pipeline import cluster_cells, group_cells, partition_cells
from dissector.pipeline.carried_columns import Columns
from dissector.tables.arrow_types import arrow_schema, column
from dissector.tables.row_batches import Cells
from dissector.tables.schemas import BY_NAME

Body = dict[str, Any]


class BodyTable(NamedTuple):
    """A table whose rows come from bodies."""

    name: str
    apis: frozenset[int]
    columns: Sequence[str]
    cells: Callable[[int, Body | None, Body | None], Iterable[tuple[Any, ...]]]


TABLES: Final = (
    BodyTable("partitions", partition_cells.APIS, partition_cells.COLUMNS, partition_cells.partition_cells),
    BodyTable("groups", group_cells.APIS, group_cells.COLUMNS, group_cells.group_cells),
    BodyTable("topics", cluster_cells.TOPIC_APIS, cluster_cells.TOPIC_COLUMNS, cluster_cells.topic_cells),
    BodyTable("brokers", cluster_cells.BROKER_APIS, cluster_cells.BROKER_COLUMNS, cluster_cells.broker_cells),
)
_APIS: Final = frozenset().union(*(table.apis for table in TABLES))
_BODY: Final = b'"body":'
"""No text has it: quotes are escaped there."""


def body_rows(api_key: int | None, content: Cells, shared: Cells) -> Iterator[tuple[str, Cells]]:
    """Yield the rows of one exchange, given as its JSON object; all have the cells that are `shared`."""
    for table in TABLES:
        if api_key in table.apis:
            assert api_key is not None
            request, response = (_body(content.get(side)) for side in ("request", "response"))
            for cells in table.cells(api_key, request, response):
                yield table.name, shared | dict(zip(table.columns, cells, strict=True))


def body_columns(
    api_keys: Int64, requests: Texts, responses: Texts, is_kept: Bool, of_row: Columns
) -> Iterator[tuple[str, pa.Table]]:
    """Yield the rows of many exchanges, of those that are kept; `of_row` has the columns that tables share. Bodies that
    are equal, as those of many clients that ask for the same, are opened once."""
    sides = [(np.append(0, np.cumsum(each.sizes)).tolist(), memoryview(each.data)) for each in (requests, responses)]
    chosen = np.flatnonzero(is_kept & np.isin(api_keys, list(_APIS)))
    found = [_RowsOfTable([], []) for _ in TABLES]
    opened = cache(_cells)
    for place, api_key in zip(chosen.tolist(), api_keys[chosen].tolist(), strict=True):
        request, response = (_body_text(data[ends[place] : ends[place + 1]]) for ends, data in sides)
        for made, of_table in zip(opened(api_key, request, response), found, strict=True):
            of_table.rows.extend(made)
            of_table.at.extend([place] * len(made))
    for table, of_table in zip(TABLES, found, strict=True):
        if of_table.rows:
            schema = arrow_schema(BY_NAME[table.name])
            cells = zip(table.columns, zip(*of_table.rows, strict=True), strict=True)
            where = {name: values.take(pa.array(of_table.at)) for name, values in of_row.items()}
            yield table.name, pa.table(where | {name: column(of, schema.field(name).type) for name, of in cells})


class _RowsOfTable(NamedTuple):
    """Rows of one table, and the place of the exchange that each is of."""

    rows: list[tuple[Any, ...]]
    at: list[int]


def _body_text(message: memoryview) -> bytes:
    """Return the JSON of a message from its body on, without what differs between equal ones."""
    text = bytes(message)
    return text[text.find(_BODY) :]


def _cells(api_key: int, *texts: bytes) -> list[list[tuple[Any, ...]]]:
    """Return the cells that each table has of an exchange, by the texts of its bodies."""
    request, response = (_body(orjson.loads(b"{" + text)) if text else None for text in texts)
    return [list(table.cells(api_key, request, response)) if api_key in table.apis else [] for table in TABLES]


def _body(message: Body | None) -> Body | None:
    body = message and message.get("body")
    return body if isinstance(body, dict) else None
