"""`kdissect diff` and `check`: clients beside each other, and beside the rules of the protocol."""

from typing import Annotated

import typer

from dissector.cli import completing
from dissector.cli.command import command, examples
from dissector.cli.errors import UsageError
from dissector.cli.formats import DiffFormat, RuleFormat
from dissector.cli.options import CaptureOptions
from dissector.cli.screen import takes_screen

comparing_commands = typer.Typer()


@command(
    comparing_commands,
    "diff",
    epilog=examples(
        {
            "two clients, side by side": "kdissect diff samples/java.pcapng samples/librdkafka.pcapng",
            "many clients, as an HTML page": "kdissect diff samples/{java,librdkafka,orders}.pcapng -f html > all.html",
            "name a client's library": "kdissect diff samples/{java,librdkafka}.pcapng --client-b librdkafka",
            "two connections of one capture": "kdissect diff samples/orders.pcapng --a 'conn == 4' --b 'conn == 6'",
            "save what a client does, as a baseline": "kdissect diff samples/java.pcapng --save-baseline java.toml",
            "fail if acks differ": "kdissect diff samples/librdkafka.pcapng --baseline java.toml --fail-on acks",
        }
    ),
)
def diff(
    files: Annotated[
        list[str], typer.Argument(metavar="A B…", help="Two captures, or more for a matrix; one for a baseline.")
    ],
    *,
    form: Annotated[RuleFormat | None, typer.Option("--format", "-f", help="Print a report in this format.")] = None,
    a: Annotated[
        str | None,
        typer.Option(
            "--a",
            metavar="FILTER",
            help="Compare only matching rows of A; of a single capture, the rows of one client.",
        ),
    ] = None,
    b: Annotated[
        str | None,
        typer.Option(
            "--b",
            metavar="FILTER",
            help="Compare only matching rows of B; of a single capture, the rows of the other client.",
        ),
    ] = None,
    client_a: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="The library of client A (sarama, librdkafka), if its requests don't show it: settings then have its "
            "names.",
        ),
    ] = None,
    client_b: Annotated[str | None, typer.Option(metavar="NAME", help="The library of client B.")] = None,
    match: Annotated[
        list[str] | None,
        typer.Option(metavar="A:N=B:M", help="Compare connection N of A with connection M of B; may be repeated."),
    ] = None,
    save_baseline: Annotated[
        str | None, typer.Option(metavar="FILE", help="Save what the client does as a baseline: a short TOML file.")
    ] = None,
    baseline: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Compare the client with this baseline; exit code 0 if it does the same, 1 if it differs. "
            "In the terminal UI: K, for baselines beside the capture.",
        ),
    ] = None,
    fail_on: Annotated[
        str | None,
        typer.Option(metavar="NAMES", help="With --baseline, only these differences count: version,acks,retries."),
    ] = None,
    ignore: Annotated[
        str | None, typer.Option(metavar="NAMES", help="With --baseline, ignore these: PushTelemetry,compression.")
    ] = None,
    options: CaptureOptions,
) -> int:
    """Compare two clients side by side, or more in a matrix. Exit code 0 if they do the same, 1 if they differ.

    On a terminal, the comparison opens in the terminal UI. With tables, a side is TABLES:NAME, where NAME is a client
    id or a capture, and the result is a matrix.
    """
    if save_baseline is not None or baseline is not None or fail_on is not None or ignore is not None:
        from dissector.cli.baseline import BaselineOptions
        from dissector.cli.baseline import baseline as run_baseline

        given = (("--b", b), ("--match", match), ("--client-a", client_a), ("--client-b", client_b))
        others = (*(each for each, value in given if value),)
        asked = BaselineOptions(save_baseline, baseline, fail_on, ignore)
        return run_baseline(files, asked, form or RuleFormat.TEXT, a, others, options=options)
    from dissector.cli.diff import Screens
    from dissector.cli.diff import compare as run

    if form in (RuleFormat.JUNIT, RuleFormat.SARIF):
        raise UsageError(f"--format {form.value} is a report on a baseline: it needs --baseline")
    shown: DiffFormat | Screens = DiffFormat(form or DiffFormat.TEXT)
    if form is None and takes_screen(files):
        from dissector.cli.screen import run_diff, run_matrix

        shown = Screens(run_diff, run_matrix)
    return run(files, shown, (a, b), match or [], (client_a, client_b), options=options)


@command(
    comparing_commands,
    "check",
    epilog=examples(
        {
            "which rules are broken, by whom and where": "kdissect check samples/orders.pcapng",
            "a report for a CI server": "kdissect check samples/orders.pcapng -f junit > rules.xml",
            "all rules with their sources": "kdissect check --rules",
        }
    ),
)
def check(
    files: Annotated[list[str] | None, typer.Argument(metavar="FILE…", help="Captures; - is standard input.")] = None,
    *,
    form: Annotated[
        RuleFormat, typer.Option("--format", "-f", help="Print a report in this format.")
    ] = RuleFormat.TEXT,
    ignore: Annotated[
        str | None,
        typer.Option(
            metavar="NAMES", autocompletion=completing.rules, help="Ignore these rules: throttle-time,topic-name."
        ),
    ] = None,
    rules: Annotated[bool, typer.Option("--rules", help="List the rules with their sources.")] = False,
    options: Annotated[CaptureOptions, "response", "port", "decode_as", "show_secrets", "keylog"],
) -> int:
    """Check clients and brokers against the protocol's rules. Exit code 0 if none is broken, 1 otherwise.

    Each broken rule is shown with its source (KIP, schema, Kafka's own code), the exchange and the bytes. In
    the terminal UI: K.
    """
    from dissector.cli.check import check_captures, list_rules

    if rules:
        return list_rules(form)
    if not files:
        raise UsageError("name one or more captures, or --rules")
    return check_captures(files, form, ignore, options=options)
