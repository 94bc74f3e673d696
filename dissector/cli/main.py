"""`kdissect`: the program. Its commands stand in `*_commands.py`; help lists them in the order of `COMMANDS`. A file's
name opens it, and a mistyped command gets the nearest right one.

Each command imports what it needs when it runs, so that `--help` is quick; and if one is named, the modules of those
behind it are not imported.
"""

import gc
import os
import re
import sys
from importlib import import_module
from typing import Annotated, Any, Final

import typer
from typer.core import TyperGroup
from typer.models import CommandInfo

from dissector.cli.command import USAGE_ERROR, examples
from dissector.cli.errors import open_standard_streams, output_error_code, print_error
from dissector.cli.screen import STDIN, is_terminal

COMMANDS: Final = (
    "reading_commands",
    "comparing_commands",
    "live_commands",
    "writing_commands",
    "recording_commands",
    "message_commands",
)
"""Modules, each with a `Typer` of its name."""
ABOUT_ALL: Final = ("man",)
"""Commands that say something about every command."""
PROGRAM: Final = "kdissect"
ALIKE: Final = 0.7
"""How alike, from 0 to 1, a word and a command are for the one to be meant by the other."""
_COMMAND: Final = re.compile(r"[A-Za-z][A-Za-z-]*", re.ASCII)


class CommandGroup(TyperGroup):
    """`kdissect FILE…` is `kdissect open FILE…`; without arguments, on a terminal, it offers recent captures."""

    def main(self, *args: Any, **settings: Any) -> Any:
        """Run the command that the arguments name, and exit."""
        try:
            code = super().main(*args, **(settings | {"prog_name": PROGRAM, "standalone_mode": False}))
        except USAGE_ERROR as error:
            code = _print_usage_error(error)
        except typer.Abort:  # typer's for an `EOFError`
            code = print_error("the input ended unexpectedly")
        sys.exit(code)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if not args and is_terminal():
            from dissector.cli.screen import recent_captures

            args = ["recent"] if recent_captures() else args
        if args[:1] == ["help"]:
            args = [*args[1:], "--help"]
        elif args == ["version"]:
            args = ["--version"]
        return super().parse_args(ctx, args)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args and self.get_command(ctx, args[0]) is None and (args[0] == STDIN or not args[0].startswith("-")):
            meant = None if ctx.resilient_parsing else self._meant(args[0])
            if meant is not None:
                raise typer.Exit(print_error(f"{args[0]}: neither a command nor a file; {meant}"))
            args = ["open", *args]
        return super().resolve_command(ctx, args)

    def _meant(self, word: str) -> str | None:
        """Return which commands a word may have meant; None if it reads as a file's name."""
        if not _COMMAND.fullmatch(word) or os.path.lexists(word):
            return None
        from difflib import get_close_matches  # for errors alone

        shown = [name for name, command in self.commands.items() if not command.hidden]
        near = next(iter(get_close_matches(word.lower(), shown, 1, ALIKE)), None)
        return f"did you mean: kdissect {near}" if near else f"the commands are {', '.join(shown)}"


def _print_usage_error(error: Any) -> int:
    """Print what is wrong with options or arguments; help where there are none."""
    if type(error).__name__ == "NoArgsIsHelpError":
        error.show()
        return int(error.exit_code)
    from dissector.cli.usage_errors import usage_words

    return print_error(usage_words(error, PROGRAM, whole_program))


def print_version(wanted: bool) -> None:
    """Print the version, and the releases of Kafka whose schemas are known, and exit, if it is wanted."""
    if not wanted:
        return
    from importlib.metadata import version

    from dissector.protocol.explain.releases import known_releases

    print(f"kdissect {version('kafka-dissector')}")
    print(f"schemas of Apache Kafka {', '.join(known_releases())}")
    raise typer.Exit


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


def _commands(module: str) -> list[CommandInfo]:
    found: typer.Typer = getattr(import_module(f"dissector.cli.{module}"), module)
    return found.registered_commands


def _program(commands: list[CommandInfo]) -> typer.Typer:
    program = typer.Typer(
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
    program.callback()(global_options)
    program.registered_commands = commands
    return program


def whole_program() -> typer.Typer:
    """Return the program with all its commands."""
    from dissector.cli.schema_commands import schema
    from dissector.cli.tables_commands import tables

    program = _program([each for module in COMMANDS for each in _commands(module)])
    program.add_typer(tables, name="tables")
    program.add_typer(schema, name="schema")
    return program


def program_for(word: str) -> typer.Typer:
    """Return the program with the command that a word names, or with all."""
    for module in COMMANDS if word and word not in ABOUT_ALL else ():
        named = [each for each in _commands(module) if each.name == word]
        if named:  # typer need not look at the options of the others
            return _program(named)
    return whole_program()


def main() -> None:
    """The entry point."""
    # Nothing here multiplies matrices, but numpy's OpenBLAS starts a thread for each core when it is imported, and
    # again in each worker: a fifth of the CPU of reading a small capture.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    program = program_for(next(iter(sys.argv[1:2]), ""))
    open_standard_streams()
    try:
        program()
    except OSError as error:  # of help: `run_command` has those of commands
        sys.exit(output_error_code(error))
    finally:
        _say_what_was_left_out()
        # Python searches all objects for cycles as it ends: a fifth of the CPU of a small capture. DuckDB needs that:
        # it prints which of its own are left, as after a long message on the screen, which keeps objects out too.
        (gc.unfreeze if "duckdb" in sys.modules else gc.freeze)()


def _say_what_was_left_out() -> None:
    """Print what a command did not show because it would have become too large, if there is anything."""
    expansion = sys.modules.get("dissector.core.expansion")
    words = expansion.RUN.complaint() if expansion is not None else ""
    if words:
        print_error(words)


if __name__ == "__main__":
    main()
