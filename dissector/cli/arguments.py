"""Arguments and options that several commands have, as types of their parameters."""

from typing import Annotated

import typer

from dissector.cli import completing

Files = Annotated[
    list[str],
    typer.Argument(
        metavar="FILE…", help="Captures, hex dumps, Kafka log segments, or a folder of tables; - is standard input."
    ),
]
CaptureFiles = Annotated[
    list[str],
    typer.Argument(metavar="FILE…", help="Captures, hex dumps, or Kafka log segments; - is standard input."),
]
"""Where tables can't stand for captures."""
Fields = Annotated[
    str | None,
    typer.Option(
        metavar="A,B,C",
        autocompletion=completing.row_fields,
        help="Print these row fields and field paths as columns: conn,api,latency,request.acks.",
    ),
]
RowFilter = Annotated[
    str | None,
    typer.Option(
        "-Y",
        metavar="FILTER",
        autocompletion=completing.filter_word,
        help='Only matching rows: "api == Fetch && latency > 50ms".',
    ),
]
Limit = Annotated[int | None, typer.Option(metavar="N", min=1, help="Stop after this many rows.")]
