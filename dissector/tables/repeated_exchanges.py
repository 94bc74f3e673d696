"""Exchanges that are in the tables more than once, as different runs ingested captures that share packets, or those of
two capture points.

Two connections of the same ends that overlap in time may still be two, of different networks with the same addresses.
So at least half of the rows that both have meanwhile must be the same exchanges: the same API, version, correlation id
and size, at the same time but for clocks that differ by `CLOCKS_DIFFER_NS`. A capture is spare if another one has each
of its connections for as long, none of which goes on in other captures of its run, and each of its rows: at the same
nanosecond and with the same contents, or with the half of the exchange that it lacks. To forget it loses nothing.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from dissector.tables.schemas import BY_NAME, KEYS
from dissector.tables.sql import Row

if TYPE_CHECKING:
    from dissector.tables.database import Database

CLOCKS_DIFFER_NS: Final = 1_000_000_000
"""Maximum difference between the clocks of two capture points."""
EXCHANGES: Final = "exchanges"
FINDINGS: Final = "findings"
_SAME: Final = "kind, api_key, api_version, correlation_id, coalesce(request_size, -response_size)"
_OF_THE_CAPTURE: Final = (
    "packet", "start", "time", "connection", "merged_packet", "response_packet", *(key.name for key in KEYS),
)  # fmt: skip
"""Columns by which rows of the same exchange differ if they are of two captures."""


class Group(NamedTuple):
    """Captures that one run merged, as they overlap in time."""

    epoch: int
    merged_with: str


class Repeated(NamedTuple):
    """Exchanges of one capture that another one has, too."""

    previous_capture: str
    capture: str
    number: int
    """How many."""


class RepeatedExchanges(NamedTuple):
    """What is known of pairs of connections, by their numbers."""

    repeated: list[Repeated]
    not_contradicted: set[int]
    """Pairs that may be one connection: while both last, one of them has no rows, or both have a moment only."""
    spare: set[Group]


NOTHING_REPEATED: Final = RepeatedExchanges([], set(), set())


def repeated_exchanges(engine: "Database") -> RepeatedExchanges:
    """Return what two runs have of the same connections. The engine has `near`, `pairs` and `found`, as
    `cut_connections` defines them, and files of exchanges and findings."""
    _define_rows(engine)
    pairs_found = list(engine.rows(
        f"SELECT number, low = high AS at_once, (SELECT count(*) FROM old WHERE {_meanwhile('old')}) AS old_rows,"
        f" (SELECT count(*) FROM new WHERE {_meanwhile('new')}) AS new_rows,"
        " (SELECT count(*) FROM matches WHERE matches.number = pairs.number) AS matches FROM pairs"
    ))  # fmt: skip
    same = {row["number"] for row in pairs_found if row["matches"] and 2 * row["matches"] >= _fewer(row)}
    engine.define("same", f"SELECT * FROM matches WHERE number IN ({_listed(same)})")
    counts = engine.rows(
        "SELECT previous_capture, capture, count(*) AS number FROM same GROUP BY ALL ORDER BY previous_capture, capture"
    )
    return RepeatedExchanges(
        [Repeated(**row) for row in counts],
        {row["number"] for row in pairs_found if row["at_once"] or not _fewer(row)} - same,
        set(_spare(engine, same)) if same else set(),
    )


def _meanwhile(side: str) -> str:
    return f"{side}.number = pairs.number AND {side}.time_ns BETWEEN low AND high"


def _fewer(row: Row) -> int:
    old, new = int(row["old_rows"]), int(row["new_rows"])
    return min(old, new)


def _listed(numbers: set[int]) -> str:
    return ", ".join(map(str, sorted(numbers))) or "NULL"


def _define_rows(engine: "Database") -> None:
    """Define the rows of both connections of each pair while both last, `old` and `new`, and the `matches` of them."""
    contents = ", ".join(each.name for each in BY_NAME[EXCHANGES].columns if each.name not in _OF_THE_CAPTURE)
    codes = (
        "SELECT capture, epoch, packet, start, list_sort(list_distinct(list(code))) AS codes"
        f" FROM {FINDINGS} SEMI JOIN near USING (capture, epoch) GROUP BY ALL"
    )
    engine.define("codes", codes)
    both = "SELECT previous_connection, previous_epoch FROM pairs UNION SELECT connection, epoch FROM pairs"
    engine.define(
        "rows",
        "SELECT capture, epoch, merged_with, connection, time_ns, correlation_id, request_size, response_size, kind,"
        f" time_ns + request_transfer_ns + wait_ns AS response_ns, packet, start, hash({_SAME}) AS same,"
        f" hash({contents}, codes) AS contents FROM {EXCHANGES} JOIN near USING (capture, epoch)"
        f" LEFT JOIN codes USING (capture, epoch, packet, start) WHERE (connection, epoch) IN ({both})",
        kept=True,
    )
    for name, prefix in (("old", "previous_"), ("new", "")):
        margin = f"CASE WHEN correlation_id IS NULL THEN 0 ELSE {CLOCKS_DIFFER_NS} END"
        engine.define(
            name,
            "SELECT number, rows.*, row_number() OVER (PARTITION BY number, same ORDER BY time_ns) AS nth FROM pairs"
            f" JOIN rows ON rows.connection = pairs.{prefix}connection AND rows.epoch = pairs.{prefix}epoch"
            f" WHERE time_ns BETWEEN low - {margin} AND high + {margin}",
            kept=True,
        )
    engine.define(
        "matches",
        "SELECT number, old.capture AS previous_capture, new.capture FROM old JOIN new USING (number, same, nth)"
        f" WHERE abs(old.time_ns - new.time_ns) <= {CLOCKS_DIFFER_NS}",
        kept=True,
    )


def _spare(engine: "Database", same: set[int]) -> Iterator[Group]:
    """Yield the groups of captures of which another run, none of whose captures is spare itself, has everything. Of two
    that are equal, the one that was ingested later is spare."""
    group = "epoch, merged_with"
    near = f"FROM {EXCHANGES} JOIN near USING (capture, epoch)"
    rows = _counts(engine, f"SELECT {group}, 0 AS other, count(*) AS number {near} GROUP BY ALL")
    connections = _counts(engine, f"SELECT {group}, 0 AS other, count(*) AS number FROM found GROUP BY ALL")
    found: list[tuple[Group, int]] = []
    for this, other, prefix, other_prefix, is_within in (
        ("new", "old", "", "previous_", "end_ns <= previous_end_ns"),
        ("old", "new", "previous_", "", "previous_begin_ns = begin_ns AND previous_end_ns <= end_ns"),
    ):
        covered = _counts(engine, _covered(this, other, same))
        pairs = f"FROM pairs WHERE number IN ({_listed(same)}) AND {is_within}"
        shared = _counts(
            engine,
            f"SELECT {prefix}epoch, {prefix}merged_with, {other_prefix}epoch AS other,"
            f" count(DISTINCT {prefix}connection) AS number {pairs} GROUP BY ALL",
        )
        found += [
            (each, run)
            for (each, run), number in covered.items()
            if number == rows[each, 0] and shared.get((each, run), 0) == connections.get((each, 0), 0)
        ]
    spare: set[Group] = set()
    going_on = set(_counts(engine, _going_on()))
    for each, run in sorted(set(found), reverse=True):
        if (each, 0) not in going_on and each not in spare and run not in {other.epoch for other in spare}:
            spare.add(each)
            yield each


def _covered(this: str, other: str, same: set[int]) -> str:
    """Return the SQL that counts rows of which the other run has everything. Gaps and what was not parsed are nothing
    that the other one could lack: they are where a capture begins or ends in the middle of a message."""
    columns = f"{this}.epoch, {this}.merged_with, {other}.epoch AS other, {this}.capture, {this}.packet, {this}.start"
    whole = (
        f"SELECT {columns} FROM {this} JOIN {other} USING (number, same, time_ns) WHERE number IN ({_listed(same)})"
        f" AND ({this}.contents = {other}.contents OR {this}.response_size IS NULL)"
    )
    response = (
        f"SELECT {columns} FROM {this} JOIN {other} USING (number, correlation_id, response_size)"
        f" WHERE number IN ({_listed(same)}) AND {this}.request_size IS NULL AND {other}.response_ns = {this}.time_ns"
    )
    nothing = (
        f"SELECT {columns} FROM {this} JOIN (SELECT DISTINCT number, epoch FROM {other}) AS {other} USING (number)"
        f" WHERE number IN ({_listed(same)}) AND kind IN ('gap', 'unparsed')"
    )
    union = f"{whole} UNION {response} UNION {nothing}"
    return f"SELECT epoch, merged_with, other, count(*) AS number FROM ({union}) GROUP BY ALL"


def _going_on() -> str:
    """Return the SQL for the groups that have a connection in common with others of their run."""
    both = f"SELECT connection, epoch, merged_with FROM {EXCHANGES} JOIN near USING (capture, epoch)"
    both += " UNION SELECT connection, epoch, merged_with FROM found"
    cut = f"SELECT connection, epoch FROM ({both}) GROUP BY ALL HAVING count(*) > 1"
    return f"SELECT epoch, merged_with, 0, count(*) FROM ({both}) WHERE (connection, epoch) IN ({cut}) GROUP BY ALL"


def _counts(engine: "Database", sql: str) -> dict[tuple[Group, int], int]:
    """Return counts by group and by another run, which are in the columns before them."""
    rows = (tuple(row.values()) for row in engine.rows(sql))
    return {(Group(epoch, merged_with), other): number for epoch, merged_with, other, number in rows}
