"""`kdissect`: the commands, and the one place where errors become a line on stderr and an exit code.

Exit codes: 0 done, 1 a negative answer, 2 bad use or bad input. What is heavy is imported by the command that needs it,
so that `--help` is quick.
"""

import os
import signal
import sys
from collections.abc import Callable
from typing import Annotated, NoReturn

import typer
from typer.core import TyperGroup

from dissector.cli.formats import Format
from dissector.cli.outcome import complain


class _OpensFiles(TyperGroup):
    """`kdissect FILE…` is `kdissect open FILE…`."""

    def resolve_command(self, ctx, args):  # type: ignore[no-untyped-def]  # click's own signature is not typed
        if args and self.get_command(ctx, args[0]) is None and not args[0].startswith("-"):
            args = ["open", *args]
        return super().resolve_command(ctx, args)


app = typer.Typer(
    cls=_OpensFiles,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="See what Kafka clients and brokers say to each other.\n\n`kdissect FILE` opens a capture on the screen.",
    epilog="Example: kdissect show orders.pcapng --format tree --limit 3",
)

Files = Annotated[
    list[str], typer.Argument(metavar="FILE…", help="Captures, hex, or segments of Kafka; - is standard input.")
]
Response = Annotated[
    str | None, typer.Option(metavar="API:VERSION", help="What a response answers whose request is not there.")
]

Secrets = Annotated[bool, typer.Option("--show-secrets", help="Show passwords, tokens and keys, which are masked.")]


@app.command("open", epilog="Example: kdissect open pcaps/java.pcapng")
def open_files(files: Files, response: Response = None, show_secrets: Secrets = False) -> None:
    """Open captures on the screen; without a terminal, print their rows."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        show(files, response=response, show_secrets=show_secrets)
        return
    from dissector.cli.asked import asked
    from tui.app import run

    _answer(lambda: run(files, asked(response), show_secrets=show_secrets))


@app.command("show", epilog="Example: kdissect show orders.pcapng --format json | jq .api")
def show(
    files: Files,
    form: Annotated[Format, typer.Option("--format", "-f", help="One line, a tree, or a JSON object an exchange.")] = (
        Format.TEXT
    ),
    limit: Annotated[int | None, typer.Option(min=1, help="Stop after so many rows.")] = None,
    response: Response = None,
    show_secrets: Secrets = False,
) -> None:
    """Print the exchanges of captures."""
    from dissector.cli.asked import asked
    from dissector.cli.show import show as run

    _answer(lambda: run(files, form, limit, asked(response), show_secrets=show_secrets))


@app.command("encode", epilog="Example: kdissect show orders.pcapng -f json | kdissect encode -w again.pcapng")
def encode(
    file: Annotated[str, typer.Argument(metavar="[FILE]", help="JSON lines of show, or - for standard input.")] = "-",
    out: Annotated[str | None, typer.Option("-w", metavar="OUT", help="Write a pcapng capture.")] = None,
) -> None:
    """Turn the JSON of show back into bytes: a hex transcript on stdout, or a capture."""
    from dissector.cli.encode import encode as run

    _answer(lambda: run(file, out))


def _answer(run: Callable[[], int]) -> NoReturn:
    """Run a command to its exit code, whatever comes."""
    from dissector.capture import CaptureError

    try:
        code = run()
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader went away, as `head` does: nothing more to say, not even when Python flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    except CaptureError as error:
        code = complain(str(error))
    except KeyboardInterrupt:
        code = 128 + signal.SIGINT
    raise typer.Exit(code)


def main() -> None:
    """The entry point."""
    app()


if __name__ == "__main__":
    main()
