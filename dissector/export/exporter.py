"""Chosen rows in any form to share, redacted or as they are: what is common to the command and to the screen.

Invariants:
  * what is redacted was made of a redacted copy: no form knows of anything else;
  * nothing is written here: the caller gets pieces, and learns before the first one what can't be done.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from dissector.analysis.sequence_diagram import render_mermaid, render_svg, sequence_diagram
from dissector.capture import CaptureError
from dissector.capture_session import Capture
from dissector.conversation import pcapng
from dissector.core.text import counted
from dissector.exchange.to_json import json_line
from dissector.export.command_line import show_command
from dissector.export.formats import ExportFormat
from dissector.export.packets import NO_COMMENTS, carrying_packets
from dissector.export.pytest_file import pytest_file
from dissector.export.redaction.frames import Redactor
from dissector.export.redaction.packets import redacted_packets
from dissector.export.transcript import transcript


class ExportRequest(NamedTuple):
    """What is wanted."""

    form: ExportFormat
    redact: bool = False
    chosen: str | None = None
    """The row numbers from 1, as ``3,10-20``, that a command has; None for all."""
    filter: str | None = None
    """Of these, the rows that fit it: a command has it too."""
    comments: Mapping[int, str] = NO_COMMENTS
    """What the user wrote on rows, from 0. It goes into a capture, but not into a redacted one: it may quote."""


class NoPacketsError(CaptureError):
    """No packet brought any of the rows."""


def check_request(names: Sequence[str], order: ExportRequest) -> None:
    """Raises `CaptureError` for what can't be done with files of these names."""
    if order.redact and order.form is ExportFormat.COMMAND:
        raise CaptureError("redacted: a command shows the file as it is: write a redacted capture, and share that")
    once = [name for name in names if not Path(name).is_file()]
    if once and (order.redact or order.form is ExportFormat.PCAPNG):
        name = "standard input" if once[0] == "-" else once[0]
        raise CaptureError(f"{name}: export reads a capture twice: save it to a file first")


def export_rows(
    capture: Capture, rows: Sequence[int], order: ExportRequest, told: Callable[[str], object]
) -> Iterator[bytes]:
    """What the file holds, of these rows, from 0 and ascending. The capture has been read to its end, and examined for
    the findings of JSON. `told` hears what did not go well and yet goes on. Raises `CaptureError`: `NoPacketsError`,
    or what `check_request` raises."""
    check_request(capture.names, order)
    if (order.redact or order.form is ExportFormat.PCAPNG) and not any(capture.index.spans(number) for number in rows):
        which = "any row" if order.chosen is None else f"row {order.chosen}"
        raise NoPacketsError(f"no packets carried {which}: only rows of packets can be a capture, or be redacted")
    return _redacted(capture, rows, order.form, told) if order.redact else _pieces(capture, rows, order)


def _pieces(capture: Capture, rows: Sequence[int], order: ExportRequest) -> Iterator[bytes]:
    if order.form is ExportFormat.PCAPNG:
        words = f"kdissect export: {counted(len(rows), 'row')} of {', '.join(capture.names)}"
        return pcapng(carrying_packets(capture, rows, order.comments), words)
    if order.form is ExportFormat.JSON:
        return (json_line(capture.exchange(row)) for row in rows)
    texts: dict[ExportFormat, Callable[[], Iterable[str]]] = {
        ExportFormat.TRANSCRIPT: lambda: (f"{line}\n" for line in transcript(capture, rows)),
        ExportFormat.MERMAID: lambda: [render_mermaid(sequence_diagram(capture, rows))],
        ExportFormat.SVG: lambda: [render_svg(sequence_diagram(capture, rows))],
        ExportFormat.PYTEST: lambda: pytest_file(capture, rows),
        ExportFormat.COMMAND: lambda: [show_command(capture.names, order.chosen, order.filter) + "\n"],
    }
    return (piece.encode() for piece in texts[order.form]())


def _redacted(
    capture: Capture, rows: Sequence[int], form: ExportFormat, told: Callable[[str], object]
) -> Iterator[bytes]:
    """The same, of a redacted capture: texts are made of a copy on the disk."""
    if form is ExportFormat.PCAPNG:
        yield from _redacted_capture(capture, rows, told)
        return
    carried = [row for row in range(len(capture)) if capture.index.spans(row)]
    with TemporaryDirectory() as folder:
        path = Path(folder) / "redacted.pcapng"
        with path.open("wb") as file:
            file.writelines(_redacted_capture(capture, carried, told))
        with Capture([str(path)], ports=capture.ports) as copy:
            deque(copy.read(), maxlen=0)
            if _known_by(copy, range(len(copy))) != _known_by(capture, carried):
                raise CaptureError("damaged: reads otherwise once it is redacted: redact a capture (pcapng), not text")
            number = {row: at for at, row in enumerate(carried)}
            yield from _pieces(copy, [number[row] for row in rows if row in number], ExportRequest(form))


def _redacted_capture(capture: Capture, rows: Sequence[int], told: Callable[[str], object]) -> Iterator[bytes]:
    redactor = Redactor()
    yield from pcapng(
        redacted_packets(capture, rows, redactor), f"kdissect export --redact: {counted(len(rows), 'row')}"
    )
    if redactor.lost:
        told(f"{redactor.lost:,} compressed sections did not go into their place once redacted: they are zeros")


def _known_by(capture: Capture, rows: Sequence[int]) -> list[tuple[object, ...]]:
    """What rows are known again by."""
    names = ("kind", "request.time_ns", "request.size", "response.size", "correlation_id")
    table = list(zip(*capture.columns(names, range(len(capture))), strict=True))
    return [table[row] for row in rows]
