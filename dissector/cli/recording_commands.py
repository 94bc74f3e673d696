"""`kdissect serve` and `replay`: a capture in place of brokers, and in place of clients."""

from typing import Annotated

import typer

from dissector.cli.command import CaptureFiles, command, examples
from dissector.cli.options import CaptureOptions

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
    advertise: Annotated[
        str,
        typer.Option(
            metavar="HOST", help="Tell clients this host in place of the brokers'; by default the one listened on."
        ),
    ] = "",
    speed: Annotated[
        float, typer.Option(metavar="N", min=0.001, help="Answer long polls N times as fast as they were recorded.")
    ] = 1.0,
    no_wait: Annotated[bool, typer.Option("--no-wait", help="Answer long polls at once.")] = False,
    text: Annotated[
        bool, typer.Option("--text", help="Print each request, and the rows of the capture that answer it.")
    ] = False,
    duration: Annotated[float | None, typer.Option(min=0.1, metavar="SECONDS", help="Stop after so long.")] = None,
    options: Annotated[CaptureOptions, "port", "decode_as", "keylog"],
) -> int:
    """Answer clients from a capture, as its brokers did.

    Clients use the address that is printed as bootstrap.servers; it stands in place of all brokers' addresses. A
    request is answered by the recorded one that it resembles most, in recorded order. What was not recorded is said,
    and Ctrl+C ends with a list of it.
    """
    from dissector.cli.serve import serve as run
    from dissector.cli.serve import serve_settings

    settings = serve_settings(listen, advertise, speed, waits=not no_wait)
    return run(files, settings, duration, options, text=text)
