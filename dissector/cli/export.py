"""`kdissect export`: chosen exchanges as a file to share, of the formats that `evidence` and `exporting` make."""

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

import numpy as np

from dissector.capture import CaptureError
from dissector.capture.files import STDIN
from dissector.capture_file import Capture
from dissector.cli.filtering import nothing_fits, wanted
from dissector.cli.formats import ExportFormat
from dissector.cli.json_lines import json_line
from dissector.cli.outcome import NEGATIVE, complain
from dissector.cli.progress import read_with_progress
from dissector.cli.show import nothing_found
from dissector.conversation import pcapng
from dissector.evidence.command import command
from dissector.evidence.fixture import pytest_file
from dissector.evidence.transcript import transcript
from dissector.exporting import packets_of

STDOUT: Final = "-"
LARGEST: Final = 10**15
"""A row's number: more than any capture has."""
SUFFIXES: Final = {
    ".pcapng": ExportFormat.PCAPNG,
    ".txt": ExportFormat.TRANSCRIPT,
    ".hex": ExportFormat.TRANSCRIPT,
    ".json": ExportFormat.JSON,
    ".ndjson": ExportFormat.JSON,
    ".py": ExportFormat.PYTEST,
    ".sh": ExportFormat.COMMAND,
}


def export(
    files: Sequence[str],
    out: str,
    form: ExportFormat | None,
    chosen: str | None,
    filter: str | None,  # noqa: A002  # what it is
    ports: frozenset[int],
    *,
    show_secrets: bool,
) -> int:
    """Write; the exit code: 0, or 1 where no exchange was chosen. `chosen` is as `ranges_of` takes it, None for all; of
    these, the rows that fit the filter."""
    form = form or _format_of(out)
    ranges = None if chosen is None else ranges_of(chosen)
    fitting = wanted(filter)
    if form is ExportFormat.PCAPNG and STDIN in files:
        raise CaptureError("standard input: export reads a capture twice: save it to a file first")
    if any(_same(name, out) for name in files):
        raise CaptureError(f"{out}: is read from: choose another name to write to")
    with Capture(files, ports=ports, show_secrets=show_secrets) as capture:
        read_with_progress(capture)
        for problem in capture.problems:
            complain(problem.message)
        if not len(capture):
            complain(nothing_found(capture))
            return NEGATIVE
        rows: Sequence[int] = range(len(capture)) if ranges is None else _rows(ranges, len(capture))
        if not rows:
            complain(f"no row {chosen}: there are {len(capture):,} rows")
            return NEGATIVE
        if fitting is not None:
            rows = capture.matching(fitting, np.asarray(rows, np.int64)).tolist()
        if not rows and fitting is not None:
            complain(nothing_fits(fitting, len(capture)))
            return NEGATIVE
        if form is ExportFormat.PCAPNG and not any(capture.spans(number) for number in rows):
            complain(f"no packets carried row {chosen or '1-'}: only rows of packets can be a capture")
            return NEGATIVE
        _save(_pieces(form, capture, rows, chosen, filter), out)
    if out != STDOUT:
        complain(f"{out}: {len(rows):,} rows")
    return 0


def _format_of(out: str) -> ExportFormat:
    """What a file's name asks for."""
    form = SUFFIXES.get(Path(out).suffix.lower())
    if form is None:
        raise CaptureError(
            f"{out}: say with --format what to write, or choose a name that ends in {' '.join(SUFFIXES)}"
        )
    return form


def _pieces(
    form: ExportFormat,
    capture: Capture,
    rows: Sequence[int],
    chosen: str | None,
    filter: str | None,  # noqa: A002  # what it is
) -> Iterator[bytes]:
    """What the file holds."""
    if form is ExportFormat.PCAPNG:
        words = f"kdissect export: {len(rows):,} rows of {', '.join(capture.names)}"
        return pcapng(packets_of(capture, rows), words)
    if form is ExportFormat.JSON:
        return (json_line(capture.exchange(row)) for row in rows)
    texts: dict[ExportFormat, Callable[[], Iterable[str]]] = {
        ExportFormat.TRANSCRIPT: lambda: (f"{line}\n" for line in transcript(capture, rows)),
        ExportFormat.PYTEST: lambda: pytest_file(capture, rows),
        ExportFormat.COMMAND: lambda: [command(capture.names, chosen, filter) + "\n"],
    }
    return (piece.encode() for piece in texts[form]())


def ranges_of(text: str) -> list[range]:
    """``3,10-20,99-``: row numbers from 1. Raises `CaptureError` with the part that is none."""
    return [_range(part.strip()) for part in text.split(",")]


def _range(part: str) -> range:
    first, dash, last = part.partition("-")
    try:
        low, high = int(first), int(last) if last else LARGEST if dash else int(first)
    except ValueError:
        low, high = 0, 0
    if not 0 < low <= high:
        raise CaptureError(f"--rows: {part!r} is no row number, nor a range as 10-20")
    return range(low, high + 1)


def _rows(ranges: list[range], count: int) -> list[int]:
    """Rows from 0, in order, each once."""
    found = {number - 1 for part in ranges for number in range(part.start, min(part.stop, count + 1))}
    return sorted(found)


def _same(name: str, out: str) -> bool:
    try:
        return Path(name).samefile(out)
    except (OSError, ValueError):
        return False


def _save(pieces: Iterator[bytes], out: str) -> None:
    if out == STDOUT:
        sys.stdout.buffer.writelines(pieces)
        return
    try:
        with Path(out).open("wb") as file:
            file.writelines(pieces)
    except OSError as error:
        raise CaptureError(f"{out}: {(error.strerror or str(error)).lower()}") from None
