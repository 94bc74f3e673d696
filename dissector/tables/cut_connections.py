"""Connections of which different runs ingested parts: cut in the tables, or there more than once.

A connection continues another one if both have the same ends, that one is the last before it, its FIN or RST was not
captured, and neither was this one's SYN, and if at most `LONGEST_PAUSE_NS` lie between their packets. TCP's sequence
numbers would prove it; the tables do not have them. If they overlap in time, rows that both have meanwhile say whether
they are the same (`repeated_exchanges`).

Invariants:
  * what one run read together is never reported: there the capture itself lacks a part;
  * only runs that are near in time are looked at, and of the tables only files that may have rows of them; of exchanges
    only if connections of different runs overlap. Time and memory do not grow with the square of the runs.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa

from dissector.tables.delta_log import delta_table
from dissector.tables.repeated_exchanges import (
    EXCHANGES,
    FINDINGS,
    NOTHING_REPEATED,
    Group,
    RepeatedExchanges,
    repeated_exchanges,
)
from dissector.tables.schemas import BY_NAME

if TYPE_CHECKING:
    from dissector.tables.database import Database

LONGEST_PAUSE_NS: Final = 600_000_000_000
"""A broker closes a connection that is idle for ten minutes, unless `connections.max.idle.ms` says otherwise: after
a longer pause, a connection with the same ends is another one."""
CONNECTIONS: Final = "connections"
_COLUMNS: Final = "connection, found.capture, found.epoch, merged_with, begin_ns, end_ns, closed_ns, opened"
_PREVIOUS: Final = ("connection", "capture", "epoch", "merged_with", "begin_ns", "end_ns", "closed_ns")
Row = dict[str, Any]


class CutConnections(NamedTuple):
    """What becomes whole, and is there once, if some captures are ingested together."""

    connections: int
    """How many are cut."""
    begin_in: list[Row]
    """Rows of `captures`, in the order of time."""
    continue_in: list[Row]
    repeated: int
    """How many exchanges there are too many."""
    first_in: list[Row]
    repeated_in: list[Row]
    together: list[Row]
    """All captures of the runs that read these: without one of them, others of their connections would be cut."""
    spare: list[Row]
    """Those of them that can be forgotten without a loss, as others have all that they have."""
    is_enough: bool
    """Whether nothing of this is left when these are forgotten."""


def cut_connections(uri: str, captures: Sequence[Row], epoch: int | None = None) -> list[CutConnections]:
    """Return the connections of captures, rows of `captures`, that are cut between runs or repeated by them, or of one
    run and others; those with a run in common together. Raises `StorageError`, and `duckdb.Error` for files that can't
    be read."""
    timed = [row for row in captures if row["form"] == "capture" and row["begin_ns"]]
    near = timed if epoch is None else list(_near(timed, epoch))
    if len({row["epoch"] for row in near}) < 2:
        return []
    return list(_sets(near, *_parts(uri, near, epoch)))


def _near(captures: Sequence[Row], epoch: int) -> Iterator[Row]:
    """Yield the captures of the runs that have one near in time to one run."""
    mine = [row for row in captures if row["epoch"] == epoch]
    low = min((row["begin_ns"] for row in mine), default=0) - LONGEST_PAUSE_NS
    high = max((row["end_ns"] for row in mine), default=0) + LONGEST_PAUSE_NS
    epochs = {row["epoch"] for row in captures if row["end_ns"] >= low and row["begin_ns"] <= high}
    return (row for row in captures if row["epoch"] in epochs)


def _parts(uri: str, captures: Sequence[Row], epoch: int | None) -> tuple[list[Row], RepeatedExchanges]:
    """Return how many connections are cut, by `previous_capture` and `capture`; and what is repeated."""
    from dissector.tables.database import Database

    engine = Database()
    _define_pairs(engine, uri, captures, epoch)
    repeated = NOTHING_REPEATED
    if runs := {row[name] for row in engine.rows("SELECT * FROM pairs") for name in ("previous_epoch", "epoch")}:
        for name in (EXCHANGES, FINDINGS):
            engine.define_files(name, BY_NAME[name], list(_files(uri, name, runs)))
        repeated = repeated_exchanges(engine)
    maybe = ", ".join(map(str, sorted(repeated.not_contradicted))) or "NULL"
    cuts = engine.rows(
        "SELECT previous_capture, capture, count(*) AS count FROM (SELECT previous_capture, capture FROM touching UNION"
        f" ALL SELECT previous_capture, capture FROM pairs WHERE goes_on AND number IN ({maybe})) GROUP BY ALL"
    )
    return list(cuts), repeated


def _define_pairs(engine: "Database", uri: str, captures: Sequence[Row], epoch: int | None) -> None:
    """Define connections of two runs that follow each other, `touching`, and those that overlap in time, `pairs`."""
    files = list(_files(uri, CONNECTIONS, {row["epoch"] for row in captures}))
    engine.define_files("connection_files", BY_NAME[CONNECTIONS], files)
    types = {"capture": "VARCHAR", "epoch": "BIGINT", "merged_with": "VARCHAR"}
    engine.define_rows("near", types, [[row[name] for name in types] for row in captures])
    ends = "least(client, server) AS one, greatest(client, server) AS other"
    engine.define("found", f"SELECT {_COLUMNS}, {ends} FROM connection_files AS found JOIN near USING (capture, epoch)")
    previous = f"struct_pack({', '.join(f'previous_{name} := {name}' for name in _PREVIOUS)})"
    with_ends = "" if epoch is None else f"WHERE (one, other) IN (SELECT one, other FROM found WHERE epoch = {epoch})"
    of_run = "" if epoch is None else f"AND {epoch} IN (epoch, previous_epoch)"
    columns = "connection, capture, epoch, merged_with, begin_ns, end_ns, opened"
    # Of those before it, the one that lasts longest, as well: all pairs would be the square of the runs.
    engine.define(
        "in_order",
        f"SELECT {columns}, lag({previous}) OVER in_time AS last, arg_max({previous}, end_ns) OVER before AS longest"
        f" FROM found {with_ends} WINDOW in_time AS (PARTITION BY one, other ORDER BY begin_ns, end_ns, epoch),"
        " before AS (in_time ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)",
        kept=True,
    )
    goes_on = "NOT opened AND previous_closed_ns IS NULL"
    engine.define(
        "touching",
        f"SELECT previous_capture, capture FROM (SELECT {columns}, unnest(last) FROM in_order) WHERE {goes_on}"
        f" AND previous_epoch <> epoch {of_run} AND begin_ns - previous_end_ns BETWEEN 1 AND {LONGEST_PAUSE_NS}",
    )
    both = " UNION ".join(f"SELECT {columns}, unnest({each}) FROM in_order" for each in ("last", "longest"))
    engine.define(
        "pairs",
        f"SELECT row_number() OVER () AS number, *, begin_ns AS low, least(end_ns, previous_end_ns) AS high,"
        f" {goes_on} AND (end_ns > previous_end_ns OR begin_ns = previous_end_ns) AS goes_on FROM ({both})"
        f" WHERE begin_ns <= previous_end_ns AND previous_epoch <> epoch {of_run}",
        kept=True,
    )


def _files(uri: str, name: str, epochs: set[int]) -> Iterator[str]:
    """Yield the files of a table that may have rows of some runs, by the statistics in Delta's log."""
    table = delta_table(uri, name)
    if table is None:
        return
    for row in pa.table(table.get_add_actions(flatten=True)).to_pylist():
        low, high = row.get("min.epoch"), row.get("max.epoch")
        if low is None or high is None or any(low <= epoch <= high for epoch in epochs):
            yield f"{uri}/{name}/{row['path']}"


def _sets(captures: Sequence[Row], cuts: Sequence[Row], found: RepeatedExchanges) -> Iterator[CutConnections]:
    """Yield what is cut and repeated, by runs that must be read together."""
    by_name = {row["capture"]: row for row in captures}
    groups = {row["capture"]: Group(row["epoch"], row["merged_with"]) for row in captures}
    set_of = {row["epoch"]: row["epoch"] for row in captures}
    """One run of each set, by run."""
    repeated = [each._asdict() for each in found.repeated]
    for pair in (*cuts, *repeated):
        old, new = (set_of[by_name[pair[name]]["epoch"]] for name in ("previous_capture", "capture"))
        set_of = {epoch: new if first == old else first for epoch, first in set_of.items()}

    def of(which: int, pairs: Sequence[Row]) -> list[Row]:
        return [pair for pair in pairs if set_of[by_name[pair["capture"]]["epoch"]] == which]

    def named(name: str, pairs: Sequence[Row]) -> list[Row]:
        return _in_order(by_name[each] for each in {pair[name] for pair in pairs})

    for first in dict.fromkeys(set_of[by_name[pair["capture"]]["epoch"]] for pair in (*cuts, *repeated)):
        mine, again = of(first, cuts), of(first, repeated)
        ends = [{groups[pair[name]] for name in ("previous_capture", "capture")} for pair in (*mine, *again)]
        together = _in_order(row for row in captures if set_of[row["epoch"]] == first)
        has_same_options = len({row["options"] for row in together}) == 1
        spare = [row for row in together if has_same_options and groups[row["capture"]] in found.spare]
        is_enough = bool(spare) and all(not found.spare.isdisjoint(pair) for pair in ends)
        yield CutConnections(
            sum(cut["count"] for cut in mine), named("previous_capture", mine), named("capture", mine),
            sum(each["number"] for each in again), named("previous_capture", again), named("capture", again), together,
            spare, is_enough,
        )  # fmt: skip


def _in_order(captures: Iterable[Row]) -> list[Row]:
    return sorted(captures, key=lambda row: (row["begin_ns"], row["path"]))
