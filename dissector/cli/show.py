"""`kdissect show`: rows, trees or JSON objects on stdout, one an exchange; what is wrong with a file on stderr."""

import sys
from collections.abc import Sequence, Set

from dissector.capture_file import Capture
from dissector.cli.collecting import collecting_seldom
from dissector.cli.follow import follow
from dissector.cli.formats import Format
from dissector.cli.outcome import BAD_INPUT, NEGATIVE, complain
from dissector.cli.printing import Printing
from dissector.cli.progress import read_with_progress
from dissector.cli.workers import WorkerError, print_rows


def show(
    files: Sequence[str],
    form: Format,
    limit: int | None,
    asked: tuple[int, int] | None = None,
    fields: str | None = None,
    *,
    ports: Set[int] = frozenset(),
    show_secrets: bool = False,
) -> int:
    """Print; the exit code: 0, or 1 where there is no Kafka in it."""
    printing = Printing.of(form, fields)
    with collecting_seldom(), Capture(files, asked=asked, ports=ports, show_secrets=show_secrets) as capture:
        try:
            if capture.grows:
                follow(capture, printing, sys.stdout.buffer, limit)
            else:
                _print(capture, printing, limit)
        except WorkerError as error:
            complain(str(error))
            return BAD_INPUT
        for problem in capture.problems:
            complain(problem.message)
        if not len(capture):
            complain(nothing_found(capture))
            return NEGATIVE
    return 0


def _print(capture: Capture, printing: Printing, limit: int | None) -> None:
    """Read it all, and then print."""
    read_with_progress(capture, examine=printing.shows_findings)
    count = min(len(capture), limit or len(capture))
    if count or printing.form is Format.CSV:
        sys.stdout.buffer.write(printing.head)
    if not printing.is_cheap:
        capture.learn()
    print_rows(printing.render(capture), count, capture.sizes, 1 if printing.is_cheap else None)
    sys.stdout.buffer.flush()


def nothing_found(capture: Capture) -> str:
    """Why a capture shows no row."""
    names = ", ".join(capture.names)
    seen = f"{capture.packets:,} packets, {capture.connections:,} TCP connections{spoken(capture)}"
    return f"{names}: no Kafka in it ({seen})"


def spoken(capture: Capture) -> str:
    """What the connections of a capture speak: ``: TLS 12, unknown 3``."""
    counts = [f"{name} {count:,}" for name, count in capture.protocols.items()]
    return f": {', '.join(counts)}" if counts else ""
