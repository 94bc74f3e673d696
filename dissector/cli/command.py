"""Functions as commands: parameters become options, the result the exit code, an error one line on stderr. And the
parameters that several commands have."""

import inspect
import re
import signal
import sys
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from functools import wraps
from inspect import Parameter
from typing import Annotated, Any, Final, NoReturn, TypeVar, cast, get_args

import typer
from typer.core import TyperCommand

from dissector.cli import completing
from dissector.cli.errors import UsageError, output_error_code, print_error
from dissector.cli.options import Option

Files = Annotated[
    list[str],
    typer.Argument(
        metavar="FILE…",
        help="Captures, text with bytes in any form, Kafka log segments, or a folder of tables; - is standard input.",
    ),
]
CaptureFiles = Annotated[
    list[str],
    typer.Argument(
        metavar="FILE…", help="Captures, text with bytes in any form, or Kafka log segments; - is standard input."
    ),
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
        "--filter",
        metavar="FILTER",
        autocompletion=completing.filter_word,
        help='Only matching rows: "api == Fetch && latency > 50ms".',
    ),
]
CommandWords = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[-- COMMAND…]",
        help="A command to run during the capture. Its exit code becomes that of kdissect.",
    ),
]
"""What stands behind ``--``: the parameter `COMMAND` of a function, which is its last argument."""
COMMAND: Final = "words"
_COMMAND_FOLLOWS: Final = "--"
Limit = Annotated[int | None, typer.Option(metavar="N", min=1, help="Stop after this many rows.")]
Advertise = Annotated[
    str,
    typer.Option(metavar="HOST", help="Tell clients to connect to this host; by default the host of --listen."),
]
# Errors are those of click, or of the copy of it that newer releases of Typer have.
USAGE_ERROR: Final = cast(type[Exception], typer.BadParameter.__mro__[1])
_MAY_LACK: Final = re.compile(r"\[[A-Z]+\]")
Function = TypeVar("Function", bound=Callable[..., int])


class _Command(TyperCommand):
    """A command whose usage has its arguments as manuals have them: ``FILE…`` in place of typer's ``{FILE…}``. If it
    takes `CommandWords`, what stands behind the first ``--`` is none of its options and none of its other arguments."""

    def make_parser(self, ctx: Any) -> Any:
        command = self._command
        if command is not None:
            command.add_to_parser = lambda *_: None  # `parse_args` finds its words
        return super().make_parser(ctx)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        words: list[str] = []
        if self._command is not None and _COMMAND_FOLLOWS in args:
            at = args.index(_COMMAND_FOLLOWS)
            args, words = args[:at], args[at + 1 :]
            if not words and not ctx.resilient_parsing:
                ctx.fail(f"{_COMMAND_FOLLOWS} without a command behind it")
        try:
            rest = super().parse_args(ctx, self._completed(args))
        except USAGE_ERROR as error:
            vars(error)["ctx"] = vars(error)["ctx"] or ctx  # it doesn't say whose option lacks a value
            raise
        if words:
            ctx.params[COMMAND] = words
        return rest

    @property
    def _command(self) -> Any:
        return next((each for each in self.params if each.name == COMMAND), None)

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        pieces = super().collect_usage_pieces(ctx)
        return [piece[1:-1] if piece.startswith("{") else piece for piece in pieces]

    def _completed(self, args: list[str]) -> list[str]:
        """Return arguments in which options that may lack a number (``--web [PORT]``) have one: 0."""
        lacking = {name for each in self.params if _MAY_LACK.fullmatch(each.metavar or "") for name in each.opts}
        end = args.index(_COMMAND_FOLLOWS) if _COMMAND_FOLLOWS in args else len(args)
        found = list(args)
        for place, word in enumerate(args[:end]):
            if word in lacking and not (args[place + 1 : place + 2] or ["-"])[0].isdecimal():
                found[place] = f"{word}=0"
        return found


def examples(lines: Mapping[str, str]) -> str:
    """Return command lines, by what each is for, as help shows them below everything else."""
    shown = "".join(f"\n  # {words}\n  {line}" for words, line in lines.items())
    return f"\b\nExamples:{shown}"


def command(app: typer.Typer, name: str, **settings: Any) -> Callable[[Function], Function]:
    """Add a function to `app` as the command `name`; it returns the exit code.

    A parameter whose type is a dataclass, as those of `options.py`, stands for all options that are its fields,
    `Annotated[CaptureOptions, "port"]` for those that it names.
    """

    def add(function: Function) -> Function:
        app.command(name, cls=_Command, **settings)(_expanded(function))
        return function

    return add


def _expanded(function: Callable[..., int]) -> Callable[..., NoReturn]:
    """Return `function` with the signature that typer reads: a parameter for each option."""
    bundles: dict[str, tuple[Any, list[str]]] = {}
    parameters: list[Parameter] = []
    for parameter in inspect.signature(function).parameters.values():
        bundle, *chosen = get_args(parameter.annotation) or (parameter.annotation,)
        if not is_dataclass(bundle):
            parameters.append(parameter.replace(kind=Parameter.KEYWORD_ONLY))
            continue
        options = [each for each in fields(bundle) if not chosen or each.name in chosen]
        bundles[parameter.name] = bundle, [each.name for each in options]
        for each in options:
            annotation, default = each.type, each.default
            value_type, declared = get_args(annotation)
            if isinstance(declared, Option):
                annotation, default = value_type, typer.Option(default, *declared.names, **declared.settings)
            parameters.append(Parameter(each.name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation))

    @wraps(function)
    def run(**values: Any) -> NoReturn:
        given = dict(values)

        def call() -> int:
            for name, (bundle, names) in bundles.items():
                values[name] = bundle(**{each: values.pop(each) for each in names})
            return function(**values)

        run_command(call, given)

    vars(run)["__signature__"] = inspect.Signature(parameters)
    return run


def run_command(run: Callable[[], int], values: Mapping[str, Any]) -> NoReturn:
    """Run a command and exit: 0 done, 1 a negative answer, 2 bad usage or bad input. `values` are those of its
    parameters."""
    from dissector.capture import CaptureError
    from dissector.capture.errors import MissingFileError
    from dissector.core.kernel import KernelError
    from dissector.protocol.schema.model import SchemaError

    try:
        code = run()
        sys.stdout.flush()
    except OSError as error:
        code = output_error_code(error)
    except MissingFileError as error:
        from dissector.cli.missing_files import missing_file_hint

        code = print_error(f"{error}{missing_file_hint(error.path, values)}", *getattr(error, "__notes__", ()))
    except (UsageError, CaptureError, KernelError, SchemaError) as error:
        code = print_error(str(error), *getattr(error, "__notes__", ()))
    except KeyboardInterrupt:
        code = 128 + signal.SIGINT
    raise typer.Exit(code)
