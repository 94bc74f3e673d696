"""`kdissect`: the commands and their options.

Each command imports what it needs when it runs, so that `--help` is quick.
"""

import os
from dataclasses import replace
from typing import Annotated

import typer

from dissector.cli.command import command
from dissector.cli.command_group import CommandGroup, print_version
from dissector.cli.errors import UsageError, print_error
from dissector.cli.formats import DiffFormat, Format, ProbeFormat, RuleFormat, StatsFormat
from dissector.cli.options import CaptureOptions, Cluster, CsvOptions
from dissector.cli.schema_commands import schema
from dissector.cli.tables_commands import tables
from dissector.cli.terminal import is_terminal, takes_screen
from dissector.export.formats import ExportFormat

Files = Annotated[
    list[str],
    typer.Argument(
        metavar="FILE…", help="Captures, hex dumps, Kafka log segments, or a folder of tables; - is standard input."
    ),
]
Fields = Annotated[
    str | None,
    typer.Option(
        metavar="A,B,C", help="Print these row fields and field paths as columns: conn,api,latency,request.acks."
    ),
]
RowFilter = Annotated[
    str | None, typer.Option("-Y", metavar="FILTER", help='Only matching rows: "api == Fetch && latency > 50ms".')
]
Limit = Annotated[int | None, typer.Option(min=1, help="Stop after this many rows.")]


app = typer.Typer(
    cls=CommandGroup,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Dissect Kafka's wire protocol from captures.\n\n`kdissect FILE` opens a capture in the terminal UI.",
    epilog="Example: kdissect show orders.pcapng --format tree --limit 3",
)


@app.callback()
def global_options(
    *,
    version: Annotated[  # its callback does it
        bool, typer.Option("--version", callback=print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Hold the options that stand before a command."""


@command(app, "open", epilog="Examples: kdissect open orders.pcapng --port 19092; open tables -Y 'latency > 10s'")
def open_files(
    files: Files,
    *,
    filter: Annotated[
        str | None,
        typer.Option("-Y", metavar="FILTER", help="With tables, show only matching rows; / filters on the screen."),
    ] = None,
    options: CaptureOptions,
    cluster: Cluster,
) -> int:
    """Open captures or tables in the terminal UI; without a terminal, print their rows."""
    if not takes_screen(files):
        return show(files, filter=filter, csv=CsvOptions(), options=options, cluster=cluster)
    from dissector.cli.tables import are_tables
    from tui.app import run

    if are_tables(files, cluster, options):
        from dissector.cli.table_captures import show_on_screen

        return show_on_screen(files[0], cluster, filter, lambda it: run([it.path], ports=it.ports, topics=it.topics))
    if filter is not None:
        return print_error("-Y is for tables: to filter a capture on the screen, press /")
    return run(
        files, options.response_to, ports=options.ports, key_logs=options.key_logs, show_secrets=options.show_secrets
    )


@command(app, "recent", hidden=True)
def recent() -> int:
    """Choose a recent capture."""
    from tui.app import run

    return run([])


@command(app, "show", epilog="Example: kdissect show orders.pcapng -Y 'api == Fetch && error' --format json | jq .api")
def show(
    files: Files,
    *,
    form: Annotated[
        Format,
        typer.Option(
            "--format",
            "-f",
            help="One line, a tree or a JSON object for each exchange, or CSV with text as it was sent: "
            "for a spreadsheet add --escape-formulas.",
        ),
    ] = Format.TEXT,
    fields: Fields = None,
    filter: RowFilter = None,
    limit: Limit = None,
    csv: CsvOptions,
    options: CaptureOptions,
    cluster: Cluster,
) -> int:
    """Print the exchanges of captures or tables."""
    from dissector.cli.show import show as run

    return run(files, form, limit, fields, filter, csv=csv, options=options, cluster=cluster)


@command(
    app,
    "stats",
    epilog="Examples: kdissect stats orders.pcapng; kdissect stats orders.pcapng -Y 'latency > 1s' --by topic -f json",
)
def stats(
    files: Files,
    *,
    by: Annotated[
        str | None,
        typer.Option(
            metavar="FIELD",
            help="One table with all lines: api, client, connection, topic, partition, version, error, field (bytes of"
            " each field), or any other row field.",
        ),
    ] = None,
    form: Annotated[StatsFormat, typer.Option("--format", "-f", help="Text tables, or one JSON object per line.")] = (
        StatsFormat.TEXT
    ),
    filter: RowFilter = None,
    plot: Annotated[
        bool, typer.Option("--plot", help="Plot latency over time, its heat map, and bytes by topic.")
    ] = False,
    options: Annotated[CaptureOptions, "response", "port", "keylog"],
    cluster: Cluster,
) -> int:
    """Count exchanges, bytes, errors and latencies, by API, client, topic or any row field.

    Latencies are those without long polls (Fetch, JoinGroup, …), unless a line has no others.
    """
    from dissector.cli.stats import stats as run

    return run(files, by, form, filter, plot=plot, options=options, cluster=cluster)


@command(
    app,
    "diff",
    epilog="Examples: kdissect diff java.pcapng librdkafka.pcapng; diff *.pcapng -f html; "
    "diff both.pcapng --a 'client_id == \"x\"' --b 'client_id == \"y\"'; "
    "diff orders.pcapng --save-baseline orders.toml; diff new.pcapng --baseline orders.toml --fail-on version,acks",
)
def diff(
    files: Annotated[
        list[str], typer.Argument(metavar="A B…", help="Two captures, or more for a matrix; one for a baseline.")
    ],
    *,
    form: Annotated[RuleFormat | None, typer.Option("--format", "-f", help="Print a report in this format.")] = None,
    a: Annotated[
        str | None, typer.Option("--a", metavar="FILTER", help="Rows of A to compare, or of the only capture.")
    ] = None,
    b: Annotated[
        str | None, typer.Option("--b", metavar="FILTER", help="Rows of B to compare, or of the only capture.")
    ] = None,
    match: Annotated[
        list[str] | None,
        typer.Option(metavar="A:N=B:M", help="Compare these two connections; may be repeated."),
    ] = None,
    save_baseline: Annotated[
        str | None, typer.Option(metavar="FILE", help="Write what the client does as a short TOML text.")
    ] = None,
    baseline: Annotated[
        str | None, typer.Option(metavar="FILE", help="Hold the client to this text: 0 it does so, 1 it differs.")
    ] = None,
    fail_on: Annotated[
        str | None, typer.Option(metavar="NAMES", help="With --baseline, only these count: version,acks,retries.")
    ] = None,
    ignore: Annotated[
        str | None, typer.Option(metavar="NAMES", help="With --baseline, leave these out: PushTelemetry,compression.")
    ] = None,
    options: Annotated[CaptureOptions, "port", "keylog"],
    cluster: Cluster,
) -> int:
    """Compare two clients side by side, or more in a matrix; exit code 0 for the same, 1 for different.

    On a terminal, two sides open in the terminal UI. With tables, a side is TABLES:NAME, a client id or a capture, and
    the result is a matrix.
    """
    if save_baseline is not None or baseline is not None or fail_on is not None or ignore is not None:
        from dissector.cli.baseline import BaselineOptions
        from dissector.cli.baseline import baseline as run_baseline

        others = (*(each for each, value in (("--b", b), ("--match", match)) if value),)
        asked = BaselineOptions(save_baseline, baseline, fail_on, ignore)
        return run_baseline(files, asked, form or RuleFormat.TEXT, a, others, options=options)
    from dissector.cli.diff import compare as run

    on_screen = form is None and len(files) <= 2 and takes_screen(files)
    if on_screen:
        from tui.app import run_diff
    if form in (RuleFormat.JUNIT, RuleFormat.SARIF):
        raise UsageError(f"--format {form.value} is for what became of a baseline: it needs --baseline")
    shown = run_diff if on_screen else DiffFormat(form or DiffFormat.TEXT)
    return run(files, shown, (a, b), match or [], options=options, cluster=cluster)


@command(
    app,
    "check",
    epilog="Examples: kdissect check orders.pcapng; check *.pcapng -f junit > rules.xml; check --rules",
)
def check(
    files: Annotated[list[str] | None, typer.Argument(metavar="FILE…", help="Captures; - is standard input.")] = None,
    *,
    form: Annotated[RuleFormat, typer.Option("--format", "-f", help="Print in this format.")] = RuleFormat.TEXT,
    ignore: Annotated[
        str | None, typer.Option(metavar="NAMES", help="Rules to leave out: throttle-time,topic-name.")
    ] = None,
    rules: Annotated[bool, typer.Option("--rules", help="List the rules with their sources.")] = False,
    options: Annotated[CaptureOptions, "port", "keylog"],
) -> int:
    """Hold clients and brokers to the protocol's rules; exit code 0 if all are kept, 1 if one is broken.

    Each broken rule comes with its source (KIP, schema, Kafka's own code), the exchange and the bytes.
    """
    from dissector.cli.check import check_captures, list_rules

    if rules:
        return list_rules(form)
    if not files:
        raise UsageError("name one or more captures, or --rules")
    return check_captures(files, form, ignore, options=options)


@command(
    app, "live", epilog="Examples: sudo kdissect live; kdissect live -i any -p 9092 -p 9093 --format json | jq .api"
)
def live(
    *,
    interface: Annotated[
        str | None, typer.Option("-i", metavar="NAME", help="Interface name, or any; by default loopback.")
    ] = None,
    port: Annotated[
        list[int] | None, typer.Option("-p", min=1, max=65535, help="Broker port, by default 9092; may be repeated.")
    ] = None,
    expression: Annotated[str, typer.Option("-f", metavar="FILTER", help="A tcpdump filter instead of ports.")] = "",
    path: Annotated[str, typer.Option("-w", metavar="FILE", help="Write the packets as pcapng.")] = "",
    ring: Annotated[
        list[str] | None,
        typer.Option("-b", metavar="WHEN:N", help="With -w, a ring of files: filesize:KB, duration:S, files:COUNT."),
    ] = None,
    promiscuous: Annotated[
        bool, typer.Option("--promiscuous", help="Also capture packets for other machines.")
    ] = False,
    text: Annotated[bool, typer.Option("--text", help="Print rows even on a terminal.")] = False,
    form: Annotated[Format | None, typer.Option("--format", help="Output format of the rows.")] = None,
    fields: Fields = None,
    filter: Annotated[str | None, typer.Option("-Y", metavar="FILTER", help="Only matching rows on stdout.")] = None,
    duration: Annotated[
        float | None, typer.Option(min=0.1, metavar="SECONDS", help="Stop after this many seconds.")
    ] = None,
    limit: Limit = None,
    csv: CsvOptions,
    options: Annotated[CaptureOptions, "keylog", "show_secrets"],
    listed: Annotated[bool, typer.Option("--list", "-D", help="List the interfaces.")] = False,
) -> int:
    """Capture and dissect live traffic."""
    from dissector.cli.live import capture_settings, list_interfaces
    from dissector.cli.live import live as run
    from dissector.cli.options import parse_filter
    from dissector.cli.render.printing import RowRenderer

    if listed:
        return list_interfaces()
    prints = text or any(option is not None for option in (form, fields, limit, filter, csv.escape_formulas or None))
    on_screen = not prints and is_terminal()
    return run(
        capture_settings(interface, port or [], expression, path, ring or [], promiscuous=promiscuous),
        None if on_screen else RowRenderer.of(form or Format.TEXT, fields, escape_formulas=csv.escape_formulas),
        duration,
        limit,
        parse_filter(filter),
        options,
    )


@command(
    app,
    "export",
    epilog="Examples: kdissect export orders.pcapng -Y error -w errors.pcapng; ... --rows 17 -w replay.py",
)
def export(
    files: Files,
    *,
    out: Annotated[str, typer.Option("-w", metavar="OUT", help="The file to write; - is standard output.")],
    rows: Annotated[
        str | None, typer.Option(metavar="N,N-M", help="Rows by number, as in show; by default all.")
    ] = None,
    filter: RowFilter = None,
    form: Annotated[
        ExportFormat | None,
        typer.Option("--format", "-f", help="File format; by default from the suffix of OUT: .pcapng .txt .py …"),
    ] = None,
    redact: Annotated[
        bool, typer.Option("--redact", help="Replace record contents, credentials, names and addresses.")
    ] = False,
    no_secrets: Annotated[
        bool, typer.Option("--no-secrets", help="Leave the TLS secrets of decrypted connections out of a capture.")
    ] = False,
    decrypted: Annotated[
        bool, typer.Option("--decrypted", help="Write decrypted exchanges as plain TCP, in place of their packets.")
    ] = False,
    options: Annotated[CaptureOptions, "port", "keylog", "show_secrets"],
) -> int:
    """Write exchanges to a file: their packets, a hex transcript, JSON, a sequence diagram (Mermaid, SVG), a pytest
    file that replays them, or the command that shows them.

    Secrets are masked, except in a capture that is not redacted. Redaction keeps sizes and structure, and replaces the
    same name by the same name.
    """
    from dissector.cli.export import export as run

    return run(
        files, out, form, rows, filter, redact=redact, secrets=not no_secrets, decrypted=decrypted, options=options
    )


@command(app, "ingest", epilog="Example: kdissect ingest ring/*.pcapng --out tables")
def ingest(
    captures: Annotated[list[str], typer.Argument(metavar="CAPTURES…", help="Captures, or folders of them.")],
    *,
    out: Annotated[str, typer.Option(metavar="DIR", help="Folder of the tables; an existing one is extended.")],
    cluster: Annotated[Cluster, "master", "remote", "conf"],
    frames: Annotated[bool, typer.Option("--frames", help="Also keep the bytes of requests and responses.")] = False,
    hashed: Annotated[
        bool, typer.Option("--hash-records", help="Keep sizes and hashes of keys and values, not their bytes.")
    ] = False,
    options: Annotated[CaptureOptions, "keylog", "show_secrets"],
    log: Annotated[Cluster, "verbose"],
    follow: Annotated[
        bool,
        typer.Option("--follow", help="Keep reading a folder's files as tcpdump or dumpcap close them, until Ctrl+C."),
    ] = False,
    idle: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS", help="With --follow, write everything and end when nothing has come for this long."
        ),
    ] = None,
) -> int:
    """Convert captures to tables of Delta Lake: small ones here, others with Spark."""
    from dissector.cli.ingest import ingest as run

    return run(
        captures, out, replace(cluster, verbose=log.verbose), frames=frames, hashed=hashed,
        show_secrets=options.show_secrets, follow=follow, idle=idle,
        key_logs=options.key_logs,
    )  # fmt: skip


@command(app, "encode", epilog="Example: kdissect show orders.pcapng -f json | kdissect encode -w again.pcapng")
def encode(
    file: Annotated[
        str, typer.Argument(metavar="[FILE]", help="JSON lines that show printed; - is standard input.")
    ] = "-",
    out: Annotated[str | None, typer.Option("-w", metavar="OUT", help="Write a pcapng capture.")] = None,
) -> int:
    """Encode the JSON that show prints: as a hex transcript, or as a capture."""
    from dissector.cli.encode import encode as run

    return run(file, out)


@command(app, "explain", epilog="Examples: kdissect explain Fetch 12; explain 3; explain records; explain tiny-batches")
def explain(
    word: Annotated[
        str,
        typer.Argument(
            metavar="API", help="A name, key, message or finding; or primitives, records, headers, errors, findings."
        ),
    ],
    version: Annotated[
        str | None, typer.Argument(metavar="[VERSION]", help="By default the newest stable version.")
    ] = None,
) -> int:
    """Explain a message (fields, bytes, versions, an example), a finding or an error."""
    from dissector.cli.explain import explain as run

    return run(word, version)


@command(app, "probe", epilog="Example: kdissect probe 127.0.0.1:9092 --format tree")
def probe(
    address: Annotated[
        str, typer.Argument(metavar="HOST[:PORT]", help="A broker's PLAINTEXT listener, by default on port 9092.")
    ],
    form: Annotated[
        ProbeFormat, typer.Option("--format", "-f", help="A report, or the probe's exchanges as show prints them.")
    ] = ProbeFormat.TEXT,
    timeout: Annotated[float, typer.Option(metavar="SECONDS", help="Timeout of each response.")] = 5.0,
    client_id: Annotated[str, typer.Option("--client-id", help="Client id of the requests.")] = "kdissect",
    topics: Annotated[bool, typer.Option("--topics", help="Also list the topics.")] = False,
) -> int:
    """Show the API versions and the cluster of a broker."""
    from dissector.cli.probe import probe as run

    return run(address, form, timeout, client_id, topics=topics)


app.add_typer(tables, name="tables")
app.add_typer(schema, name="schema")


def main() -> None:
    """The entry point."""
    # Nothing here multiplies matrices, but numpy's OpenBLAS starts a thread for each core when it is imported, and
    # again in each worker: a fifth of the CPU of reading a small capture.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    app()


if __name__ == "__main__":
    main()
