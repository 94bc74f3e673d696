"""`kdissect show`: rows, trees or JSON objects on stdout, one an exchange; what is wrong with a file on stderr."""

import sys
from collections.abc import Iterator, Sequence

from dissector.capture_file import Capture
from dissector.cli.follow import follow
from dissector.cli.formats import Format
from dissector.cli.json_lines import json_line
from dissector.cli.outcome import NEGATIVE, complain
from dissector.cli.progress import read_with_progress
from dissector.cli.rows import head_line, row_line
from dissector.cli.trees import tree_lines


def show(
    files: Sequence[str],
    form: Format,
    limit: int | None,
    asked: tuple[int, int] | None = None,
    *,
    show_secrets: bool = False,
) -> int:
    """Print; the exit code: 0, or 1 where there is no Kafka in it."""
    with Capture(files, asked=asked, show_secrets=show_secrets) as capture:
        if capture.grows:
            follow(capture, form, sys.stdout.buffer, limit)
        else:
            _print(capture, form, limit)
        for problem in capture.problems:
            complain(problem.message)
        if not len(capture):
            complain(nothing_found(capture))
            return NEGATIVE
    return 0


def _print(capture: Capture, form: Format, limit: int | None) -> None:
    """Read it all, and then print."""
    read_with_progress(capture)
    for piece in _printed(capture, form, min(len(capture), limit or len(capture))):
        sys.stdout.buffer.write(piece)
    sys.stdout.buffer.flush()


def _printed(capture: Capture, form: Format, count: int) -> Iterator[bytes]:
    """What goes to stdout, for the first `count` rows."""
    if form is Format.JSON:
        yield from (json_line(capture.exchange(number)) for number in range(count))
        return
    if form is Format.TEXT and count:
        yield head_line().encode() + b"\n"
    for number in range(count):
        if form is Format.TEXT:
            yield row_line(capture.row(number), capture.start_ns).encode() + b"\n"
        else:
            yield "\n".join(tree_lines(capture, number)).encode() + b"\n"


def nothing_found(capture: Capture) -> str:
    """Why a capture shows no row."""
    names = ", ".join(capture.names)
    return f"{names}: no Kafka in it ({capture.packets:,} packets, {capture.connections:,} TCP connections)"
