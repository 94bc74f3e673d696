"""`kdissect`: the program. Its commands stand in `*_commands.py`; help lists them in the order of `COMMANDS`.

Each command imports what it needs when it runs, so that `--help` is quick.
"""

import gc
import os
import sys
from typing import Annotated, Final

import typer

from dissector.cli.command import examples
from dissector.cli.command_group import CommandGroup, print_version
from dissector.cli.comparing_commands import comparing_commands
from dissector.cli.errors import open_standard_streams, output_error_code
from dissector.cli.message_commands import message_commands
from dissector.cli.reading_commands import reading_commands
from dissector.cli.schema_commands import schema
from dissector.cli.tables_commands import tables
from dissector.cli.writing_commands import writing_commands

COMMANDS: Final = (reading_commands, comparing_commands, writing_commands, message_commands)
ABOUT_ALL: Final = ("man",)
"""Commands that say something about every command."""

app = typer.Typer(
    cls=CommandGroup,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Dissect Kafka's wire protocol from captures.\n\n`kdissect FILE` opens a capture in the terminal UI.",
    epilog=examples(
        {
            "copy sample captures to try commands on": "kdissect samples",
            "open one in the terminal UI": "kdissect samples/orders.pcapng",
            "watch a client live": "sudo kdissect live",
        }
    ),
)


@app.callback()
def global_options(
    *,
    version: Annotated[  # its callback does it
        bool,
        typer.Option(
            "--version",
            callback=print_version,
            is_eager=True,
            help="Print the version and the releases of Kafka that it knows.",
        ),
    ] = False,
) -> None:
    """Hold the options that stand before a command."""


for each in COMMANDS:
    app.registered_commands += each.registered_commands
app.add_typer(tables, name="tables")
app.add_typer(schema, name="schema")


def main() -> None:
    """The entry point."""
    # Nothing here multiplies matrices, but numpy's OpenBLAS starts a thread for each core when it is imported, and
    # again in each worker: a fifth of the CPU of reading a small capture.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    named = [each for each in app.registered_commands if each.name in sys.argv[1:2]]
    if named and named[0].name not in ABOUT_ALL:  # typer need not look at the options of the others
        app.registered_commands, app.registered_groups = named, []
    open_standard_streams()
    try:
        app()
    except OSError as error:  # of help: `run_command` has those of commands
        sys.exit(output_error_code(error))
    finally:
        # Python searches all objects for cycles as it ends: a fifth of the CPU of a small capture. DuckDB needs that:
        # it prints which of its own are left, as after a long message on the screen, which keeps objects out too.
        (gc.unfreeze if "duckdb" in sys.modules else gc.freeze)()


if __name__ == "__main__":
    main()
