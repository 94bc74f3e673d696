"""The formats of exports: an entry for each, from the name in `kdissect export -f` to the function that produces it.

A new format is an entry of `ExportFormat` and a module that produces it. The command's choices, the file suffixes and
the screen's menu derive from the entries. Producers import their modules when they run, as commands that export nothing
import this one too.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from dissector.capture_session import Capture

Producer = Callable[["Capture", Sequence[int], "ExportRequest"], Iterator[bytes]]
"""Takes a capture that has been read, rows of it (from 0, ascending) and the request; yields the pieces of the file."""


def _pcapng(capture: "Capture", rows: Sequence[int], request: "ExportRequest") -> Iterator[bytes]:
    from dissector.conversation import pcapng
    from dissector.core.text import counted
    from dissector.export.packets import carrying_packets, made_packets, process_notes

    comment = f"kdissect export: {counted(len(rows), 'row')} of {', '.join(capture.names)}"
    notes = [note.comment() for note in process_notes(capture, rows)]
    if request.is_decrypted:
        made = made_packets(capture, rows, lambda _, message: message.data[: message.whole])
        return pcapng(made, comment, notes=notes)
    connections = capture.frames.decrypted_connections(rows) if request.has_secrets else set()
    packets = carrying_packets(capture, rows, request.comments)
    return pcapng(packets, comment, capture.pipeline.tls.key_log_of(connections), notes=notes)


def _transcript(capture: "Capture", rows: Sequence[int], request: "ExportRequest") -> Iterator[bytes]:
    from dissector.export.transcript import transcript

    return (f"{line}\n".encode() for line in transcript(capture, rows))


def _json(capture: "Capture", rows: Sequence[int], request: "ExportRequest") -> Iterator[bytes]:
    import numpy as np

    from dissector.exchange.to_json import json_line

    return map(json_line, capture.at(np.asarray(rows, np.int64)))


def _csv(capture: "Capture", rows: Sequence[int], request: "ExportRequest") -> Iterator[bytes]:
    import numpy as np

    from dissector.exchange.row_fields import ROW_FIELDS
    from dissector.export.table_cells import TABLE, as_csv_without_formulas

    yield as_csv_without_formulas([[name] for name in TABLE])
    for exchange in capture.at(np.asarray(rows, np.int64)):
        yield as_csv_without_formulas([[ROW_FIELDS[name].from_exchange(exchange)] for name in TABLE])


def _mermaid(capture: "Capture", rows: Sequence[int], request: "ExportRequest") -> Iterator[bytes]:
    from dissector.analysis.sequence_diagram import render_mermaid, sequence_diagram

    yield render_mermaid(sequence_diagram(capture, rows)).encode()


def _svg(capture: "Capture", rows: Sequence[int], request: "ExportRequest") -> Iterator[bytes]:
    from dissector.analysis.sequence_diagram import render_svg, sequence_diagram

    yield render_svg(sequence_diagram(capture, rows)).encode()


def _pytest(capture: "Capture", rows: Sequence[int], request: "ExportRequest") -> Iterator[bytes]:
    from dissector.export.pytest_file import pytest_file

    return (piece.encode() for piece in pytest_file(capture, rows))


def _command(capture: "Capture", rows: Sequence[int], request: "ExportRequest") -> Iterator[bytes]:
    from dissector.export.command_line import show_command

    yield f"{show_command(capture.names, request.chosen, request.filter, map(str, capture.decode_as))}\n".encode()


@dataclass(frozen=True, slots=True)
class FormatEntry:
    """Everything about one format."""

    name: str
    """The name in `kdissect export -f`."""
    label: str
    """The name in the screen's menu."""
    description: str
    suffixes: tuple[str, ...]
    """Suffixes of its files, with the dot; the first one is the default."""
    produce: Producer
    needs_packets: bool = False
    """Whether it copies packets, so that the files of the capture are read again."""
    is_capture: bool = False
    """Whether its files can be opened again."""
    needs_findings: bool = False
    """Whether the capture must have been examined for findings."""
    can_redact: bool = True


class ExportFormat(StrEnum):
    """A format of exports; its value is the entry's name."""

    PCAPNG = FormatEntry(
        "pcapng",
        "Capture",
        "pcapng: the original packets, with comments",
        (".pcapng",),
        _pcapng,
        needs_packets=True,
        is_capture=True,
    )
    TRANSCRIPT = FormatEntry(
        "transcript",
        "Transcript",
        "the bytes in hex, to read or to paste",
        (".txt", ".hex"),
        _transcript,
        is_capture=True,
    )
    JSON = FormatEntry("json", "JSON", "one object per line, as show prints", (".json", ".ndjson"), _json,
                       needs_findings=True)  # fmt: skip
    CSV = FormatEntry("csv", "CSV", "a table for spreadsheets, a line for each row", (".csv",), _csv,
                      needs_findings=True)  # fmt: skip
    MERMAID = FormatEntry("mermaid", "Mermaid", "a sequence diagram as text", (".mmd",), _mermaid)
    SVG = FormatEntry("svg", "SVG", "a sequence diagram as a picture", (".svg",), _svg)
    PYTEST = FormatEntry("pytest", "pytest", "a test that replays the bytes", (".py",), _pytest)
    COMMAND = FormatEntry(
        "command", "Command", "a command that shows the same exchanges", (".sh",), _command, can_redact=False
    )

    entry: FormatEntry

    def __new__(cls, entry: FormatEntry) -> "ExportFormat":
        member = str.__new__(cls, entry.name)
        member._value_ = entry.name
        member.entry = entry
        return member


SUFFIXES: Final = MappingProxyType({suffix: each for each in ExportFormat for suffix in each.entry.suffixes})
"""The format of a file by its suffix."""


class ExportRequest(NamedTuple):
    """What to export, and how."""

    format: ExportFormat
    redact: bool = False
    chosen: str | None = None
    """The row numbers from 1, as ``3,10-20``, for the command that shows them; None for all."""
    filter: str | None = None
    """The filter of the rows, for the command that shows them."""
    comments: Mapping[int, str] = MappingProxyType({})
    """The user's comments on rows, from 0. A redacted capture does not get them: they may quote contents."""
    has_secrets: bool = True
    """Whether a capture gets the TLS secrets of its connections."""
    is_decrypted: bool = False
    """Whether a capture gets packets made of the frames, in place of those that carried them."""
