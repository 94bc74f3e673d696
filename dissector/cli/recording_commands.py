"""`kdissect serve` and `replay`: a capture in place of brokers, and in place of clients."""

from typing import Annotated

import typer

from dissector.cli.command import Advertise, CaptureFiles, command, examples
from dissector.cli.formats import DiffFormat
from dissector.cli.options import BrokerTls, CaptureOptions

recording_commands = typer.Typer()


@command(
    recording_commands,
    "serve",
    epilog=examples(
        {
            "clients talk to a capture": "kdissect serve samples/orders.pcapng",
            "each request, with the row that answers it": "kdissect serve samples/orders.pcapng --listen 29092 --text",
            "long polls without their waits, in a test": "kdissect serve samples/orders.pcapng --no-wait --duration 60",
        }
    ),
)
def serve(
    files: CaptureFiles,
    *,
    listen: Annotated[
        str,
        typer.Option(
            metavar="[HOST:]PORT",
            help="Listen on this port; by default on 127.0.0.1, on the first one that is free from 19092 on. Port 0: "
            "any that the system chooses.",
        ),
    ] = "",
    advertise: Advertise = "",
    speed: Annotated[
        float, typer.Option(metavar="N", min=0.001, help="Answer long polls N times as fast as they were recorded.")
    ] = 1.0,
    no_wait: Annotated[bool, typer.Option("--no-wait", help="Answer long polls at once.")] = False,
    text: Annotated[
        bool, typer.Option("--text", help="Print each request, and the rows of the capture that answer it.")
    ] = False,
    duration: Annotated[
        float | None, typer.Option(min=0.1, metavar="SECONDS", help="Stop after this many seconds.")
    ] = None,
    options: Annotated[CaptureOptions, "port", "decode_as", "keylog"],
) -> int:
    """Answer clients from a capture, as its brokers did.

    Clients use the address that is printed as bootstrap.servers; it stands in place of all brokers' addresses. A
    request is answered by the recorded one that it resembles most, in recorded order. A request without a recorded
    answer is reported, and listed again at the end (Ctrl+C).
    """
    from dissector.cli.serve import serve as run
    from dissector.cli.serve import serve_settings

    settings = serve_settings(listen, advertise, speed, waits=not no_wait)
    return run(files, settings, duration, options, text=text)


@command(
    recording_commands,
    "replay",
    epilog=examples(
        {
            "does another broker answer in the same way?": "kdissect replay samples/orders.pcapng localhost:9092",
            "an upgrade, with all that writes": "kdissect replay samples/orders.pcapng localhost:9092 --allow-writes",
            "over TLS, with a login": "kdissect replay samples/orders.pcapng broker.example:9093 --tls --user alice "
            "--password-file password.txt",
        }
    ),
)
def replay(
    file: Annotated[str, typer.Argument(metavar="CAPTURE", help="The capture whose requests are sent.")],
    broker: Annotated[str, typer.Argument(metavar="BROKER", help="Where to send them, HOST or HOST:PORT.")],
    *,
    form: Annotated[DiffFormat, typer.Option("--format", "-f", help="Print a report in this format.")] = (
        DiffFormat.TEXT
    ),
    path: Annotated[str, typer.Option("-w", metavar="FILE", help="Keep what was sent and received as a capture.")] = "",
    allow_writes: Annotated[
        bool,
        typer.Option(
            "--allow-writes",
            help="Also send what changes the cluster: records, topics, configs, offsets, transactions, group joins.",
        ),
    ] = False,
    speed: Annotated[
        float | None,
        typer.Option(
            metavar="N",
            min=0.001,
            help="Send requests N times as fast as they were recorded; by default as fast as responses come.",
        ),
    ] = None,
    timeout: Annotated[
        float,
        typer.Option(metavar="SECONDS", min=0.1, max=3600, help="How much longer than recorded a response may take."),
    ] = 30.0,
    broker_tls: BrokerTls,
    user: Annotated[str, typer.Option(metavar="NAME", help="Log in with SASL as this user.")] = "",
    password_file: Annotated[
        str, typer.Option(metavar="FILE", help="The file with the password; by default KDISSECT_PASSWORD has it.")
    ] = "",
    sasl_mechanism: Annotated[
        str, typer.Option(metavar="NAME", help="PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512.")
    ] = "PLAIN",
    recorded_login: Annotated[
        bool,
        typer.Option("--recorded-login", help="Send recorded logins again: PLAIN, and OAUTHBEARER until it expires."),
    ] = False,
    options: Annotated[CaptureOptions, "port", "decode_as", "keylog"],
) -> int:
    """Send a capture's requests to another broker, and compare its answers with the recorded ones, as diff does.

    Exit code 0 if they are the same, 1 if they differ. Without --allow-writes, requests that write are left out and
    counted. Ids and epochs are replaced by those that this broker gives.
    """
    from dissector.cli.proxy import upstream_tls
    from dissector.cli.replay import login_of, replay_settings
    from dissector.cli.replay import replay as run

    settings = replay_settings(
        broker, upstream_tls(broker_tls),
        login_of(user, password_file, sasl_mechanism), speed, timeout, allow_writes=allow_writes,
        recorded_login=recorded_login,
    )  # fmt: skip
    return run(file, settings, path, form, options)
