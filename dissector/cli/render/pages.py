"""Lines of styled text on stdout: colored on a terminal, plain in a pipe or if NO_COLOR is set.

A line is a list of pieces, each a text and a style of rich (empty: none). The text is the same with and without color.
"""

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from textwrap import wrap
from typing import Final

from dissector.core.text import clean

Line = list[tuple[str, str]]

TITLE: Final = "bold"
NAME: Final = "cyan"
TYPE: Final = "green"
DIM: Final = "dim"
NOTE: Final = "yellow"
TEXT_WIDTH: Final = 96
"""Characters of a line of running text."""


def print_lines(lines: Iterable[Line]) -> int:
    """Print lines; return the exit code 0."""
    if not sys.stdout.isatty() or os.environ.get("NO_COLOR"):
        return write_out(_plain(line).encode() + b"\n" for line in lines)
    with _quietly():
        _print_colored(lines)
    return 0


def write_out(pieces: Iterable[bytes]) -> int:
    """Write bytes to stdout; return the exit code 0."""
    with _quietly():
        for piece in pieces:
            sys.stdout.buffer.write(piece)
    return 0


@contextmanager
def _quietly() -> Iterator[None]:
    """Discard the rest of the output when its reader has gone, as `head` does: that is no error."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _plain(line: Line) -> str:
    return clean("".join(text for text, _ in line)).rstrip()


def _print_colored(lines: Iterable[Line]) -> None:
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False, soft_wrap=True)
    for line in lines:
        console.print(Text.assemble(*((clean(text), style) for text, style in line)))


def title(words: str) -> list[Line]:
    """Return a heading below an empty line."""
    return [[], [(words, TITLE)]]


def wrapped(words: str, indent: int, width: int = TEXT_WIDTH) -> Iterator[Line]:
    """Yield running text in lines of at most `width` characters behind an indent."""
    return ([(" " * indent + line, "")] for line in wrap(words, width, break_on_hyphens=False))


def table(head: Sequence[str], rows: Sequence[Sequence[str]], styles: Sequence[str], indent: int = 2) -> list[Line]:
    """Return rows in columns as wide as their content, without columns that are empty."""
    used = [at for at in range(len(head)) if any(row[at] for row in rows)]
    widths = {at: max(len(head[at]), *(len(row[at]) for row in rows)) for at in used}

    def line(cells: Sequence[str], style: Sequence[str]) -> Line:
        return [(" " * indent, ""), *((f"{cells[at]:<{widths[at]}}  ", style[at]) for at in used)]

    return [line(head, [DIM] * len(head)), *(line(row, styles) for row in rows)]
