"""The command line as data: what the documentation is made of, and the manual page, which `kdissect man`
prints and wheels have.

Invariant: it needs nothing but typer, for the environment in which a wheel is built has nothing else.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

_WORDS: Final = "# "


@dataclass(frozen=True, slots=True)
class ParameterLine:
    """An argument or an option."""

    names: str
    """As it is written: ``-f, --format FORMAT``."""
    help: str


@dataclass(frozen=True, slots=True)
class CommandPage:
    """A command."""

    name: str
    """Its words behind ``kdissect``; empty for the program itself."""
    usage: str
    help: str
    parameters: tuple[ParameterLine, ...]
    examples: tuple[tuple[str, str], ...]
    """What each is for, and its command line."""


def command_pages(command: Any, words: tuple[str, ...] = ()) -> Iterator[CommandPage]:
    """Yield a program, as typer makes it, and all commands that its help lists, in their order; `words` lead to it."""
    context = command.make_context("kdissect", [], resilient_parsing=True)
    context.info_name, context.parent = " ".join(("kdissect", *words)), None
    parameters = [_parameter(each, context) for each in command.params if not getattr(each, "hidden", False)]
    examples = tuple(_examples(command.epilog or ""))
    text = " ".join((command.help or "").replace("\b", "").split("\n\n")).replace("\n", " ")
    yield CommandPage(" ".join(words), command.get_usage(context), text, tuple(parameters), examples)
    for name in command.list_commands(context) if hasattr(command, "list_commands") else ():
        inner = command.get_command(context, name)
        if inner is not None and not inner.hidden:
            yield from command_pages(inner, (*words, name))


def _parameter(parameter: Any, context: Any) -> ParameterLine:
    record = parameter.get_help_record(context)
    if record is not None:
        names, words = record
        return ParameterLine(names, words)
    return ParameterLine(parameter.make_metavar(context), getattr(parameter, "help", "") or "")


def _examples(epilog: str) -> Iterator[tuple[str, str]]:
    """Yield what each example is for, and its command line."""
    lines = [line.strip() for line in epilog.splitlines()]
    for words, line in pairwise(lines):
        if words.startswith(_WORDS):
            yield words.removeprefix(_WORDS), line


def manual(program: Any, version: str) -> str:
    """Return that of a program, as typer makes it, as troff: `kdissect man | man -l -`."""
    pages = list(command_pages(program))
    synopsis = (f".br\n{_escaped(' '.join(each.usage.split()).removeprefix('Usage: '))}" for each in pages)
    return "\n".join([
        f'.TH KDISSECT 1 "" "kdissect {version}" "User Commands"',
        ".SH NAME\nkdissect \\- see what Apache Kafka clients and brokers say to each other",
        ".SH SYNOPSIS", *synopsis,
        ".SH DESCRIPTION\nExit codes: 0 done; 1 differences, broken rules or no match; 2 usage or input error.",
        *(line for each in pages for line in _section(each)), "",
    ])  # fmt: skip


def _section(each: CommandPage) -> Iterator[str]:
    yield f'.SH "{_escaped(f"kdissect {each.name}".strip()).upper()}"'
    yield _escaped(each.help)
    for line in each.parameters:
        yield f".TP\n.B {_escaped(line.names)}\n{_escaped(line.help)}"
    if each.examples:
        yield ".PP\n.nf"
        yield from (f"  # {_escaped(words)}\n  {_escaped(line)}" for words, line in each.examples)
        yield ".fi"


def _escaped(text: str) -> str:
    """Return words that troff prints as they are."""
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("\n", " ").strip()
    return f"\\&{text}" if text.startswith((".", "'")) else text
