"""Connections that are cut in the tables, as different runs ingested the captures with their parts.

A connection continues another one if both have the same ends, that one is the last before it, its FIN or RST was not
captured, and neither was this one's SYN, and if at most `LONGEST_PAUSE_NS` lie between their packets. TCP's sequence
numbers would prove it; the tables do not have them.

Invariants:
  * what one run read together is never told: there the capture itself lacks a part;
  * only runs that are near in time are looked at, and of `connections` only files that may have rows of them.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

import pyarrow as pa

from dissector.tables.delta_log import delta_table
from dissector.tables.schemas import BY_NAME

LONGEST_PAUSE_NS: Final = 600_000_000_000
"""A broker closes a connection that is idle for ten minutes, unless `connections.max.idle.ms` says otherwise: after
a longer pause, a connection with the same ends is another one."""
CONNECTIONS: Final = "connections"
_COLUMNS: Final = "capture, epoch, begin_ns, end_ns, closed_ns, opened"
_PREVIOUS: Final = ("capture", "epoch", "end_ns", "closed_ns")
Row = dict[str, Any]


class CutConnections(NamedTuple):
    """Connections that become whole if some captures are ingested together."""

    connections: int
    begin_in: list[Row]
    """Rows of `captures`, in the order of time."""
    continue_in: list[Row]
    together: list[Row]
    """All captures of the runs that read these: without one of them, others of their connections would be cut."""


def cut_connections(uri: str, captures: Sequence[Row], epoch: int | None = None) -> list[CutConnections]:
    """Return the connections of captures, rows of `captures`, that are cut between runs, or between one run and
    others; those with a run in common together. Raises `StorageError`, and `duckdb.Error` for files that can't be read.
    """
    timed = [row for row in captures if row["form"] == "capture" and row["begin_ns"]]
    near = timed if epoch is None else list(_near(timed, epoch))
    if len({row["epoch"] for row in near}) < 2:
        return []
    return list(_sets(near, _cuts(uri, near, epoch)))


def _near(captures: Sequence[Row], epoch: int) -> Iterator[Row]:
    """Yield the captures of the runs that have one near in time to one run."""
    mine = [row for row in captures if row["epoch"] == epoch]
    low = min((row["begin_ns"] for row in mine), default=0) - LONGEST_PAUSE_NS
    high = max((row["end_ns"] for row in mine), default=0) + LONGEST_PAUSE_NS
    epochs = {row["epoch"] for row in captures if row["end_ns"] >= low and row["begin_ns"] <= high}
    return (row for row in captures if row["epoch"] in epochs)


def _cuts(uri: str, captures: Sequence[Row], epoch: int | None) -> list[Row]:
    """Return how many connections are cut, by `previous_capture` and `capture`."""
    from dissector.tables.duckdb_engine import DuckDb

    engine = DuckDb()
    files = list(_files(uri, {row["epoch"] for row in captures}))
    engine.define_files("connection_files", BY_NAME[CONNECTIONS], files)
    names = ("capture", "epoch")
    engine.define_rows("near", pa.table({name: [row[name] for row in captures] for name in names}))
    ends = "least(client, server) AS one, greatest(client, server) AS other"
    live = "(capture, epoch) IN (SELECT capture, epoch FROM near)"
    engine.define("found", f"SELECT {_COLUMNS}, {ends} FROM connection_files WHERE {live}")
    previous = ", ".join(f"lag({name}) OVER in_time AS previous_{name}" for name in _PREVIOUS)
    with_ends, of_run = "", ""
    if epoch is not None:
        halves = f"SELECT one, other FROM found WHERE epoch = {epoch} AND (closed_ns IS NULL OR NOT opened)"
        with_ends = f"WHERE (one, other) IN ({halves})"
        of_run = f"AND {epoch} IN (epoch, previous_epoch)"
    in_order = (
        f"SELECT *, {previous} FROM found {with_ends}"
        " WINDOW in_time AS (PARTITION BY one, other ORDER BY begin_ns, end_ns)"
    )
    return list(engine.rows(
        f"SELECT previous_capture, capture, count(*) AS count FROM ({in_order})"
        f" WHERE NOT opened AND previous_closed_ns IS NULL AND previous_epoch <> epoch {of_run}"
        f" AND begin_ns - previous_end_ns BETWEEN 0 AND {LONGEST_PAUSE_NS} GROUP BY ALL"
    ))  # fmt: skip


def _files(uri: str, epochs: set[int]) -> Iterator[str]:
    """Yield the files of `connections` that may have rows of some runs, by the statistics in Delta's log."""
    table = delta_table(uri, CONNECTIONS)
    if table is None:
        return
    for row in pa.table(table.get_add_actions(flatten=True)).to_pylist():
        low, high = row.get("min.epoch"), row.get("max.epoch")
        if low is None or high is None or any(low <= epoch <= high for epoch in epochs):
            yield f"{uri}/{CONNECTIONS}/{row['path']}"


def _sets(captures: Sequence[Row], cuts: Sequence[Row]) -> Iterator[CutConnections]:
    """Yield the cuts of runs that must be read together."""
    by_name = {row["capture"]: row for row in captures}
    set_of = {row["epoch"]: row["epoch"] for row in captures}
    """One run of each set, by run."""
    for cut in cuts:
        old, new = (set_of[by_name[cut[name]]["epoch"]] for name in ("previous_capture", "capture"))
        set_of = {epoch: new if first == old else first for epoch, first in set_of.items()}
    by_set: dict[int, list[Row]] = {}
    for cut in cuts:
        by_set.setdefault(set_of[by_name[cut["capture"]]["epoch"]], []).append(cut)
    for first, mine in by_set.items():
        yield CutConnections(
            sum(cut["count"] for cut in mine),
            _in_order(by_name[name] for name in {cut["previous_capture"] for cut in mine}),
            _in_order(by_name[name] for name in {cut["capture"] for cut in mine}),
            _in_order(row for row in captures if set_of[row["epoch"]] == first),
        )


def _in_order(captures: Iterator[Row]) -> list[Row]:
    return sorted(captures, key=lambda row: (row["begin_ns"], row["path"]))
