"""`kdissect encode`, `explain` and `probe`: messages without a capture; and `man`."""

from typing import Annotated

import typer

from dissector.cli import completing
from dissector.cli.command import command, examples
from dissector.cli.formats import ProbeFormat

message_commands = typer.Typer()


@command(
    message_commands,
    "encode",
    epilog=examples(
        {"a capture from JSON": "kdissect show samples/orders.pcapng -f json | kdissect encode -w new.pcapng"}
    ),
)
def encode(
    file: Annotated[str, typer.Argument(metavar="[FILE]", help="JSON lines from show; - is standard input.")] = "-",
    out: Annotated[
        str | None, typer.Option("-w", metavar="OUT", help="Write a pcapng capture instead of a hex transcript.")
    ] = None,
) -> int:
    """Encode the JSON of show as a hex transcript or a capture."""
    from dissector.cli.encode import encode as run

    return run(file, out)


@command(
    message_commands,
    "explain",
    epilog=examples(
        {
            "the fields and bytes of a version": "kdissect explain Fetch 12",
            "an API by its key": "kdissect explain 3",
            "record batches": "kdissect explain records",
            "a finding: why it happens, what to do": "kdissect explain tiny-batches",
            "an error: what a client should do": "kdissect explain NOT_COORDINATOR",
        }
    ),
)
def explain(
    word: Annotated[
        str,
        typer.Argument(
            metavar="API",
            autocompletion=completing.explained,
            help="An API, message, finding, error or rule; or primitives, records, headers, errors, findings.",
        ),
    ],
    version: Annotated[
        str | None, typer.Argument(metavar="[VERSION]", help="By default the newest stable version.")
    ] = None,
) -> int:
    """Explain a message, a finding, an error or a rule. Of a message: fields, bytes, versions, an example."""
    from dissector.cli.explain import explain as run

    return run(word, version)


@command(
    message_commands,
    "probe",
    epilog=examples(
        {
            "what a broker offers": "kdissect probe 127.0.0.1",
            "the exchanges themselves": "kdissect probe 127.0.0.1:9092 --format tree",
        }
    ),
)
def probe(
    address: Annotated[
        str, typer.Argument(metavar="HOST[:PORT]", help="A broker's PLAINTEXT listener, by default on port 9092.")
    ],
    form: Annotated[
        ProbeFormat, typer.Option("--format", "-f", help="A report, or the probe's exchanges as show prints them.")
    ] = ProbeFormat.TEXT,
    timeout: Annotated[float, typer.Option(metavar="SECONDS", help="Timeout for each response.")] = 5.0,
    client_id: Annotated[
        str, typer.Option("--client-id", metavar="ID", help="Client id of the requests.")
    ] = "kdissect",
    topics: Annotated[bool, typer.Option("--topics", help="Also list the topics.")] = False,
) -> int:
    """Show the API versions and the cluster of a broker."""
    from dissector.cli.probe import probe as run

    return run(address, form, timeout, client_id, topics=topics)


@command(message_commands, "man", epilog=examples({"read it": "kdissect man | man -l -"}))
def man(context: typer.Context) -> int:
    """Print the manual page."""
    from dissector.cli.reference import manual
    from dissector.core.version import version

    print(manual(context.find_root().command, version("kafka-dissector")), end="")
    return 0
