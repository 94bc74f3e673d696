"""Reads tables as rows of SQL and as exchanges.

Invariants:
  * all that is read is of one moment (`snapshot`), and of captures that are in `captures`;
  * rows and connections are numbered as in one capture of all captures, in the order of time: connections among all TCP
    connections, unless the capture was followed;
  * bodies are read of the rows that are asked for, `MOST_FRAME_BYTES` of frames at a time.
"""

from collections.abc import Iterator
from functools import cached_property
from itertools import accumulate, islice, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import pyarrow as pa

from dissector.capture.errors import CaptureError
from dissector.core.grouping import cuts
from dissector.core.text import clean
from dissector.exchange.model import Exchange
from dissector.tables.database import Database, booleans, numbers
from dissector.tables.file_systems import normal_uri
from dissector.tables.row_to_exchange import TLS_COLUMNS, exchange_of_row
from dissector.tables.schemas import BY_NAME, NO_BODIES, OF_MESSAGES, ROW_KEY
from dissector.tables.snapshot import Snapshot, has_bodies
from dissector.tables.sql import EVERY_ROW, PushedFilter, same, text, where
from dissector.tables.views import ALL_FINDINGS, FINDINGS, IS_LIVE, current_findings

if TYPE_CHECKING:  # imported on use: without a filter its parser is not needed
    from dissector.filter import Filter

READ: Final = ("exchanges", "bodies", "connections", "partitions", "findings")
"""Tables that are read here: of the others, not even the log is opened, which takes as long as a small question."""
MIN_DIGITS: Final = 8
"""Minimum digits of a digest that select a capture."""
MOST_FRAME_BYTES: Final = 8 << 20
"""Bytes of the frames of rows whose bodies are read together, unless one row has more."""
MOST_UNDECIDED: Final = 1 << 10
"""Rows that are decoded for a filter before others that columns decide."""
_ROWS_TOGETHER: Final = 1 << 10
"""Rows that become Python objects together."""
_ORDER: Final = ("log", "capture", "hex", "unread")
_KEY: Final = ", ".join(ROW_KEY)
_EXCHANGES: Final = "SELECT * EXCLUDE (day, time) FROM exchanges"
ROWS: Final = "{}"
"""In what a query makes of rows: the query of these."""
BODIES: Final = ("request", "response", "rest", "request_bytes", "response_bytes")


class _CaptureRow(NamedTuple):
    """A row of `captures`. Rows compare in the order in which captures are read."""

    order: int
    """Position of its form in `_ORDER`."""
    first_ns: int
    end_ns: int
    digest: str
    path: str
    capture: str
    epoch: int
    merged_with: str

    @property
    def merged(self) -> str:
        """The captures that were merged: their packets are numbered together."""
        return f"{self.merged_with} {self.epoch}"


class TableConnection(NamedTuple):
    """A connection between two addresses, ``host:port``."""

    number: int
    client: str
    server: str
    opened_ns: int | None
    """Time of its SYN; None if that was not captured."""
    closed_ns: int | None
    """Time of its first FIN or RST."""
    closed_by: str | None
    """``client`` or ``server``."""


class Tables:
    """The tables of one folder as a snapshot has them. With `capture`, only exchanges of that one, numbered as among
    all: a connection may have begun in another capture. With a `condition` in SQL, only those for which it is true."""

    def __init__(
        self, database: Database, seen: Snapshot, capture: str | None = None, condition: str | None = None
    ) -> None:
        self.database = database
        self._only = capture
        self._conditions = [*([f"capture = {text(capture)}"] if capture else []), *([condition] if condition else [])]
        self._seen = seen
        self._define_live()
        for name in READ:
            database.define_files(f"{name}_files", BY_NAME[name], seen.files[name])
            view = ALL_FINDINGS if name == FINDINGS else name
            database.define(view, f"SELECT * FROM {name}_files WHERE {IS_LIVE.format(live='live')}")
        database.define(FINDINGS, current_findings())
        self._define_numbered_connections()

    def _define_numbered_connections(self) -> None:
        """Define the view of connections with their numbers: those without a row count, too."""
        others = [(row["capture"], packet) for row in self._seen.captures for packet in row["other_connections"] or ()]
        self.database.define_rows("other_connections", _OTHERS, others)
        self.database.define("all_connections", (
            "SELECT * FROM connections UNION ALL BY NAME SELECT * FROM other_connections" if others
            else "SELECT * FROM connections"
        ))  # fmt: skip
        numbered = self._numbered("all_connections", "coalesce(merged_packet, packet)", "conn")
        self.database.define("numbered_connections", f"SELECT * FROM ({numbered}) WHERE connection IS NOT NULL")

    def _define_live(self) -> None:
        """Define the view of captures that count: `file` is the number of one of Kafka's own files, which counts as a
        connection, before all others."""
        logs = [each.capture for each in self._files if _ORDER[each.order] == "log"]
        files = {capture: number for number, capture in enumerate(logs, 1)}
        cells = [(each.capture, each.epoch, each.path, files.get(each.capture), len(logs)) for each in self._files]
        self.database.define_rows("live", _LIVE, cells)

    def count(self) -> tuple[int, int]:
        """Return the number of captures, and of their problems: each capture of a run has those of the run."""
        captures = self._seen.captures
        problems = {(row["epoch"], *each.values()) for row in captures for each in row["problems"] or ()}
        return len(captures), len(problems)

    @cached_property
    def _files(self) -> list[_CaptureRow]:
        """All captures in the order in which they are read as one: Kafka's own files, then captures by time, then those
        without times."""
        names = _CaptureRow._fields[1:]
        found = ((_ORDER.index(row["form"]), *(row[name] for name in names)) for row in self._seen.captures)
        return sorted(_CaptureRow(*row) for row in found)

    def captures_named(self, name: str) -> "list[Tables]":
        """Return the tables of each capture with a name: its path, its file name with or without the extension, or the
        first digits of its digest."""
        named = [each.capture for each in self._files if has_name(each.path, each.digest, name)]
        return [Tables(self.database, self._seen, capture) for capture in named]

    def require_bodies(self) -> None:
        """Raise `CaptureError` if a capture has no rows in `bodies`."""
        wanted = (row for row in self._seen.captures if self._only in (None, row["capture"]))
        without = sorted(clean(row["path"]) for row in wanted if not has_bodies(row))
        if without:
            more = f" and {len(without) - 1:,} more" if without[1:] else ""
            raise CaptureError(
                f"{without[0]}{more}: ingested with --{NO_BODIES}, but this needs bodies: ingest again without it"
            )

    @property
    def start_ns(self) -> int:
        """Time of the first packet, nanoseconds since 1970: relative times count from it."""
        return next((each.first_ns for each in self._files if each.first_ns), 0)

    def _numbered(self, table: str, by: str, name: str) -> str:
        """Number rows of a table from 1, capture by capture; those of merged captures together."""
        counts = {row["capture"]: row["n"] for row in self.database.rows(
            f"SELECT capture, count(*) AS n FROM {table} GROUP BY capture"
        )}  # fmt: skip
        of_merged: dict[str, int] = {}
        for each in self._files:
            of_merged[each.merged] = of_merged.get(each.merged, 0) + counts.get(each.capture, 0)
        before = dict(zip(of_merged, accumulate(of_merged.values(), initial=0), strict=False))
        order = [(each.capture, each.merged, before[each.merged]) for each in self._files]
        self.database.define_rows(f"order_of_{table}", _BEFORE, order)
        place = f"row_number() OVER (PARTITION BY o.merged ORDER BY {by})"
        return (
            f"SELECT t.*, o.before + {place} AS {name} FROM {table} t JOIN order_of_{table} o ON t.capture = o.capture"
        )

    @cached_property
    def _numbers(self) -> str:
        """The view of the numbers of all exchanges."""
        rows = self._numbered("exchanges", "coalesce(merged_packet, packet), start", "number")
        self.database.define("numbers", f"SELECT {_KEY}, number FROM ({rows}) AS numbered")
        return "numbers"

    def select(self, row_filter: "Filter | None" = None) -> tuple[str, PushedFilter]:
        """Return a query of rows of `exchanges` that may match, with `number`, `conn`, `path` and `findings`, and the
        pushed filter."""
        pushed = EVERY_ROW
        if row_filter is not None:
            from dissector.tables.filter_sql import push_down

            pushed = push_down(row_filter, self.start_ns)
            if pushed.undecided:
                pushed = self._decided(row_filter, pushed) or push_down(row_filter, self.start_ns, in_columns=False)
        sql = _EXCHANGES
        if self._conditions:
            sql = where(sql, " AND ".join(self._conditions))
        if pushed.uses_bodies:
            self.require_bodies()
        is_early = not (pushed.uses_numbers or pushed.uses_findings)
        if is_early:
            sql = _let_through(sql, pushed)
        sql = self._with_findings(self._with_numbers(sql))
        return (sql if is_early else _let_through(sql, pushed)), pushed

    def _decided(self, row_filter: "Filter", pushed: PushedFilter) -> PushedFilter | None:
        """Decode the rows that columns do not decide, and return the filter with what is found; None if these are more
        than `MOST_UNDECIDED`."""
        condition = " AND ".join([f"({pushed.undecided})", *self._conditions])
        [count] = self.database.rows(f"SELECT count(*) AS n FROM exchanges WHERE {condition}")
        if not count["n"] or count["n"] > MOST_UNDECIDED:
            return None if count["n"] else pushed
        sql = self._with_findings(self._with_numbers(where(_EXCHANGES, condition)))
        found = [
            f"row({text(row['capture'])}, {row['packet']}, {row['start']})"
            for part in self._in_order(sql)
            for row in part.filter(booleans(self._fitting(part, row_filter))).select(ROW_KEY).to_pylist()
        ]
        matches = f"row({_KEY}) IN ({', '.join(found)})" if found else "FALSE"
        return pushed._replace(sql=f"CASE WHEN {pushed.undecided} THEN {matches} ELSE {pushed.sql} END")

    def _fitting(self, part: pa.Table, row_filter: "Filter") -> list[bool]:
        """Which rows of a part match."""
        return [row_filter.matches(each, self.start_ns) for each in self.decoded(part)]

    def _with_numbers(self, sql: str) -> str:
        """Add the numbers of rows and of their connections."""
        return (
            f"SELECT e.*, n.number, coalesce(l.files + c.conn, l.file) AS conn, l.path, {_TLS} FROM ({sql}) e"
            f" JOIN {self._numbers} n ON {same('e', 'n')} JOIN live l ON e.capture = l.capture"
            " LEFT JOIN numbered_connections c ON e.connection = c.connection"
        )

    @staticmethod
    def _with_findings(sql: str) -> str:
        """Add the findings about rows, in order."""
        found = "struct_pack(code := code, severity := severity, path := path, message := message)"
        order = f"coalesce(nth, {OF_MESSAGES - 1}), code, severity, path, message"
        findings = f"SELECT {_KEY}, list({found} ORDER BY {order}) AS findings FROM findings GROUP BY {_KEY}"
        return f"SELECT e.*, f.findings FROM ({sql}) e LEFT JOIN ({findings}) f ON {same('e', 'f')}"

    @property
    def has_frames(self) -> bool:
        """Whether the bytes of any frame were kept."""
        kept = "SELECT 1 AS n FROM bodies WHERE request_bytes IS NOT NULL OR response_bytes IS NOT NULL LIMIT 1"
        return any(True for _ in self.database.rows(kept))

    def matching(self, row_filter: "Filter | None") -> str:
        """Return a query of the rows of `exchanges` that match, with `number`, `conn`, `path` and `findings`."""
        sql, pushed = self.select(row_filter)
        if pushed.is_exact:
            return sql
        found = [(number,) for part in self.parts(row_filter) for number in part["number"].to_pylist()]
        self.database.define_rows("matching_numbers", {"number": "BIGINT"}, found)
        return where(sql, "number IN (SELECT number FROM matching_numbers)")

    def counted(self, row_filter: "Filter | None" = None) -> int:
        """Return how many rows match."""
        [row] = self.database.rows(f"SELECT count(*) AS n FROM ({self.matching(row_filter)}) AS matching")
        return int(row["n"])

    def connections(self, row_filter: "Filter | None" = None) -> Iterator[TableConnection]:
        """Yield the connections of the rows that match; if they are those of one capture, with what it has of their
        beginnings and ends: a connection may go on in another capture."""
        opened, closed = "c.opened", "TRUE"
        for each in self._files:
            if each.capture == self._only:
                opened += f" AND c.begin_ns >= {each.first_ns}"
                closed = f"c.closed_ns <= {each.end_ns}"
        columns = (
            f"e.conn AS number, e.client, e.server, CASE WHEN {opened} THEN c.begin_ns END AS opened_ns,"
            f" CASE WHEN {closed} THEN c.closed_ns END AS closed_ns, c.closed_by"
        )
        rows = self.database.rows(
            f"SELECT DISTINCT {columns} FROM ({self.matching(row_filter)}) e JOIN connections c USING (connection)"
        )
        return (TableConnection(**row) for row in rows)

    def exchanges(
        self, row_filter: "Filter | None" = None, most: int | None = None, *, bodies: bool = True
    ) -> Iterator[Exchange]:
        """Yield the exchanges that match, in order: all, or the first `most`. Without `bodies` they may have no
        messages."""
        sql, pushed = self.select(row_filter)
        if pushed.is_exact:
            parts = self._in_order(sql, most)
            yield from (each for part in parts for each in (self.decoded(part) if bodies else _exchanges(part)))
            return
        found = (each for part in self._in_order(sql) for each in self.decoded(part))
        assert row_filter is not None, "without a filter nothing is left to test"
        yield from islice((each for each in found if row_filter.matches(each, self.start_ns)), most)

    def parts(self, row_filter: "Filter | None" = None, most: int | None = None) -> Iterator[pa.Table]:
        """Yield the rows that match, in order, with `number`, `conn`, `path` and `findings`: all, or the first `most`.
        The frames of a part have `MOST_FRAME_BYTES`, unless it is one row."""
        sql, pushed = self.select(row_filter)
        if pushed.is_exact:
            yield from self._in_order(sql, most)
            return
        assert row_filter is not None, "without a filter nothing is left to test"
        left = most
        for part in self._in_order(sql):
            found = part.filter(booleans(self._fitting(part, row_filter)))[:left]
            left = None if left is None else left - len(found)
            if len(found):
                yield found
            if left == 0:
                return

    def decoded(self, part: pa.Table) -> Iterator[Exchange]:
        """Yield the exchanges of a part, with their messages."""
        columns = ", ".join(f"b.{name}" for name in BODIES)
        return (each for batch in self.with_bodies(part, f"e.*, {columns}") for each in _exchanges(batch))

    def with_bodies(
        self, part: pa.Table, columns: str, made: str = f"SELECT * FROM ({ROWS})"
    ) -> Iterator[pa.RecordBatch]:
        """Return columns of the rows `e` of a part and of their bodies `b`, in order; or what a query makes of them."""
        self.require_bodies()
        if not len(part):
            return iter(())
        packets = part["packet"].to_pylist()
        captures = ", ".join(map(text, sorted(set(part["capture"].to_pylist()))))
        sql = (
            f"SELECT {columns} FROM given e LEFT JOIN (SELECT * FROM bodies WHERE packet BETWEEN {min(packets)} AND"
            f" {max(packets)} AND capture IN ({captures})) b ON {same('e', 'b')}"
        )
        return self.database.batches(f"{made.replace(ROWS, sql)} ORDER BY number", part)

    def _in_order(self, sql: str, most: int | None = None) -> Iterator[pa.Table]:
        """Yield the rows of a query, in order, in parts."""
        limit = "" if most is None else f" LIMIT {most}"
        size = "coalesce(request_size, 0) + coalesce(response_size, 0) AS frame_bytes"
        for batch in self.database.batches(f"SELECT *, {size} FROM ({sql}) AS found ORDER BY number{limit}"):
            edges = cuts(numbers(batch.column("frame_bytes")), MOST_FRAME_BYTES).tolist()
            for start, end in pairwise([0, *edges, len(batch)]):
                yield pa.Table.from_batches([batch.slice(start, end - start)])


def _exchanges(rows: pa.Table | pa.RecordBatch) -> Iterator[Exchange]:
    for start in range(0, len(rows), _ROWS_TOGETHER):
        yield from map(exchange_of_row, rows.slice(start, _ROWS_TOGETHER).to_pylist())


def _let_through(sql: str, pushed: PushedFilter) -> str:
    """Return the rows of a query that a filter lets through. Their bodies are not among the columns."""
    if pushed.uses_bodies:
        columns = ", ".join(f"b.{name}" for name in BODIES)
        with_bodies = f"SELECT e.*, {columns} FROM ({sql}) e LEFT JOIN bodies b ON {same('e', 'b')}"
        return f"SELECT * EXCLUDE ({', '.join(BODIES)}) FROM ({with_bodies}) AS found WHERE {pushed.sql}"
    return sql if pushed.sql == "TRUE" else where(sql, pushed.sql)


_TLS: Final = ", ".join(f"c.{name}" for name in TLS_COLUMNS)
_BEFORE: Final = {"capture": "VARCHAR", "merged": "VARCHAR", "before": "BIGINT"}
_OTHERS: Final = {"capture": "VARCHAR", "merged_packet": "BIGINT"}
_LIVE: Final = {"capture": "VARCHAR", "epoch": "BIGINT", "path": "VARCHAR", "file": "BIGINT", "files": "BIGINT"}


def has_name(path: str, digest: str, name: str) -> bool:
    """Whether a capture has a name: its path, absolute or not, its file name with or without the extension, or the
    first digits of its digest."""
    file = Path(path)
    if name in (path, file.name, file.stem) or (len(name) >= MIN_DIGITS and digest.startswith(name)):
        return True
    return "/" in name and normal_uri(name) == normal_uri(path)
