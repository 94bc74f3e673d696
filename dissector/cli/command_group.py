"""How `kdissect` finds its command: a file's name opens it, and a mistyped command gets the nearest right one. What is
wrong with options or arguments is said in one line."""

import difflib
import os
import re
import sys
from typing import Any, Final, cast

import typer
from typer.core import TyperGroup

from dissector.cli.errors import print_error
from dissector.cli.terminal import STDIN, is_terminal

PROGRAM: Final = "kdissect"
ALIKE: Final = 0.7
"""How alike, from 0 to 1, a word and a command are for the one to be meant by the other."""
_NUMBER: Final = re.compile(r"a valid (?:int|integer|float)(?: range)?\b")
_NEAREST: Final = re.compile(r"\.? (?:\(Possible options: (?P<several>.+)\)|Did you mean (?P<one>.+)\?)$")

# Contexts and errors are those of click, or of the copy of it that newer releases of Typer have.
_UsageError: Final = cast(type[Exception], typer.BadParameter.__mro__[1])


class CommandGroup(TyperGroup):
    """`kdissect FILE…` is `kdissect open FILE…`; without arguments, on a terminal, it offers recent captures."""

    def main(self, *args: Any, **settings: Any) -> Any:
        """Run the command that the arguments name, and exit."""
        try:
            code = super().main(*args, **(settings | {"prog_name": PROGRAM, "standalone_mode": False}))
        except _UsageError as error:
            code = _print_usage_error(error)
        except typer.Abort:  # typer's for an `EOFError`
            code = print_error("the input ended too soon")
        sys.exit(code)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if not args and is_terminal():
            from dissector.cli.screen import recent_captures

            args = ["recent"] if recent_captures() else args
        return super().parse_args(ctx, args)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args and self.get_command(ctx, args[0]) is None and (args[0] == STDIN or not args[0].startswith("-")):
            meant = None if ctx.resilient_parsing else self._meant(args[0])
            if meant is not None:
                words = f"{args[0]}: neither a command nor a file; did you mean: kdissect {meant}"
                raise typer.Exit(print_error(words))
            args = ["open", *args]
        return super().resolve_command(ctx, args)

    def _meant(self, word: str) -> str | None:
        """Return the command that a word which is no file's name is nearest to; None if it is like none."""
        if "." in word or os.path.lexists(word):
            return None
        shown = [name for name, command in self.commands.items() if not command.hidden]
        return next(iter(difflib.get_close_matches(word.lower(), shown, 1, ALIKE)), None)


def _print_usage_error(error: Any) -> int:
    """Print what is wrong with options or arguments; help where there are none."""
    if type(error).__name__ == "NoArgsIsHelpError":
        error.show()
        return int(error.exit_code)
    words = _NUMBER.sub("a number", error.format_message().rstrip("."))
    words = _NEAREST.sub(lambda found: f"; did you mean {found['several'] or found['one']}", words)
    command = error.ctx.command_path if error.ctx else PROGRAM
    return print_error(f"{words[:1].lower()}{words[1:]}; see {command} --help")


def print_version(wanted: bool) -> None:
    """Print the version, and the releases of Kafka whose schemas are known, and exit, if it is wanted."""
    if not wanted:
        return
    from importlib.metadata import version

    from dissector.protocol.explain.releases import known_releases

    print(f"kdissect {version('kafka-dissector')}")
    print(f"schemas of Apache Kafka {', '.join(known_releases())}")
    raise typer.Exit
