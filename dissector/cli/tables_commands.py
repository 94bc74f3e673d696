"""`kdissect tables`: what the tables of a folder hold, and their upkeep."""

from datetime import datetime
from typing import Annotated

import typer

from dissector.cli.command import command, examples
from dissector.cli.formats import StatsFormat
from dissector.cli.options import CaptureOptions
from dissector.tables.view_engine import ViewEngine

tables = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Manage the captures in tables. Print SQL to query them.",
    epilog=examples({"which captures are in them": "kdissect tables list tables"}),
)
Folder = Annotated[str, typer.Argument(metavar="TABLES", help="The folder of the tables, or its URL.")]
IcebergCatalog = Annotated[
    str | None, typer.Option(metavar="NAME", help="Also register them in this catalog of pyiceberg's configuration.")
]
IcebergNamespace = Annotated[str, typer.Option(metavar="NAME", help="Namespace of the tables in the catalog.")]
CaptureNames = Annotated[
    list[str], typer.Argument(metavar="CAPTURE…", help="Paths, file names, or prefixes of digests.")
]


@command(tables, "list", epilog=examples({"which captures are in them": "kdissect tables list tables --format json"}))
def tables_list(
    folder: Folder,
    form: Annotated[StatsFormat, typer.Option("-f", "--format", help="Text, or JSON lines.")] = StatsFormat.TEXT,
) -> int:
    """List the captures in the tables."""
    from dissector.cli.table_upkeep import list_captures as run

    return run(folder, form)


@command(
    tables, "forget", epilog=examples({"a capture and all its rows": "kdissect tables forget tables orders.pcapng"})
)
def tables_forget(
    folder: Folder,
    captures: Annotated[
        list[str] | None, typer.Argument(metavar="CAPTURE…", help="Paths, file names, or prefixes of digests.")
    ] = None,
    before: Annotated[
        datetime | None,
        typer.Option(metavar="DAY", formats=["%Y-%m-%d"], help="Also all captures that end before this day (UTC)."),
    ] = None,
) -> int:
    """Remove captures, with all their rows."""
    from dissector.cli.table_upkeep import forget as run

    return run(folder, captures or (), before)


@command(
    tables,
    "replace",
    epilog=examples(
        {"rejoin connections that span two captures": "kdissect tables replace tables java.pcapng tls.pcapng"}
    ),
)
def tables_replace(folder: Folder, captures: CaptureNames, *, options: Annotated[CaptureOptions, "keylog"]) -> int:
    """Ingest captures again, together. They are read from the files that they came from: connections that span them
    become whole, and TLS whose secrets came later is decrypted."""
    from dissector.cli.table_upkeep import replace as run

    return run(folder, captures, options.key_logs)


@command(tables, "compact", epilog=examples({"merge small files": "kdissect tables compact tables"}))
def tables_compact(folder: Folder) -> int:
    """Rewrite many small files as few large ones."""
    from dissector.cli.table_upkeep import compact as run

    return run(folder)


@command(tables, "upgrade", epilog=examples({"columns that later versions added": "kdissect tables upgrade tables"}))
def tables_upgrade(folder: Folder) -> int:
    """Add the tables and columns that tables of an earlier version lack, as the next ingest would. Existing rows have
    nulls in them until their captures are replaced."""
    from dissector.cli.table_upkeep import upgrade as run

    return run(folder)


@command(
    tables,
    "vacuum",
    epilog=examples({"files that no table uses anymore": "kdissect tables vacuum tables --older-than 1"}),
)
def tables_vacuum(
    folder: Folder,
    hours: Annotated[
        int, typer.Option("--older-than", metavar="HOURS", min=0, help="Remove only files older than this.")
    ] = 24,
) -> int:
    """Remove files that no table uses anymore."""
    from dissector.cli.table_upkeep import vacuum as run

    return run(folder, hours)


@command(
    tables,
    "upkeep",
    epilog=examples(
        {
            "once a day, from a timer": "kdissect tables upkeep tables --keep 30d",
            "what that would do": "kdissect tables upkeep tables --keep 30d --dry-run",
            "a catalog of Iceberg, too": "kdissect tables upkeep tables --catalog lab",
        }
    ),
)
def tables_upkeep(
    folder: Folder,
    *,
    keep: Annotated[
        str | None,
        typer.Option(metavar="AGE", help="Forget captures that ended longer ago: days or hours, such as 30d or 12h."),
    ] = None,
    hours: Annotated[
        int, typer.Option("--older-than", metavar="HOURS", min=0, help="Remove only files older than this.")
    ] = 24,
    catalog: IcebergCatalog = None,
    namespace: IcebergNamespace = "kafka",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only print what would be done.")] = False,
) -> int:
    """Forget old captures, compact, write Iceberg's metadata again if it is there or a catalog is named, and vacuum,
    while others ingest and read. Print one line per step. Exit code 1 if an ingest is running: vacuum is then left to
    the next time."""
    from dissector.cli.table_upkeep import upkeep as run

    return run(folder, keep, hours, catalog, namespace, dry_run=dry_run)


@command(tables, "verify", epilog=examples({"whether files or rows are missing": "kdissect tables verify tables"}))
def tables_verify(folder: Folder) -> int:
    """Check that all files and rows are there; exit code 1 if not. Also say which captures have parts of the same
    connections, for `replace` to read them together."""
    from dissector.cli.table_upkeep import verify as run

    return run(folder)


@command(
    tables,
    "views",
    epilog=examples(
        {"query the tables with DuckDB": "kdissect tables views tables > views.sql && duckdb -init views.sql"}
    ),
)
def tables_views(
    folder: Folder,
    *,
    engine: Annotated[ViewEngine, typer.Option("--for", help="Engine that runs the SQL.")] = ViewEngine.DUCKDB,
    of_now: Annotated[
        bool, typer.Option("--snapshot", help="List the files that are there now, for engines without Delta Lake.")
    ] = False,
) -> int:
    """Print SQL that defines views of the tables. There is one for each table, with its valid rows, and others for
    common questions: lag, rebalances by cause, error budget. They read Delta's log, so they stay valid; they need
    DuckDB's extension delta or Spark's package of Delta Lake. With --snapshot, neither is needed: print the SQL again
    after an ingest."""
    from dissector.cli.table_upkeep import views as run

    return run(folder, engine, of_now=of_now)


@command(
    tables,
    "iceberg",
    epilog=examples({"read the tables as Iceberg's": "kdissect tables iceberg tables"}),
)
def tables_iceberg(
    folder: Folder,
    catalog: IcebergCatalog = None,
    namespace: IcebergNamespace = "kafka",
) -> int:
    """Write Apache Iceberg metadata for the files of the tables, and print where it is. No row is copied. Run it
    again after an ingest, and after compact before vacuum."""
    from dissector.cli.table_upkeep import iceberg as run

    return run(folder, catalog, namespace)
