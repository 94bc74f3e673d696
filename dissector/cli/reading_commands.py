"""`kdissect open`, `show` and `stats`: captures and tables, on the screen, as rows, counted."""

from typing import Annotated

import typer

from dissector.cli import completing
from dissector.cli.command import CaptureFiles, Fields, Files, Limit, RowFilter, command, examples
from dissector.cli.errors import UsageError
from dissector.cli.formats import Format, RecordsFormat, StatsFormat
from dissector.cli.options import CaptureOptions, CsvOptions
from dissector.cli.screen import takes_screen

reading_commands = typer.Typer()


@command(
    reading_commands,
    "open",
    epilog=examples(
        {
            "the same as without open": "kdissect open samples/orders.pcapng",
            "with a filter, which / changes": "kdissect open samples/orders.pcapng -Y 'latency > 10ms'",
            "in a browser": "kdissect open samples/orders.pcapng --web",
        }
    ),
)
def open_files(
    files: Files,
    *,
    filter: RowFilter = None,
    web: Annotated[
        int | None,
        typer.Option(
            "--web",
            metavar="[PORT]",
            min=0,
            max=65535,
            help="Show the terminal UI in a browser, on a port of this machine; by default any free one. The address "
            "has a token, without which nothing is shown.",
        ),
    ] = None,
    listen: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS", help="Where --web listens; by default 127.0.0.1, which other machines can't reach."
        ),
    ] = None,
    options: CaptureOptions,
) -> int:
    """Open captures or tables in the terminal UI. Without a terminal, print their rows."""
    if web is not None:
        from dissector.cli.web import show_in_browser

        return show_in_browser(files, web, listen, filter, options)
    if listen is not None:
        raise UsageError("--listen needs --web: it is the address of the page")
    if not takes_screen(files):
        return show(files, filter=filter, csv=CsvOptions(), options=options)
    from dissector.cli.options import parse_filter
    from dissector.cli.screen import run
    from dissector.cli.tables import are_tables

    if are_tables(files, options):
        from dissector.cli.table_captures import show_on_screen

        return show_on_screen(files[0], filter, lambda it: run([it.path], ports=it.ports, topics=it.topics))
    parse_filter(filter, options=options)  # an invalid one is an error before the screen opens
    return run(
        files, options.response_to, ports=options.ports, decode_as=options.choices, key_logs=options.key_logs,
        show_secrets=options.show_secrets, resolves=options.resolve, value_opener=options.chosen_opener,
        filter=filter,
    )  # fmt: skip


@command(reading_commands, "recent", hidden=True)
def recent() -> int:
    """Choose a recent capture."""
    from dissector.cli.screen import run

    return run([])


@command(
    reading_commands,
    "show",
    epilog=examples(
        {
            "one exchange per line": "kdissect show samples/orders.pcapng",
            "every field of the first three": "kdissect show samples/orders.pcapng --format tree --limit 3",
            "those of a group that failed, as JSON": "kdissect show samples/orders.pcapng -Y 'group && error' -f json",
            "chosen fields as columns": "kdissect show samples/orders.pcapng --fields conn,api,latency,request.acks",
        }
    ),
)
def show(
    files: Files,
    *,
    form: Annotated[
        Format,
        typer.Option(
            "--format",
            "-f",
            help="One line, one tree or one JSON object per exchange, or CSV. CSV has text as it was sent; for a "
            "spreadsheet, add --escape-formulas.",
        ),
    ] = Format.TEXT,
    fields: Fields = None,
    filter: RowFilter = None,
    limit: Limit = None,
    csv: CsvOptions,
    options: CaptureOptions,
) -> int:
    """Print the exchanges of captures or tables."""
    from dissector.cli.show import show as run

    return run(files, form, limit, fields, filter, csv=csv, options=options)


@command(
    reading_commands,
    "records",
    epilog=examples(
        {
            "records with a text": "kdissect records samples/orders.pcapng -Y 'record.value contains \"order 12:\"'",
            "Avro and Protobuf, by schemas": "kdissect records samples/records.pcapng --schemas samples/schemas",
        }
    ),
)
def records(
    files: CaptureFiles,
    *,
    form: Annotated[
        RecordsFormat | None,
        typer.Option(
            "--format",
            "-f",
            help="One line, one JSON object, or one row of CSV or Parquet per record; raw writes values only, one per "
            "line. By default text, or from the suffix of OUT.",
        ),
    ] = None,
    fields: Annotated[
        str | None,
        typer.Option(
            metavar="A,B,C", help="Print these columns: offset,key,value.order.id,headers.tenant,api,client_id."
        ),
    ] = None,
    filter: Annotated[
        str | None,
        typer.Option(
            "-Y",
            "--filter",
            metavar="FILTER",
            help='Only matching records: "topic == orders && record.value.id == 17".',
        ),
    ] = None,
    limit: Annotated[int | None, typer.Option(metavar="N", min=1, help="Stop after this many records.")] = None,
    out: Annotated[str | None, typer.Option("-w", metavar="OUT", help="Write a file.")] = None,
    csv: CsvOptions,
    options: CaptureOptions,
) -> int:
    """Print the records of exchanges and log segments. Their keys and values are decoded."""
    from dissector.cli.records import records as run

    return run(files, form and form.value, fields, filter, limit, out, csv=csv, options=options)


@command(
    reading_commands,
    "stats",
    epilog=examples(
        {
            "the capture at a glance": "kdissect stats samples/orders.pcapng",
            "which topics are slow": "kdissect stats samples/orders.pcapng -Y 'latency > 10ms' --by topic",
            "where the time goes: to send, to wait, to receive": "kdissect stats samples/orders.pcapng --by part",
        }
    ),
)
def stats(
    files: Files,
    *,
    by: Annotated[
        str | None,
        typer.Option(
            metavar="FIELD",
            autocompletion=completing.row_field,
            help="Print one table by this field, with all rows: api, client, connection, topic, partition, version, "
            "error, field (bytes of each field), or any other row field.",
        ),
    ] = None,
    form: Annotated[StatsFormat, typer.Option("--format", "-f", help="Text tables, or one JSON object per line.")] = (
        StatsFormat.TEXT
    ),
    filter: RowFilter = None,
    plot: Annotated[
        bool, typer.Option("--plot", help="Plot latency over time, a latency heat map, and bytes by topic.")
    ] = False,
    connections: Annotated[
        bool,
        typer.Option(
            "--connections",
            help="Print one line per connection: round-trip time, bytes, losses, zero windows, process.",
        ),
    ] = False,
    options: CaptureOptions,
) -> int:
    """Print counts, bytes, errors and latencies, by any row field.

    Latencies leave out long polls (Fetch, JoinGroup, …), unless a line has nothing else.
    """
    from dissector.cli.stats import stats as run

    return run(files, by, form, filter, plot=plot, connections=connections, options=options)


@command(
    reading_commands,
    "groups",
    epilog=examples(
        {
            "why groups rebalance, each generation": "kdissect groups samples/rebalance.pcapng",
            "one group": "kdissect groups samples/rebalance.pcapng -Y 'group == restless-readers'",
        }
    ),
)
def groups(
    files: CaptureFiles,
    *,
    form: Annotated[StatsFormat, typer.Option("--format", "-f", help="Text, or one JSON object per group.")] = (
        StatsFormat.TEXT
    ),
    filter: Annotated[
        str | None,
        typer.Option(
            "-Y",
            "--filter",
            metavar="FILTER",
            help='Only groups with a matching exchange, each in full: "group == billing".',
        ),
    ] = None,
    options: CaptureOptions,
) -> int:
    """Print why groups rebalance: the cause for each group, then its generations or epochs.

    Each shows who joined, left or was removed, the reason on the wire, what the others did, and how long no member
    consumed.
    """
    from dissector.cli.groups import groups as run

    return run(files, form, filter, options=options)
