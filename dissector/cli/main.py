"""`kdissect`: the commands and what each takes.

What is heavy is imported by the command that needs it, so that `--help` is quick.
"""

import sys
from typing import Annotated

import typer
from typer.core import TyperGroup

from dissector.cli.cluster import Cluster
from dissector.cli.error_handler import run_command
from dissector.cli.exit_codes import print_error
from dissector.cli.formats import DiffFormat, Format, ProbeFormat, StatsFormat
from dissector.cli.options import (
    Conf,
    Fields,
    Files,
    Master,
    Ports,
    Remote,
    Response,
    Secrets,
    Verbose,
    Wanted,
)
from dissector.cli.schema_commands import schema
from dissector.export.formats import ExportFormat


class _OpensFiles(TyperGroup):
    """`kdissect FILE…` is `kdissect open FILE…`; nothing at all, on a terminal, offers what was opened before."""

    def parse_args(self, ctx, args):  # type: ignore[no-untyped-def]  # click's own signature is not typed
        if not args and sys.stdin.isatty() and sys.stdout.isatty():
            from tui.recents import recent_captures

            args = ["recent"] if recent_captures() else args
        return super().parse_args(ctx, args)

    def resolve_command(self, ctx, args):  # type: ignore[no-untyped-def]  # click's own signature is not typed
        if args and self.get_command(ctx, args[0]) is None and not args[0].startswith("-"):
            args = ["open", *args]
        return super().resolve_command(ctx, args)


app = typer.Typer(
    cls=_OpensFiles,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="See what Kafka clients and brokers say to each other.\n\n`kdissect FILE` opens a capture on the screen.",
    epilog="Example: kdissect show orders.pcapng --format tree --limit 3",
)


@app.command("open", epilog="Examples: kdissect open orders.pcapng --port 19092; open tables -Y 'latency > 10s'")
def open_files(
    files: Files,
    filter: Annotated[
        str | None, typer.Option("-Y", metavar="FILTER", help="Of tables, what to put on the screen; / filters there.")
    ] = None,
    response: Response = None,
    port: Ports = None,
    show_secrets: Secrets = False,
    master: Master = None,
    remote: Remote = None,
    conf: Conf = None,
    verbose: Verbose = False,
) -> None:
    """Open captures on the screen, or what is found in tables; without a terminal, print their rows."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        show(
            files, filter=filter, response=response, port=port, show_secrets=show_secrets, master=master,
            remote=remote, conf=conf, verbose=verbose,
        )  # fmt: skip
        return
    from dissector.cli.response_option import parse_response
    from dissector.cli.tables import are_tables
    from tui.app import run

    def on_screen() -> int:
        on = Cluster(master, remote, conf or (), verbose)
        if are_tables(files, on, (response, port, show_secrets)):
            from dissector.cli.table_captures import show_on_screen

            return show_on_screen(files[0], on, filter, lambda it: run([it.path], ports=it.ports, topics=it.topics))
        if filter is not None:
            return print_error("-Y: of a capture all is opened: / filters it on the screen")
        return run(files, parse_response(response), ports=frozenset(port or ()), show_secrets=show_secrets)

    run_command(on_screen)


@app.command("recent", hidden=True)
def recent() -> None:
    """Choose among captures that were opened before."""
    from tui.app import run

    run_command(lambda: run([]))


@app.command("show", epilog="Example: kdissect show orders.pcapng -Y 'api == Fetch && error' --format json | jq .api")
def show(
    files: Files,
    form: Annotated[Format, typer.Option("--format", "-f", help="A line, a tree, a JSON object, CSV.")] = (Format.TEXT),
    fields: Fields = None,
    filter: Wanted = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Stop after so many rows.")] = None,
    response: Response = None,
    port: Ports = None,
    show_secrets: Secrets = False,
    master: Master = None,
    remote: Remote = None,
    conf: Conf = None,
    verbose: Verbose = False,
) -> None:
    """Print the exchanges of captures, or of tables."""
    from dissector.cli.response_option import parse_response
    from dissector.cli.show import show as run

    run_command(
        lambda: run(
            files, form, limit, parse_response(response), fields, filter, ports=frozenset(port or ()),
            show_secrets=show_secrets, on=Cluster(master, remote, conf or (), verbose),
        )
    )  # fmt: skip


@app.command(
    "stats",
    epilog="Examples: kdissect stats orders.pcapng; kdissect stats orders.pcapng -Y 'latency > 1s' --by topic -f json",
)
def stats(
    files: Files,
    by: Annotated[
        str | None,
        typer.Option(
            metavar="FIELD",
            help="One table with all lines: api, client, connection, topic, partition, version, error, field (bytes of"
            " each field), or any other row field.",
        ),
    ] = None,
    form: Annotated[StatsFormat, typer.Option("--format", "-f", help="Tables, or a JSON object a line.")] = (
        StatsFormat.TEXT
    ),
    filter: Wanted = None,
    plot: Annotated[
        bool, typer.Option("--plot", help="Pictures: latency over time, its heat map, bytes by topic.")
    ] = False,
    response: Response = None,
    port: Ports = None,
    master: Master = None,
    remote: Remote = None,
    conf: Conf = None,
    verbose: Verbose = False,
) -> None:
    """Count the exchanges of captures, or of tables: bytes, errors, latencies, by API, client, topic and more."""
    from dissector.cli.response_option import parse_response
    from dissector.cli.stats import stats as run

    run_command(
        lambda: run(
            files, by, form, filter, parse_response(response), ports=frozenset(port or ()), plot=plot,
            on=Cluster(master, remote, conf or (), verbose),
        )
    )  # fmt: skip


@app.command(
    "diff",
    epilog="Examples: kdissect diff java.pcapng librdkafka.pcapng; diff *.pcapng -f html; "
    "diff both.pcapng --a 'client_id == \"x\"' --b 'client_id == \"y\"'",
)
def diff(
    files: Annotated[list[str], typer.Argument(metavar="A B…", help="Captures: two, or more for a matrix.")],
    form: Annotated[
        DiffFormat | None, typer.Option("--format", "-f", help="Print a report of this form, else text or the screen.")
    ] = None,
    a: Annotated[str | None, typer.Option("--a", metavar="FILTER", help="What of A, or of one capture.")] = None,
    b: Annotated[str | None, typer.Option("--b", metavar="FILTER", help="What of B, or of the same capture.")] = None,
    match: Annotated[
        list[str] | None,
        typer.Option(metavar="A:N=B:M", help="Connections, by number, that are the same; may be repeated."),
    ] = None,
    port: Ports = None,
    master: Master = None,
    remote: Remote = None,
    conf: Conf = None,
    verbose: Verbose = False,
) -> None:
    """Compare what two clients do, or put several beside each other; exit code 0 for the same, 1 for different. On a
    terminal two are shown on the screen. Of tables, sides are TABLES:NAME, a client id or a capture: of these the
    matrix of what each does as a whole."""
    from dissector.cli.diff import compare as run

    on_screen = form is None and len(files) <= 2 and sys.stdin.isatty() and sys.stdout.isatty()
    if on_screen:
        from tui.app import run_diff
    shown = run_diff if on_screen else form or DiffFormat.TEXT
    run_command(
        lambda: run(
            files, shown, (a, b), match or [], ports=frozenset(port or ()),
            on=Cluster(master, remote, conf or (), verbose),
        )
    )  # fmt: skip


@app.command(
    "live", epilog="Examples: sudo kdissect live; kdissect live -i any -p 9092 -p 9093 --format json | jq .api"
)
def live(
    interface: Annotated[
        str | None, typer.Option("-i", metavar="NAME", help="An interface, or any; else loopback.")
    ] = None,
    port: Annotated[
        list[int] | None, typer.Option("-p", min=1, max=65535, help="A broker's port; may be repeated.")
    ] = None,
    expression: Annotated[
        str, typer.Option("-f", metavar="FILTER", help="A filter of tcpdump's, in place of ports.")
    ] = "",
    path: Annotated[str, typer.Option("-w", metavar="FILE", help="Keep the packets, as pcapng.")] = "",
    ring: Annotated[
        list[str] | None,
        typer.Option("-b", metavar="WHEN:N", help="With -w, several files: filesize:KB, duration:S, files:COUNT."),
    ] = None,
    promiscuous: Annotated[bool, typer.Option("--promiscuous", help="What is for other machines, too.")] = False,
    text: Annotated[bool, typer.Option("--text", help="Rows on stdout, as where it is no terminal.")] = False,
    form: Annotated[Format | None, typer.Option("--format", help="The form of what goes to stdout.")] = None,
    fields: Fields = None,
    filter: Annotated[
        str | None, typer.Option("-Y", metavar="FILTER", help="Of the rows on stdout, only those that fit.")
    ] = None,
    duration: Annotated[float | None, typer.Option(min=0.1, metavar="SECONDS", help="Stop after so long.")] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Stop after so many rows.")] = None,
    show_secrets: Secrets = False,
    listed: Annotated[bool, typer.Option("--list", "-D", help="List the interfaces.")] = False,
) -> None:
    """Watch clients and brokers while they talk."""
    from dissector.cli.filter_option import parse_filter
    from dissector.cli.live import capture_settings, list_interfaces
    from dissector.cli.live import live as run
    from dissector.cli.render.printing import RowRenderer

    prints = text or any(option is not None for option in (form, fields, limit, filter))
    on_screen = not prints and sys.stdin.isatty() and sys.stdout.isatty()
    if listed:
        run_command(list_interfaces)
    run_command(
        lambda: run(
            capture_settings(interface, port or [], expression, path, ring or [], promiscuous=promiscuous),
            None if on_screen else RowRenderer.of(form or Format.TEXT, fields),
            duration,
            limit,
            parse_filter(filter),
            show_secrets=show_secrets,
        )
    )


@app.command(
    "export",
    epilog="Examples: kdissect export orders.pcapng -Y error -w errors.pcapng; ... --rows 17 -w replay.py",
)
def export(
    files: Files,
    out: Annotated[str, typer.Option("-w", metavar="OUT", help="The file to write; - is standard output.")],
    rows: Annotated[
        str | None, typer.Option(metavar="N,N-M", help="Rows by their numbers in show, else all of them.")
    ] = None,
    filter: Wanted = None,
    form: Annotated[
        ExportFormat | None, typer.Option("--format", "-f", help="What to write, else as OUT ends: .pcapng .txt .py …")
    ] = None,
    redact: Annotated[
        bool, typer.Option("--redact", help="Replace record contents, credentials, names and addresses.")
    ] = False,
    port: Ports = None,
    show_secrets: Secrets = False,
) -> None:
    """Write exchanges to share: a capture of their very packets, a hex transcript, the JSON of show, a sequence diagram
    (Mermaid, SVG), a pytest file that replays them, the command that shows them.

    Secrets are masked in all but a capture, which has them as they were unless it is redacted. What is redacted keeps
    its sizes and its structure, and the same name is the same again.
    """
    from dissector.cli.export import export as run

    ports = frozenset(port or ())
    run_command(lambda: run(files, out, form, rows, filter, ports, redact=redact, show_secrets=show_secrets))


@app.command("ingest", epilog="Example: kdissect ingest ring/*.pcapng --out tables")
def ingest(
    captures: Annotated[list[str], typer.Argument(metavar="CAPTURES…", help="Captures, or folders of them.")],
    out: Annotated[str, typer.Option(metavar="DIR", help="The folder of the tables, which may be there.")],
    master: Master = None,
    remote: Remote = None,
    conf: Conf = None,
    frames: Annotated[bool, typer.Option("--frames", help="Keep the bytes of requests and responses.")] = False,
    hashed: Annotated[bool, typer.Option("--hash-records", help="Sizes and hashes for keys and values.")] = False,
    show_secrets: Secrets = False,
    verbose: Verbose = False,
    follow: Annotated[
        bool, typer.Option("--follow", help="Go on: a folder's files as tcpdump or dumpcap close them, until Ctrl+C.")
    ] = False,
    idle: Annotated[
        float | None,
        typer.Option(metavar="SECONDS", help="With --follow: end when nothing has come for so long, and write all."),
    ] = None,
) -> None:
    """Bring captures into Parquet tables, on Spark."""
    from dissector.cli.ingest import ingest as run

    run_command(
        lambda: run(
            captures, out, Cluster(master, remote, conf or (), verbose), frames=frames, hashed=hashed,
            show_secrets=show_secrets, follow=follow, idle=idle,
        )
    )  # fmt: skip


@app.command("encode", epilog="Example: kdissect show orders.pcapng -f json | kdissect encode -w again.pcapng")
def encode(
    file: Annotated[str, typer.Argument(metavar="[FILE]", help="JSON lines of show, or - for standard input.")] = "-",
    out: Annotated[str | None, typer.Option("-w", metavar="OUT", help="Write a pcapng capture.")] = None,
) -> None:
    """Turn the JSON of show back into bytes: a hex transcript on stdout, or a capture."""
    from dissector.cli.encode import encode as run

    run_command(lambda: run(file, out))


@app.command("explain", epilog="Examples: kdissect explain Fetch 12; explain 3; explain records; explain tiny-batches")
def explain(
    word: Annotated[
        str,
        typer.Argument(
            metavar="API", help="A name, key, message or finding; or primitives, records, headers, errors, findings."
        ),
    ],
    version: Annotated[str | None, typer.Argument(metavar="[VERSION]", help="Else the newest stable one.")] = None,
) -> None:
    """Explain a message (fields, bytes, versions, an example) or a finding."""
    from dissector.cli.explain import explain as run

    run_command(lambda: run(word, version))


@app.command("probe", epilog="Example: kdissect probe 127.0.0.1:9092 --format tree")
def probe(
    address: Annotated[str, typer.Argument(metavar="HOST:PORT", help="A broker's PLAINTEXT listener.")],
    form: Annotated[
        ProbeFormat, typer.Option("--format", "-f", help="A report, or the probe's own bytes as show prints them.")
    ] = ProbeFormat.TEXT,
    timeout: Annotated[float, typer.Option(metavar="SECONDS", help="The longest wait for each answer.")] = 5.0,
    client_id: Annotated[str, typer.Option("--client-id", help="The name to ask under.")] = "kdissect",
    topics: Annotated[bool, typer.Option("--topics", help="List the topics too.")] = False,
) -> None:
    """Ask a broker what it offers and who is in its cluster."""
    from dissector.cli.probe import probe as run

    run_command(lambda: run(address, form, timeout, client_id, topics=topics))


app.add_typer(schema, name="schema")


def main() -> None:
    """The entry point."""
    app()


if __name__ == "__main__":
    main()
