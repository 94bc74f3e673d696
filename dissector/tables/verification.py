"""Checks tables: whether each file is there and whole, and whether rows go with those of `exchanges`.

DuckDB joins the keys of rows, so that memory does not grow with their number: what does not fit goes to the disk.
"""

from collections.abc import Iterator
from contextlib import closing
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable

from dissector.core.text import counted
from dissector.tables.database import Database
from dissector.tables.delta_log import add_actions, delta_table, size_problem
from dissector.tables.file_systems import normal_uri, opened
from dissector.tables.schemas import BY_NAME, FACT_TABLES
from dissector.tables.snapshot import Snapshot, has_bodies

_KEY: Final = "capture, epoch, packet, start"
_OF_EXCHANGES: Final = ("records", "findings", "gaps")
_LIVE: Final = "SEMI JOIN live USING (capture, epoch)"
"""Of rows that count."""


def problems(uri: str, seen: Snapshot) -> Iterator[str]:
    """Yield what is wrong with the tables, each in one line: files that are missing or cut, rows without the others
    that belong to them. Rows that do not count are no problem, but are reported."""
    with closing(Database()) as database:
        yield from _problems(uri, seen, database)


def _problems(uri: str, seen: Snapshot, database: Database) -> Iterator[str]:
    live = [(row["capture"], row["epoch"], has_bodies(row)) for row in seen.captures]
    database.define_rows("live", {"capture": "VARCHAR", "epoch": "BIGINT", "has_bodies": "BOOLEAN"}, live)
    for name in FACT_TABLES:
        table = delta_table(uri, name)
        readable: list[str] = []
        if table is None:
            yield f"{name}: the table is missing: of tables of an earlier version, kdissect tables upgrade adds it"
        else:
            for path, words, is_readable in _files(uri, name, table):
                if words:
                    yield f"{name}: {path}: {words}"
                if is_readable:
                    readable.append(normal_uri(f"{uri}/{name}/{path}"))
        database.define_files(name, BY_NAME[name], readable)
        dead = _count(database, f"{name} ANTI JOIN live USING (capture, epoch)")
        if dead:
            yield f"{name}: {counted(dead, 'row')} of captures that are not there: a killed ingest left them"
    yield from _unmatched(database)


def _files(uri: str, name: str, table: DeltaTable) -> Iterator[tuple[str, str, bool]]:
    """Yield each file of a table, what is wrong with it by its size and its end, and whether it can be read; no words
    for nothing."""
    files, top = opened(f"{uri}/{name}")
    actions = add_actions(table)
    for path, size, rows in zip(
        *(actions.column(each).to_pylist() for each in ("path", "size_bytes", "num_records")), strict=True
    ):
        if problem := size_problem(files.get_file_info(f"{top}/{path}"), size):
            yield path, problem, False
            continue
        try:
            found = pq.read_metadata(f"{top}/{path}", filesystem=files).num_rows
        except (OSError, pa.ArrowInvalid) as error:
            yield path, str(error).splitlines()[0], False
            continue
        yield path, "" if found == rows else f"{counted(found, 'row')} instead of {rows:,}", True


def _unmatched(database: Database) -> Iterator[str]:
    """Yield which rows do not go with those of `exchanges`."""
    exchanges, bodies = (f"(SELECT {_KEY} FROM {name} {_LIVE})" for name in ("exchanges", "bodies"))
    if twice := _count(database, f"(SELECT 1 FROM {exchanges} GROUP BY {_KEY} HAVING count(*) > 1)"):
        yield f"exchanges: {counted(twice, 'row')} more than once"
    with_bodies = f"(SELECT {_KEY} FROM exchanges JOIN live USING (capture, epoch) WHERE has_bodies)"
    if any(_count(database, f"({a} EXCEPT ALL {b})") for a, b in ((with_bodies, bodies), (bodies, with_bodies))):
        yield "bodies: not one for each row of exchanges"
    for name in _OF_EXCHANGES:
        if lost := _count(database, f"{name} {_LIVE} ANTI JOIN {exchanges} AS exchanges USING ({_KEY})"):
            yield f"{name}: {counted(lost, 'row')} of no row of exchanges"


def _count(database: Database, rows: str) -> int:
    """Return how many rows SQL gives."""
    [row] = database.rows(f"SELECT count(*) AS rows FROM {rows}")
    return int(row["rows"])
