"""Lines of styled text on stdout: coloured on a terminal, plain in a pipe or where NO_COLOR is set.

A line is a list of pieces, each a text and a style of rich (empty: none). What is printed is the same text either way.
"""

import os
import sys
from collections.abc import Iterable, Sequence
from typing import Final

from dissector.text import clean

Line = list[tuple[str, str]]

TITLE: Final = "bold"
NAME: Final = "cyan"
TYPE: Final = "green"
DIM: Final = "dim"
NOTE: Final = "yellow"


def print_lines(lines: Iterable[Line]) -> int:
    """Print; the exit code 0. A reader that goes away ends it quietly."""
    try:
        if sys.stdout.isatty() and not os.environ.get("NO_COLOR"):
            _print_coloured(lines)
        else:
            for line in lines:
                sys.stdout.buffer.write(_plain(line).encode() + b"\n")
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def _plain(line: Line) -> str:
    return clean("".join(text for text, _ in line)).rstrip()


def _print_coloured(lines: Iterable[Line]) -> None:
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False, soft_wrap=True)
    for line in lines:
        console.print(Text.assemble(*((clean(text), style) for text, style in line)))


def title(words: str) -> list[Line]:
    """A heading with an empty line before it."""
    return [[], [(words, TITLE)]]


def table(head: Sequence[str], rows: Sequence[Sequence[str]], styles: Sequence[str], indent: int = 2) -> list[Line]:
    """Rows in columns as wide as their content; a column that is empty all the way is left out."""
    used = [at for at in range(len(head)) if any(row[at] for row in rows)]
    widths = {at: max(len(head[at]), *(len(row[at]) for row in rows)) for at in used}

    def line(cells: Sequence[str], style: Sequence[str]) -> Line:
        return [(" " * indent, ""), *((f"{cells[at]:<{widths[at]}}  ", style[at]) for at in used)]

    return [line(head, [DIM] * len(head)), *(line(row, styles) for row in rows)]
