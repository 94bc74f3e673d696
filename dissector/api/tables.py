"""SQL for tables that `kdissect ingest` wrote."""

from dissector.capture.errors import CaptureError
from dissector.tables.view_engine import ViewEngine


def table_views(tables: str, engine: str = "duckdb") -> list[str]:
    """Return statements of SQL, for ``"duckdb"`` or ``"spark"``: each defines a view. There is one for each table of a
    folder, with its valid rows, and more for what people ask, such as `consumer_lag` and `rebalances`. They are of
    this moment: ask again after an ingest. Needs the extra `tables`.

    Raises `CaptureError` if there are no tables, or such of another version.

    >>> import duckdb
    >>> database = duckdb.connect()
    >>> for statement in dissector.table_views("tables"):
    ...     _ = database.execute(statement)
    >>> database.sql("SELECT client_id, records FROM producers WHERE topic = 'java-orders' LIMIT 1").fetchall()
    [('producer-1', 20)]

    In Spark, ``spark.sql(statement)`` in place of ``database.execute(statement)``.
    """
    from dissector.tables.file_systems import normal_uri  # they need the extra, which the name alone does not
    from dissector.tables.snapshot import OtherVersionError, snapshot
    from dissector.tables.storage import StorageError
    from dissector.tables.views import statements

    if engine not in [*ViewEngine]:
        raise ValueError(f"{engine!r} is no engine: there are {', '.join(ViewEngine)}")
    try:
        seen = snapshot(normal_uri(tables))
    except OtherVersionError:
        raise CaptureError(f"{tables}: tables of another version: ingest the captures again") from None
    except StorageError as error:
        raise CaptureError(str(error)) from None
    if seen is None:
        raise CaptureError(f"{tables}: no tables found")
    return list(statements(seen, ViewEngine(engine)))
