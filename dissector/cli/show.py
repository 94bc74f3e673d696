"""`kdissect show`: rows, trees or JSON objects on stdout, one an exchange; what is wrong with a file on stderr."""

import sys
from collections.abc import Sequence
from itertools import islice

from dissector.capture_file import Capture
from dissector.cli.json_lines import json_line
from dissector.cli.main import NEGATIVE, Format, fail
from dissector.cli.rows import Table
from dissector.cli.trees import tree_lines
from dissector.text import clean


def show(files: Sequence[str], form: Format, limit: int | None) -> int:
    """Print; the exit code: 0, or 1 where there is no Kafka in it."""
    with Capture(files) as capture:
        for _ in capture.read():
            pass
        numbers = islice(range(len(capture)), limit)
        write = sys.stdout.buffer.write
        if form is Format.JSON:
            for number in numbers:
                write(json_line(capture.exchange(number)))
        else:
            table = Table(capture)
            for number in numbers:
                lines = table.lines(number) if form is Format.TEXT else tree_lines(capture, number)
                for line in lines:
                    write(line.encode("utf-8", "backslashreplace") + b"\n")
        sys.stdout.flush()
        for problem in capture.problems:
            fail(problem.message)
        if not len(capture):
            print(f"kdissect: {clean(nothing_found(capture))}", file=sys.stderr)
            return NEGATIVE
    return 0


def nothing_found(capture: Capture) -> str:
    """Why a capture shows no row."""
    names = ", ".join(capture.names)
    seen = f"{capture.packets:,} packets, {capture.connections:,} TCP connections"
    return f"{names}: no Kafka in it ({seen})"
