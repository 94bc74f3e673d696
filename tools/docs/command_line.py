"""The page of the command line: each command with its arguments, options and examples."""

from collections.abc import Iterator
from typing import Any, Final

from typer.main import get_command

from dissector.cli.every_command import app
from dissector.cli.reference import CommandPage, command_pages
from tools.docs.markdown import table

_HEAD: Final = """# The command line

`kdissect FILE…` opens captures on the screen. Data goes to stdout, messages to stderr. Exit codes: 0 done; 1 a negative
answer (different, nothing matched, no Kafka, a rule broken); 2 bad use or bad input, with one plain line.

`man kdissect` shows this page where pipx installed kdissect; `kdissect man | man -l -` shows it anywhere.
"""


def page() -> str:
    """All of it."""
    return "\n".join([_HEAD, *(part for each in command_pages(get_command(app)) for part in _section(each))])


def _section(each: CommandPage) -> Iterator[str]:
    yield f"\n## kdissect {each.name}".rstrip() + "\n"
    yield f"```text\n{each.usage}\n```\n"
    yield f"{each.help}\n"
    rows: list[Any] = [(f"`{each_option.names}`", each_option.help) for each_option in each.parameters]
    if rows:
        yield table(("argument or option", "does"), *rows)
    if each.examples:
        yield "```sh\n" + "\n".join(f"# {words}\n{line}" for words, line in each.examples) + "\n```\n"
