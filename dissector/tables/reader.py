"""Reads tables as rows of SQL and as exchanges.

Invariants:
  * all that is read is of one moment (`snapshot`), and of captures that are in `captures`;
  * rows are numbered as in one capture of all captures, in the order of time; connections are those of Kafka only.
"""

from collections.abc import Callable, Iterator
from functools import cached_property, lru_cache
from itertools import accumulate, count
from pathlib import Path
from typing import Any, Final, NamedTuple

import pyarrow as pa

from dissector.exchange.model import Exchange
from dissector.filter import Filter, parse
from dissector.tables.engine import Convert, Engine, Row
from dissector.tables.file_systems import normal_uri
from dissector.tables.filter_sql import PushedFilter, push_down
from dissector.tables.row_to_exchange import TLS_COLUMNS, exchange_of_row
from dissector.tables.schemas import BY_NAME, FACT_TABLES, ROW_KEY
from dissector.tables.snapshot import Snapshot
from dissector.tables.views import ALL_FINDINGS, FINDINGS, IS_LIVE, current_findings

MIN_DIGITS: Final = 8
"""Minimum digits of a digest that select a capture."""
LATER: Final = 1 << 30
"""The place of a finding without one: behind the others of its row."""
_ORDER: Final = ("log", "capture", "hex", "unread")
_KEY: Final = ", ".join(ROW_KEY)
_NUMBERS: Final = pa.schema([("number", pa.int64())])
_BODIES: Final = ("request", "response", "rest", "request_bytes", "response_bytes")
Tuples = Callable[[Iterator[Exchange]], Iterator[tuple[Any, ...]]]
"""Makes tuples of exchanges."""


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


class Tables:
    """The tables of one folder as a snapshot has them. With `capture`, only exchanges of that one, numbered as among
    all: a connection may have begun in another capture."""

    def __init__(self, engine: Engine, folder: str, seen: Snapshot, capture: str | None = None) -> None:
        self.engine = engine
        self._only = capture
        self._folder = folder
        self._seen = seen
        self._names = count()
        for name in FACT_TABLES:
            engine.define_files(f"{name}_files", BY_NAME[name], seen.files[name])
        self._define_live()
        for name in FACT_TABLES:
            view = ALL_FINDINGS if name == FINDINGS else name
            engine.define(view, f"SELECT * FROM {name}_files WHERE {IS_LIVE.format(live='live')}")
        engine.define(FINDINGS, current_findings())
        engine.define("numbered_connections", self._numbered("connections", "coalesce(merged_packet, packet)", "conn"))

    def _define_live(self) -> None:
        """Define the view of captures that count: `file` is the number of one of Kafka's own files, which counts as a
        connection, before all others."""
        logs = [each.capture for each in self._files if _ORDER[each.order] == "log"]
        files = {capture: number for number, capture in enumerate(logs, 1)}
        cells = [(each.capture, each.epoch, each.path, files.get(each.capture), len(logs)) for each in self._files]
        names = (("capture", pa.string()), ("epoch", pa.int64()), ("path", pa.string()), ("file", pa.int64()),
                 ("files", pa.int64()))  # fmt: skip
        columns = [pa.array([row[at] for row in cells], kind) for at, (_, kind) in enumerate(names)]
        self.engine.define_rows("live", pa.Table.from_arrays(columns, names=[name for name, _ in names]))

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
        return [Tables(self.engine, self._folder, self._seen, capture) for capture in named]

    @property
    def start_ns(self) -> int:
        """Time of the first packet, nanoseconds since 1970: relative times count from it."""
        return next((each.first_ns for each in self._files if each.first_ns), 0)

    def _numbered(self, table: str, by: str, name: str) -> str:
        """Number rows of a table from 1, capture by capture; those of merged captures together."""
        counts = {row["capture"]: row["n"] for row in self.engine.rows(
            f"SELECT capture, count(*) AS n FROM {table} GROUP BY capture"
        )}  # fmt: skip
        of_merged: dict[str, int] = {}
        for each in self._files:
            of_merged[each.merged] = of_merged.get(each.merged, 0) + counts.get(each.capture, 0)
        before = dict(zip(of_merged, accumulate(of_merged.values(), initial=0), strict=False))
        order = [(each.capture, each.merged, before[each.merged]) for each in self._files]
        columns = [pa.array([row[at] for row in order], field.type) for at, field in enumerate(_BEFORE)]
        self.engine.define_rows(f"order_of_{table}", pa.Table.from_arrays(columns, schema=_BEFORE))
        place = f"row_number() OVER (PARTITION BY o.merged ORDER BY {by})"
        return (
            f"SELECT t.*, o.before + {place} AS {name} FROM {table} t JOIN order_of_{table} o ON t.capture = o.capture"
        )

    @cached_property
    def _numbers(self) -> str:
        """The view of the numbers of all exchanges."""
        rows = self._numbered("exchanges", "coalesce(merged_packet, packet), start", "number")
        self.engine.define("numbers", f"SELECT {_KEY}, number FROM ({rows}) AS numbered")
        return "numbers"

    def select(self, row_filter: Filter | None = None, *, bodies: bool = False) -> tuple[str, PushedFilter]:
        """Return a query of rows of `exchanges` that may match, with `number`, `conn`, `path` and `findings`, and the
        pushed filter. With `bodies`, or if the filter needs them, it has the columns of `bodies`."""
        pushed = push_down(row_filter, self.start_ns, self.engine.dialect)
        sql = "SELECT * FROM exchanges"
        if self._only is not None:
            sql += f" WHERE capture = '{self._only}'"
        is_early = not (pushed.uses_numbers or pushed.uses_findings)
        if pushed.uses_bodies:
            sql = _with_bodies(sql)
        if is_early and pushed.sql != "TRUE":
            sql = _where(sql, pushed.sql)
        sql = self._with_findings(self._with_numbers(sql))
        if not is_early:
            sql = _where(sql, pushed.sql)
        return (_with_bodies(sql) if bodies and not pushed.uses_bodies else sql), pushed

    def _with_numbers(self, sql: str) -> str:
        """Add the numbers of rows and of their connections."""
        return (
            f"SELECT e.*, n.number, coalesce(l.files + c.conn, l.file) AS conn, l.path, {_TLS} FROM ({sql}) e"
            f" JOIN {self._numbers} n ON {_same('e', 'n')} JOIN live l ON e.capture = l.capture"
            " LEFT JOIN numbered_connections c ON e.connection = c.connection"
        )

    def _with_findings(self, sql: str) -> str:
        """Add the findings about rows, in order."""
        fields = {"place": f"coalesce(nth, {LATER})", "code": "code", "severity": "severity", "path": "path",
                  "message": "message"}  # fmt: skip
        findings = f"SELECT {_KEY}, {self.engine.dialect.structs(fields)} AS findings FROM findings GROUP BY {_KEY}"
        return f"SELECT e.*, f.findings FROM ({sql}) e LEFT JOIN ({findings}) f ON {_same('e', 'f')}"

    @property
    def has_frames(self) -> bool:
        """Whether the bytes of any frame were kept."""
        kept = "SELECT 1 AS n FROM bodies WHERE request_bytes IS NOT NULL OR response_bytes IS NOT NULL LIMIT 1"
        return any(True for _ in self.engine.rows(kept))

    def matching(self, row_filter: Filter | None) -> str:
        """Return a query of the rows of `exchanges` that match, with `number`, `conn`, `path` and `findings`."""
        sql, pushed = self.select(row_filter)
        if pushed.is_exact:
            return sql
        numbers = self.converted_view(row_filter, lambda found: ((each.fields.number,) for each in found), _NUMBERS)
        return _where(sql, f"number IN (SELECT number FROM {numbers})")

    def counted(self, row_filter: Filter | None = None) -> int:
        """Return how many rows match."""
        [row] = self.engine.rows(f"SELECT count(*) AS n FROM ({self.matching(row_filter)}) AS matching")
        return int(row["n"])

    def converted(
        self, row_filter: Filter | None, convert: Tuples, schema: pa.Schema, most: int | None = None, *,
        bodies: bool = True,
    ) -> Iterator[tuple[Any, ...]]:  # fmt: skip
        """Yield the tuples that `convert` makes of the exchanges that match, in the order of their column `number`:
        all, or the first `most`. Without `bodies` exchanges may have no messages."""
        sql, converter, is_exact = self._conversion(row_filter, convert, bodies=bodies)
        if most is not None and is_exact:
            sql = f"SELECT * FROM ({sql}) AS matching ORDER BY number LIMIT {most}"
        return self.engine.converted(f"SELECT * FROM ({sql}) AS matching", converter, schema, most)

    def converted_view(
        self, row_filter: Filter | None, convert: Tuples, schema: pa.Schema, *, of: str | None = None
    ) -> str:  # fmt: skip
        """Return the name of a view of the tuples that `convert` makes of the exchanges that match; with `of`, of those
        whose numbers this query has."""
        sql, converter, _ = self._conversion(row_filter, convert, bodies=True)
        if of is not None:
            sql = _where(sql, f"number IN ({of})")
        name = f"converted_{next(self._names)}"
        self.engine.define_converted(name, sql, converter, schema)
        return name

    def _conversion(self, row_filter: Filter | None, convert: Tuples, *, bodies: bool) -> tuple[str, Convert, bool]:
        sql, pushed = self.select(row_filter, bodies=bodies)
        if not (bodies or pushed.is_exact):
            sql, pushed = self.select(row_filter, bodies=True)
        text = None if row_filter is None or pushed.is_exact else row_filter.text
        return sql, _conversion_of(convert, text, self.start_ns), pushed.is_exact


def _conversion_of(convert: Tuples, text: str | None, start_ns: int) -> Convert:
    """Return what makes tuples of rows; `text` is a filter of which SQL has tested a part."""

    def tuples(rows: Iterator[Row]) -> Iterator[tuple[Any, ...]]:
        exchanges: Iterator[Exchange] = map(exchange_of_row, rows)
        if text is not None:
            row_filter = _parsed(text)
            exchanges = (each for each in exchanges if row_filter.matches(each, start_ns))
        return convert(exchanges)

    return tuples


@lru_cache(maxsize=4)
def _parsed(text: str) -> Filter:
    return parse(text)


_TLS: Final = ", ".join(f"c.{name}" for name in TLS_COLUMNS)
_BEFORE: Final = pa.schema([("capture", pa.string()), ("merged", pa.string()), ("before", pa.int64())])


def has_name(path: str, digest: str, name: str) -> bool:
    """Whether a capture has a name: its path, absolute or not, its file name with or without the extension, or the
    first digits of its digest."""
    file = Path(path)
    if name in (path, file.name, file.stem) or (len(name) >= MIN_DIGITS and digest.startswith(name)):
        return True
    return "/" in name and normal_uri(name) == normal_uri(path)


def _same(one: str, other: str, names: tuple[str, ...] = ROW_KEY) -> str:
    return " AND ".join(f"{one}.{name} = {other}.{name}" for name in names)


def _where(sql: str, condition: str) -> str:
    return f"SELECT * FROM ({sql}) AS found WHERE {condition}"


def _with_bodies(sql: str) -> str:
    columns = ", ".join(f"b.{name}" for name in _BODIES)
    return f"SELECT e.*, {columns} FROM ({sql}) e LEFT JOIN bodies b ON {_same('e', 'b')}"
