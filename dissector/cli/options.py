"""Arguments and options that several commands have, each in the same words."""

from typing import Annotated

import typer

Files = Annotated[
    list[str],
    typer.Argument(
        metavar="FILE…", help="Captures, hex, segments of Kafka, or a folder of tables; - is standard input."
    ),
]
Response = Annotated[
    str | None, typer.Option(metavar="API:VERSION", help="What a response answers whose request is not there.")
]

Ports = Annotated[
    list[int] | None,
    typer.Option(
        "--port", min=0, max=65535, help="A port of Kafka's servers, whatever it looks like; may be repeated."
    ),
]
Fields = Annotated[
    str | None, typer.Option(metavar="A,B,C", help="Columns in place of rows: names and paths of the JSON object.")
]
Wanted = Annotated[
    str | None, typer.Option("-Y", metavar="FILTER", help='Only what fits: "api == Fetch && latency > 50ms".')
]
Master = Annotated[str | None, typer.Option(metavar="URL", help="A Spark master; else all cores of this machine.")]
Remote = Annotated[str | None, typer.Option(metavar="URL", help="A Spark Connect server: sc://HOST:PORT.")]
Conf = Annotated[list[str] | None, typer.Option(metavar="K=V", help="A setting of Spark; may be repeated.")]
Verbose = Annotated[bool, typer.Option("-v", help="Let Spark speak.")]
Secrets = Annotated[bool, typer.Option("--show-secrets", help="Show passwords, tokens and keys, which are masked.")]
