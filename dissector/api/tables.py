"""SQL for tables that `kdissect ingest` wrote."""

from dissector.core.extras import require
from dissector.tables.view_engine import ViewEngine


def table_views(tables: str, engine: str = "duckdb", *, by_log: bool = False) -> list[str]:
    """Return statements of SQL, for ``"duckdb"`` or ``"spark"``: each defines a view. There is one for each table of a
    folder, with its valid rows, and more for what people ask, such as `consumer_lag` and `rebalances`. They are of
    this moment: ask again after an ingest. Those `by_log` stay valid, as they read by Delta's log, for which DuckDB
    needs its extension `delta`, and Spark the package of Delta Lake. Needs the extra `tables`.

    Raises `CaptureError` if there are no tables, or such of another version.

    >>> import duckdb
    >>> database = duckdb.connect()
    >>> for statement in dissector.table_views("tables"):
    ...     _ = database.execute(statement)
    >>> database.sql("SELECT client_id, records FROM producers WHERE topic = 'java-orders' LIMIT 1").fetchall()
    [('producer-1', 20)]

    In Spark, ``spark.sql(statement)`` in place of ``database.execute(statement)``.
    """
    require("table_views()", "tables", "pyarrow", "deltalake")
    from dissector.tables.file_systems import normal_uri
    from dissector.tables.snapshot import seen_tables  # it needs the extra, which the name alone does not
    from dissector.tables.views import statements

    if engine not in [*ViewEngine]:
        raise ValueError(f"{engine!r} is not an engine: there are {', '.join(ViewEngine)}")
    place = normal_uri(tables) if by_log else None
    return list(statements(seen_tables(tables), ViewEngine(engine), by_log=place))
