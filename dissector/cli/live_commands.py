"""`kdissect live` and `proxy`: traffic as it happens, from packets or from a place between clients and brokers."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from dissector.cli import completing
from dissector.cli.command import Advertise, CommandWords, Fields, Limit, command, examples
from dissector.cli.formats import Format
from dissector.cli.options import BrokerTls, CaptureOptions, CsvOptions, VerdictOptions
from dissector.cli.screen import is_terminal

if TYPE_CHECKING:  # imported on use: it takes a while
    from dissector.cli.live import LiveOutput
    from dissector.cli.verdict import CaptureVerdict

live_commands = typer.Typer()

KeptFile = Annotated[str, typer.Option("-w", metavar="FILE", help="Write the packets to this pcapng file.")]
Ring = Annotated[
    list[str] | None,
    typer.Option(
        "-b",
        metavar="WHEN:N",
        help="With -w, write a ring buffer of files: filesize:KB, duration:SECONDS, files:COUNT; may be repeated.",
    ),
]


@dataclass(frozen=True)
class LiveOptions:
    """What is shown of live traffic, and for how long."""

    text: Annotated[bool, typer.Option("--text", help="Print rows even on a terminal.")] = False
    form: Annotated[Format | None, typer.Option("--format", "-f", help="Output format of the rows.")] = None
    fields: Fields = None
    filter: Annotated[
        str | None, typer.Option("-Y", "--filter", metavar="FILTER", help="Print only matching rows.")
    ] = None
    duration: Annotated[
        float | None, typer.Option(min=0.1, metavar="SECONDS", help="Stop after this many seconds.")
    ] = None
    metrics: Annotated[
        str,
        typer.Option(metavar="[HOST:]PORT", help="Serve metrics for Prometheus on this port, by default of 127.0.0.1."),
    ] = ""
    limit: Limit = None

    def output(self, csv: CsvOptions, options: CaptureOptions, *, is_quiet: bool, has_command: bool) -> "LiveOutput":
        """Return what is shown: rows where an option asks for them; else nothing if there is another result,
        `is_quiet`; else the screen, where there is one that no command has; else rows."""
        from dissector.cli.live import LiveOutput
        from dissector.cli.options import parse_filter
        from dissector.cli.render.printing import RowRenderer

        choices = (self.form, self.fields, self.limit, self.filter)
        asked = self.text or csv.escape_formulas or any(each is not None for each in choices)
        if not asked and (is_quiet or (not has_command and is_terminal())):
            return LiveOutput(on_screen=not is_quiet)
        rows = RowRenderer.of(self.form or Format.TEXT, self.fields, escape_formulas=csv.escape_formulas)
        return LiveOutput(False, rows, self.limit, parse_filter(self.filter, options=options))


@command(
    live_commands,
    "live",
    epilog=examples(
        {
            "loopback, any port, on the screen": "sudo kdissect live",
            "all interfaces, two ports, as JSON": "sudo kdissect live -i any -p 9092 -p 9093 --format json",
            "while a command runs": "sudo kdissect live -- ./producer",
            "the exit code of the tests, or 1 if a rule is broken": "sudo kdissect live --check -- pytest tests",
            "metrics for Prometheus": "sudo kdissect live --text --metrics 9404 > rows.txt",
        }
    ),
)
def live(
    words: CommandWords = None,
    *,
    interface: Annotated[
        str | None,
        typer.Option(
            "-i",
            metavar="NAME",
            autocompletion=completing.interface,
            help="Interface, or any for all of them; by default loopback.",
        ),
    ] = None,
    port: Annotated[
        list[int] | None,
        typer.Option(
            "-p",
            "--port",
            metavar="PORT",
            min=1,
            max=65535,
            help="Broker port; may be repeated. By default every port on loopback, where Kafka is recognized by "
            "content, and 9092 on other interfaces.",
        ),
    ] = None,
    expression: Annotated[
        str,
        typer.Option(
            "--capture-filter", metavar="FILTER", help="Capture what matches this tcpdump filter, instead of ports."
        ),
    ] = "",
    path: KeptFile = "",
    ring: Ring = None,
    promiscuous: Annotated[
        bool, typer.Option("--promiscuous", help="Also capture packets for other machines.")
    ] = False,
    shown: LiveOptions,
    verdict: VerdictOptions,
    csv: CsvOptions,
    options: Annotated[CaptureOptions, "decode_as", "show_secrets", "keylog", "resolve", "schemas"],
    processes: Annotated[
        bool, typer.Option("--processes/--no-processes", help="Look up which local process each connection belongs to.")
    ] = True,
    listed: Annotated[bool, typer.Option("--list", "-D", help="List the interfaces.")] = False,
) -> int:
    """Capture and dissect live traffic, or the traffic of a command while it runs.

    With -- COMMAND, the capture begins before the command and ends with it; then its rows are printed, unless -w alone
    is given. The exit code is the command's if that is not 0, otherwise that of --check, --baseline and --fail-on: 1 if
    something is wrong.
    """
    from dissector.cli.live import capture_settings, list_interfaces
    from dissector.cli.live import live as run

    if listed:
        return list_interfaces()
    settings = capture_settings(interface, port or [], expression, path, ring or [], promiscuous=promiscuous)
    judged = _verdict(verdict, options)
    is_quiet = judged is not None or bool(words and path)
    output = shown.output(csv, options, is_quiet=is_quiet, has_command=bool(words))
    return run(
        settings, output, shown.duration, options, metrics=shown.metrics, shows_processes=processes, words=words or (),
        verdict=judged,
    )  # fmt: skip


def _verdict(asked: VerdictOptions, options: CaptureOptions) -> "CaptureVerdict | None":
    """Return what is judged at the end; None if nothing is. Raises `UsageError`."""
    if asked == VerdictOptions():
        return None
    from dissector.cli.verdict import CaptureVerdict

    return CaptureVerdict.of(asked, options)


@command(
    live_commands,
    "proxy",
    epilog=examples(
        {
            "on the screen; clients use the address that it prints": "kdissect proxy broker.example:9092",
            "rows on a port of your choice": "kdissect proxy localhost:9092 --listen 29092 --text",
            "brokers with TLS, clients without": "kdissect proxy broker.example:9093 --tls --ca ca.pem",
            "three errors on purpose": "kdissect proxy localhost:9092 --fault "
            "'api == Produce && topic == orders: error NOT_LEADER_OR_FOLLOWER, first 3'",
            "clients with TLS, too": "kdissect proxy broker.example:9093 --tls --listen-tls",
            "what those clients must trust": "kdissect proxy ca",
            "a client's tests, in CI": "kdissect proxy localhost:9092 --check --junit rules.xml -- pytest tests",
            "an address as an argument": "kdissect proxy localhost:9092 -- kcat -L -b {kdissect.bootstrap}",
            "metrics for Prometheus, on the screen": "kdissect proxy broker.example:9092 --metrics 9404",
        }
    ),
)
def proxy(
    brokers: Annotated[
        list[str],
        typer.Argument(
            metavar="BROKER…",
            help="Bootstrap addresses, HOST or HOST:PORT; others are found. Or the word ca: show what clients must "
            "trust with --listen-tls.",
        ),
    ],
    words: CommandWords = None,
    *,
    listen: Annotated[
        str,
        typer.Option(
            metavar="[HOST:]PORT",
            help="Listen on this port for the first broker, and on the ports above it for the others; by default on "
            "127.0.0.1, from 19092 up. With port 0, the system chooses the ports.",
        ),
    ] = "",
    advertise: Advertise = "",
    brokers_tls: BrokerTls,
    tls_to_clients: Annotated[
        bool,
        typer.Option(
            "--listen-tls",
            help="Use TLS to clients, with --listen-cert or with a certificate made for this run.",
        ),
    ] = False,
    listen_certificate: Annotated[
        str, typer.Option("--listen-cert", metavar="FILE", help="Present this certificate (PEM) to clients.")
    ] = "",
    listen_key: Annotated[
        str, typer.Option(metavar="FILE", help="The key of --listen-cert, if it is in another file.")
    ] = "",
    fault: Annotated[
        list[str] | None,
        typer.Option(
            "--fault",
            metavar="RULE",
            help="FILTER: ACTION, TRIGGERS. Actions: delay 200ms, error NAME [acted], close [after], drop [after], "
            "throttle 500ms, offer Fetch<=11, corrupt, slow 64kB/s. Triggers: first 3, after 10, every 5, "
            "probability 0.1 seed 7, for 30s. May be repeated.",
        ),
    ] = None,
    faults: Annotated[
        str, typer.Option("--faults", metavar="FILE", help="Rules of a TOML file: [[fault]] with a name and a rule.")
    ] = "",
    strict: Annotated[bool, typer.Option("--strict", help="Exit with 1 if a rule never fired.")] = False,
    hold: Annotated[
        float,
        typer.Option(
            "--hold-limit",
            metavar="SECONDS",
            min=0.1,
            max=3600,
            help="How long a message is held on the screen before it is sent on unchanged.",
        ),
    ] = 20,
    path: KeptFile = "",
    ring: Ring = None,
    shown: LiveOptions,
    verdict: VerdictOptions,
    csv: CsvOptions,
    options: Annotated[CaptureOptions, "show_secrets", "resolve", "schemas"],
) -> int:
    """Run a proxy between clients and brokers, and dissect their traffic where packets can't be captured.

    Set the printed address as the clients' bootstrap.servers. The proxy replaces brokers' addresses in responses with
    its own; everything else passes byte for byte. It needs no special rights. With --fault it injects errors, delays,
    lost responses and more; -Y 'finding == "injected"' shows what it did, and the end lists how often each rule fired.

    With -- COMMAND, it lasts as long as the command, which finds the address in KDISSECT_BOOTSTRAP,
    KAFKA_BOOTSTRAP_SERVERS and SPRING_KAFKA_BOOTSTRAP_SERVERS, and as {kdissect.bootstrap} in its arguments.
    """
    from dissector.cli.live import live as run
    from dissector.cli.proxy import SHOW_CA, listen_tls, proxy_settings, show_ca, upstream_tls

    if brokers == [SHOW_CA]:
        return show_ca()
    speaks_tls = upstream_tls(brokers_tls)
    listens = listen_tls(listen_certificate, listen_key, tls=tls_to_clients)
    rules: tuple[tuple[str, str], ...] = ()
    report = None
    judged = _verdict(verdict, options)
    is_quiet = judged is not None or bool(words and path)
    output = shown.output(csv, options, is_quiet=is_quiet, has_command=bool(words))
    if fault or faults or strict or output.on_screen:
        from dissector.cli.faults import fault_rules, report_faults

        rules, report = fault_rules(fault or [], faults, strict=strict), report_faults(strict=strict)
    settings = proxy_settings(brokers, listen, advertise, speaks_tls, listens, path, ring or [], rules,
                              is_controlled=output.on_screen, hold_seconds=hold)  # fmt: skip
    return run(
        settings, output, shown.duration, options, metrics=shown.metrics, shows_processes=False, words=words or (),
        verdict=judged, at_end=report or (lambda _: 0),
    )  # fmt: skip
