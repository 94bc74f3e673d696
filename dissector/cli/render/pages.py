"""Lines of styled text on stdout: coloured on a terminal, plain in a pipe or where NO_COLOR is set.

A line is a list of pieces, each a text and a style of rich (empty: none). What is printed is the same text either way.
"""

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from dissector.core.text import clean

Line = list[tuple[str, str]]

TITLE: Final = "bold"
NAME: Final = "cyan"
TYPE: Final = "green"
DIM: Final = "dim"
NOTE: Final = "yellow"


def print_lines(lines: Iterable[Line]) -> int:
    """Print; the exit code 0."""
    if not sys.stdout.isatty() or os.environ.get("NO_COLOR"):
        return write_out(_plain(line).encode() + b"\n" for line in lines)
    with _quietly():
        _print_coloured(lines)
    return 0


def write_out(pieces: Iterable[bytes]) -> int:
    """Write bytes to stdout; the exit code 0."""
    with _quietly():
        for piece in pieces:
            sys.stdout.buffer.write(piece)
    return 0


@contextmanager
def _quietly() -> Iterator[None]:
    """A reader that goes away, as `head` does, is no failure: nothing more is said, not even when Python ends."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


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
