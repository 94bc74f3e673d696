"""SQL for tables that `kdissect ingest` wrote."""

from dissector.core.extras import require
from dissector.tables.view_engine import ViewEngine


def table_views(tables: str, engine: str = "duckdb", *, by_log: bool = False) -> list[str]:
    """Return SQL statements, for ``"duckdb"`` or ``"spark"``, each of which defines a view. There is one view for each
    table of a folder, with its valid rows, and there are views for common questions, such as `consumer_lag` and
    `rebalances`. The views show the current files: call this again after an ingest. With `by_log`, they stay valid,
    because they read Delta's log; for that, DuckDB needs its extension `delta`, and Spark needs the Delta Lake package.
    Needs the extra `tables`. Raises `CaptureError` if there are no tables, or tables of another version.

    >>> import duckdb
    >>> database = duckdb.connect()
    >>> for statement in dissector.table_views("tables"):
    ...     _ = database.execute(statement)
    >>> database.sql("SELECT client_id, records FROM producers WHERE topic = 'java-orders' LIMIT 1").fetchall()
    [('producer-1', 20)]

    In Spark, use ``spark.sql(statement)`` instead of ``database.execute(statement)``.
    """
    require("table_views()", "tables", "pyarrow", "deltalake")
    from dissector.tables.file_systems import normal_uri
    from dissector.tables.snapshot import seen_tables  # it needs the extra, which the name alone does not
    from dissector.tables.views import statements

    if engine not in [*ViewEngine]:
        raise ValueError(f"{engine!r} is not an engine: there are {', '.join(ViewEngine)}")
    place = normal_uri(tables) if by_log else None
    return list(statements(seen_tables(tables), ViewEngine(engine), by_log=place))
