"""The one place where errors become a line on stderr and an exit code."""

import signal
import sys
from collections.abc import Callable
from typing import NoReturn

import typer

from dissector.cli.errors import UsageError
from dissector.cli.exit_codes import is_closed_pipe, print_error, silence_output


def run_command(run: Callable[[], int]) -> NoReturn:
    """Run a command to its exit code, whatever comes: 0 done, 1 a negative answer, 2 bad use or bad input."""
    from dissector.capture import CaptureError
    from dissector.protocol.schema.model import SchemaError

    try:
        code = run()
        sys.stdout.flush()
    except OSError as error:
        if not is_closed_pipe(error):
            raise
        silence_output()
        code = 0
    except (UsageError, CaptureError, SchemaError) as error:
        code = print_error(str(error), *getattr(error, "__notes__", ()))
    except KeyboardInterrupt:
        code = 128 + signal.SIGINT
    raise typer.Exit(code)
