"""Arguments and options that commands share."""

from typing import Annotated

import typer

Files = Annotated[
    list[str],
    typer.Argument(
        metavar="FILE…", help="Captures, hex dumps, Kafka log segments, or a folder of tables; - is standard input."
    ),
]
Response = Annotated[
    str | None,
    typer.Option(metavar="API:VERSION", help="API and version of responses whose request is missing: Metadata:12."),
]

Ports = Annotated[
    list[int] | None,
    typer.Option("--port", min=0, max=65535, help="Treat this server port as Kafka; may be repeated."),
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
Master = Annotated[str | None, typer.Option(metavar="URL", help="Spark master; by default all cores of this machine.")]
Remote = Annotated[str | None, typer.Option(metavar="URL", help="Spark Connect server: sc://HOST:PORT.")]
Conf = Annotated[list[str] | None, typer.Option(metavar="K=V", help="Spark setting; may be repeated.")]
Verbose = Annotated[bool, typer.Option("-v", help="Show Spark's log.")]
Secrets = Annotated[
    bool, typer.Option("--show-secrets", help="Show passwords, tokens and keys instead of masking them.")
]
