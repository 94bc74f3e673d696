"""`kdissect export`: chosen exchanges as a file to share, of the formats that `evidence` and `exporting` make."""

import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import numpy as np

from dissector.analysis.ladder import ladder_of, mermaid, svg
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
from dissector.redaction.frames import Redactor
from dissector.redaction.packets import redacted_packets

STDOUT: Final = "-"
LARGEST: Final = 10**15
"""A row's number: more than any capture has."""
SUFFIXES: Final = {
    ".pcapng": ExportFormat.PCAPNG,
    ".txt": ExportFormat.TRANSCRIPT,
    ".hex": ExportFormat.TRANSCRIPT,
    ".json": ExportFormat.JSON,
    ".ndjson": ExportFormat.JSON,
    ".mmd": ExportFormat.MERMAID,
    ".svg": ExportFormat.SVG,
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
    redact: bool,
    show_secrets: bool,
) -> int:
    """Write; the exit code: 0, or 1 where no exchange was chosen. `chosen` is as `ranges_of` takes it, None for all; of
    these, the rows that fit the filter."""
    form = form or _format_of(out)
    ranges = None if chosen is None else ranges_of(chosen)
    fitting = wanted(filter)
    _check(files, out, form, redact=redact)
    with Capture(files, ports=ports, show_secrets=show_secrets) as capture:
        asks_findings = fitting is not None and fitting.asks_findings
        read_with_progress(capture, examine=form is ExportFormat.JSON or asks_findings)
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
        if (redact or form is ExportFormat.PCAPNG) and not any(capture.spans(number) for number in rows):
            complain(f"no packets carried row {chosen or '1-'}: only rows of packets can be a capture, or be redacted")
            return NEGATIVE
        _save(_redacted(form, capture, rows, ports) if redact else _pieces(form, capture, rows, chosen, filter), out)
    if out != STDOUT:
        complain(f"{out}: {len(rows):,} rows")
    return 0


def _check(files: Sequence[str], out: str, form: ExportFormat, *, redact: bool) -> None:
    """Raises `CaptureError` for what can't be done."""
    if (redact or form is ExportFormat.PCAPNG) and STDIN in files:
        raise CaptureError("standard input: export reads a capture twice: save it to a file first")
    if redact and form is ExportFormat.COMMAND:
        raise CaptureError("--redact: a command shows the file as it is: write a redacted capture, and share that")
    if any(_same(name, out) for name in files):
        raise CaptureError(f"{out}: is read from: choose another name to write to")


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
        ExportFormat.MERMAID: lambda: [mermaid(ladder_of(capture, rows))],
        ExportFormat.SVG: lambda: [svg(ladder_of(capture, rows))],
        ExportFormat.PYTEST: lambda: pytest_file(capture, rows),
        ExportFormat.COMMAND: lambda: [command(capture.names, chosen, filter) + "\n"],
    }
    return (piece.encode() for piece in texts[form]())


def _redacted(form: ExportFormat, capture: Capture, rows: Sequence[int], ports: frozenset[int]) -> Iterator[bytes]:
    """The same, of a redacted capture: texts are made of a copy on the disk, so that they know of nothing else."""
    if form is ExportFormat.PCAPNG:
        yield from _redacted_capture(capture, rows)
        return
    carried = [row for row in range(len(capture)) if capture.spans(row)]
    with TemporaryDirectory() as folder:
        path = Path(folder) / "redacted.pcapng"
        with path.open("wb") as file:
            file.writelines(_redacted_capture(capture, carried))
        with Capture([str(path)], ports=ports) as copy:
            deque(copy.read(), maxlen=0)
            if _told(copy, range(len(copy))) != _told(capture, carried):
                raise CaptureError(
                    "damaged: reads otherwise once it is redacted: redact a capture (-w x.pcapng), not text"
                )
            number = {row: at for at, row in enumerate(carried)}
            yield from _pieces(form, copy, [number[row] for row in rows if row in number], None, None)


def _redacted_capture(capture: Capture, rows: Sequence[int]) -> Iterator[bytes]:
    redactor = Redactor()
    yield from pcapng(redacted_packets(capture, rows, redactor), f"kdissect export --redact: {len(rows):,} rows")
    if redactor.lost:
        complain(f"{redactor.lost:,} compressed sections did not go into their place once redacted: they are zeros")


def _told(capture: Capture, rows: Sequence[int]) -> list[tuple[object, ...]]:
    """By what rows are known again."""
    names = ("kind", "request.time_ns", "request.size", "response.size", "correlation_id")
    table = list(zip(*capture.columns(names, 0, len(capture)), strict=True))
    return [table[row] for row in rows]


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
