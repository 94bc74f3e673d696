"""`kdissect man`: the manual page, made of what `--help` says."""

from collections.abc import Iterator
from typing import Any

from dissector.cli.reference import CommandPage, command_pages


def print_manual(program: Any) -> int:
    """Print that of a program, as typer makes it, as troff: `kdissect man | man -l -`."""
    from importlib.metadata import version

    pages = list(command_pages(program))
    print(f'.TH KDISSECT 1 "" "kdissect {version("kafka-dissector")}" "User Commands"')
    print(".SH NAME\nkdissect \\- see what Apache Kafka clients and brokers say to each other")
    print(".SH SYNOPSIS")
    for each in pages:
        print(f".br\n{_escaped(each.usage.removeprefix('Usage: '))}")
    print(".SH DESCRIPTION\nExit codes: 0 done; 1 a negative answer; 2 bad use or bad input, with one plain line.")
    for each in pages:
        print("\n".join(_section(each)))
    return 0


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
