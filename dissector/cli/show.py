"""`kdissect show`: rows, trees or JSON objects on stdout, one an exchange; what is wrong with a file on stderr."""

import sys
from collections.abc import Iterator, Sequence, Set

from dissector.capture import CaptureError
from dissector.capture_file import Capture
from dissector.cli.fields import TABLE, are_of_the_index, lines, names_line, parse
from dissector.cli.formats import Format
from dissector.cli.json_lines import json_line
from dissector.cli.outcome import BAD_INPUT, NEGATIVE, complain
from dissector.cli.progress import read_with_progress
from dissector.cli.rows import head_line, row_line
from dissector.cli.trees import exchange_lines
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
    names = _columns(form, fields)
    with Capture(files, asked=asked, ports=ports, show_secrets=show_secrets) as capture:
        read_with_progress(capture)
        count = min(len(capture), limit or len(capture))
        try:
            _print(capture, form, names, count)
        except WorkerError as error:
            complain(str(error))
            return BAD_INPUT
        sys.stdout.buffer.flush()
        for problem in capture.problems:
            complain(problem.message)
        if not len(capture):
            complain(nothing_found(capture))
            return NEGATIVE
    return 0


def _columns(form: Format, fields: str | None) -> tuple[str, ...]:
    """The fields to print; none where whole exchanges are printed. Raises `CaptureError`."""
    if fields is not None:
        if form not in (Format.TEXT, Format.CSV):
            raise CaptureError("--fields: columns are text or csv")
        return parse(fields)
    return TABLE if form is Format.CSV else ()


def _print(capture: Capture, form: Format, names: Sequence[str], count: int) -> None:
    """The first `count` rows on stdout."""
    sizes = capture.sizes()[:count]
    if form is Format.CSV:
        sys.stdout.buffer.write(names_line(names))
    if names:
        cheap = are_of_the_index(names)
        if not cheap:
            capture.learn()
        print_rows(lines(capture, names, as_csv=form is Format.CSV), sizes, 1 if cheap else None)
        return
    if form is Format.TEXT and count:
        sys.stdout.buffer.write(head_line().encode() + b"\n")
    capture.learn()
    print_rows(lambda start, stop: _printed(capture, form, start, stop), sizes)


def _printed(capture: Capture, form: Format, start: int, stop: int) -> Iterator[bytes]:
    """What goes to stdout for the rows from `start` to before `stop`."""
    exchanges = capture.between(start, stop)
    if form is Format.JSON:
        return map(json_line, exchanges)
    if form is Format.TEXT:
        return (row_line(exchange.row, capture.start_ns).encode() + b"\n" for exchange in exchanges)
    return ("\n".join(exchange_lines(exchange, capture.start_ns)).encode() + b"\n" for exchange in exchanges)


def nothing_found(capture: Capture) -> str:
    """Why a capture shows no row."""
    names = ", ".join(capture.names)
    seen = f"{capture.packets:,} packets, {capture.connections:,} TCP connections{spoken(capture)}"
    return f"{names}: no Kafka in it ({seen})"


def spoken(capture: Capture) -> str:
    """What the connections of a capture speak: ``: TLS 12, unknown 3``."""
    counts = [f"{name} {count:,}" for name, count in capture.protocols.items()]
    return f": {', '.join(counts)}" if counts else ""
