"""The tables as views of SQL, for whoever asks them in DuckDB or Spark: valid rows, and answers to what people ask
most, one file a question in `questions/`.

They read by Delta's log, which needs Delta's extension of DuckDB or its package of Spark, or else a list of files.

Invariants:
  * views by Delta's log stay valid whatever is ingested, compacted and vacuumed afterwards;
  * those of a list of files are of one moment: what comes afterwards is not in them, and `vacuum` ends them. A pattern
    of names in place of the list would have what was compacted twice, and files that an ingest has not written yet;
  * the SQL of a question means the same in both engines (a test asks each in both).
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from dissector.exchange.silence_causes import SILENCE_CAUSES, UNANSWERED_CODE
from dissector.tables.arrow_types import SCALARS
from dissector.tables.delta_log import CAPTURES
from dissector.tables.file_systems import LOCAL
from dissector.tables.schemas import BY_NAME, KEYS, ROW_KEY, TableColumn, TableSchema
from dissector.tables.snapshot import Snapshot
from dissector.tables.sql import quoted, rows_of_files, text
from dissector.tables.view_engine import ViewEngine

FINDINGS: Final = "findings"
ALL_FINDINGS: Final = "all_findings"
"""Those of `findings` and those that they replace."""
IS_LIVE: Final = "(capture, epoch) IN (SELECT capture, epoch FROM {live})"
_FOLDER: Final = Path(__file__).parent / "questions"


class Question(NamedTuple):
    """A question that a view answers."""

    name: str
    """Of the view."""
    words: str
    sql: str


def questions() -> list[Question]:
    """Return all questions, by name."""
    found = []
    for file in sorted(_FOLDER.glob("*.sql")):
        first, _, sql = file.read_text(encoding="utf-8").partition("\n")
        found.append(Question(file.stem, first.removeprefix("-- "), sql.rstrip()))
    return found


def statements(seen: Snapshot, engine: ViewEngine, *, by_log: str | None = None) -> Iterator[str]:
    """Yield the statements that define a view for each table, and then one for each question. They read the tables of
    the storage `by_log`, a URI, by Delta's log; or else the files that are there now."""
    of_files = _of_duckdb if engine is ViewEngine.DUCKDB else _of_spark
    to_view = _TO_VIEW[engine]
    for name in BY_NAME:
        columns = _typed(seen.schemas[name])
        if by_log is None:
            yield of_files(f"{name}_files", columns, seen.files[name])
        else:
            yield f"{to_view} {name}_files AS {_scan(f'{by_log}/{name}', columns, engine)}"
        live = "" if name == CAPTURES else f" WHERE {IS_LIVE.format(live=CAPTURES)}"
        yield f"{to_view} {ALL_FINDINGS if name == FINDINGS else name} AS SELECT * FROM {name}_files{live}"
        if name == FINDINGS:
            yield f"{to_view} {FINDINGS} AS {current_findings()}"
    for question in questions():
        yield f"{to_view} {question.name} AS\n{question.sql}"


def current_findings() -> str:
    """Return a query of the findings that no later row replaces, and that no other of their row says better
    (`dissector.exchange.silence_causes`)."""
    same_row = [f"f.{name} = r.{name}" for name in ROW_KEY]
    same = " AND ".join([*same_row, "f.code = r.code", "f.path = r.path"])
    replaced = f"SELECT 1 FROM {ALL_FINDINGS} r WHERE {same} AND r.replaces = f.message"
    causes = ", ".join(f"'{code}'" for code in sorted(SILENCE_CAUSES))
    says_why = f"f.code = '{UNANSWERED_CODE}' AND {' AND '.join(same_row)} AND r.code IN ({causes})"
    said = f"SELECT 1 FROM {ALL_FINDINGS} r WHERE {says_why}"
    return f"SELECT * FROM {ALL_FINDINGS} f WHERE NOT EXISTS ({replaced}) AND NOT EXISTS ({said})"


def _typed(table: TableSchema) -> list[TableColumn]:
    """Return the columns of a table, of those of users the ones with a plain type."""
    ours = BY_NAME[table.name].columns
    return [column for column in (*KEYS, *table.columns) if column.type in SCALARS or column in ours]


def _scan(uri: str, columns: Sequence[TableColumn], engine: ViewEngine) -> str:
    """Return a query of the rows that Delta's log of a table has."""
    place = uri.removeprefix(LOCAL)
    if engine is ViewEngine.SPARK:
        names = ", ".join(quoted(each.name, "`") for each in columns)
        return f"SELECT {names} FROM delta.{quoted(place, '`')}"
    return f"{rows_of_files(columns, ())} UNION ALL BY NAME SELECT * FROM delta_scan({text(place)})"


def _of_duckdb(name: str, columns: Sequence[TableColumn], files: Sequence[str]) -> str:
    return f"{_TO_VIEW[ViewEngine.DUCKDB]} {name} AS {rows_of_files(columns, files)}"


def _of_spark(name: str, columns: Sequence[TableColumn], files: Sequence[str]) -> str:
    """All files by one pattern: they are in one folder."""
    to_view = _TO_VIEW[ViewEngine.SPARK]
    if not files:
        nulls = ", ".join(f"CAST(NULL AS {each.type}) AS {quoted(each.name, '`')}" for each in columns)
        return f"{to_view} {name} AS SELECT * FROM (SELECT {nulls}) AS nothing WHERE FALSE"
    folder, _, _ = files[0].rpartition("/")
    names = ",".join(_literal(file.removeprefix(f"{folder}/")) for file in files)
    pattern = _spark_text(f"{_literal(folder)}/{{{names}}}")
    typed = ", ".join(f"{quoted(each.name, '`')} {each.type}" for each in columns)
    return f"{to_view} {name} ({typed}) USING parquet OPTIONS (path {pattern})"


def _spark_text(value: str) -> str:
    """A text as a literal of Spark's."""
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _literal(path: str) -> str:
    """A path in a pattern of Hadoop's."""
    return "".join(f"\\{each}" if each in "{}[]*?\\^," else each for each in path)


_TO_VIEW: Final = {
    ViewEngine.DUCKDB: "CREATE OR REPLACE VIEW", ViewEngine.SPARK: "CREATE OR REPLACE TEMPORARY VIEW"
}  # fmt: skip
