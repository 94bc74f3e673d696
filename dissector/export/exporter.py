"""Exports rows in any format, redacted or as they are, for the command and for the screen.

Invariants:
  * a redacted export is made from a redacted copy of the capture: no format redacts by itself;
  * nothing is written here: the caller gets pieces, or an error before the first piece if the export is impossible.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from heapq import merge
from itertools import compress
from operator import not_
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import numpy as np

from dissector.capture import CaptureError
from dissector.capture_session import Capture
from dissector.conversation import pcapng
from dissector.core.text import counted
from dissector.export.formats import ExportFormat, ExportRequest
from dissector.export.packets import made_packets
from dissector.export.redaction.frames import Redactor
from dissector.export.redaction.packets import redacted_packets
from dissector.export.redaction.rows import RedactedFrames
from dissector.index.exchange_table import RowKind
from dissector.protocol.schema.api_keys import ApiKey

LOGIN: Final = (ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE)


class NoPacketsError(CaptureError):
    """No packet carried any of the rows."""


def check_request(names: Sequence[str], request: ExportRequest) -> None:
    """Raise `CaptureError` for a request that is impossible with files of these names."""
    entry = request.format.entry
    if request.is_decrypted and not entry.needs_packets:
        raise CaptureError(f"--decrypted is for captures: a {entry.name} always has the decrypted data")
    if request.redact and not entry.can_redact:
        raise CaptureError(f"a {entry.name} can't be redacted: it names the original file; share a redacted capture")
    read_once = [name for name in names if not Path(name).is_file()]
    if read_once and (request.redact or entry.needs_packets):
        name = "standard input" if read_once[0] == "-" else read_once[0]
        raise CaptureError(f"{name}: export reads a capture twice: save it to a file first")


def export_rows(
    capture: Capture, rows: Sequence[int], request: ExportRequest, warn: Callable[[str], object]
) -> Iterator[bytes]:
    """Return the pieces of the exported file for rows, from 0 and ascending.

    The capture has been read to its end, and examined if the format needs findings. `warn` is called with problems that
    do not stop the export. Raises `CaptureError`: `NoPacketsError`, or an error of `check_request`.
    """
    check_request(capture.names, request)
    needs_packets = request.redact or request.format.entry.needs_packets
    if needs_packets and not any(capture.frames.spans(number) for number in rows):
        which = "any row" if request.chosen is None else f"row {request.chosen}"
        raise NoPacketsError(f"no packets carried {which}: only rows with packets can be a capture or redacted")
    if request.redact:
        return _redacted(capture, rows, request.format, warn)
    if request.format.entry.needs_packets and _shows_login(capture, rows, request):
        warn("these packets hold a login as it was sent: redact them (--redact) before you share them")
    if request.format.entry.needs_packets and request.has_secrets and not request.is_decrypted:
        connections = capture.frames.decrypted_connections(rows)
        if connections:
            words = f"the file has the secrets of {counted(len(connections), 'TLS connection')}"
            warn(f"{words}: anyone who has it can decrypt them; --no-secrets leaves them out")
    return request.format.entry.produce(capture, rows, request)


def _shows_login(capture: Capture, rows: Sequence[int], request: ExportRequest) -> bool:
    """Whether the packets of rows have a login that whoever gets the file can read."""
    if request.is_decrypted and not capture.shows_secrets:  # packets are made of frames, and those are masked
        return False
    numbers = np.asarray(rows, np.int64)
    columns = capture.index.numbers(numbers)
    logins = numbers[(columns.kind == RowKind.SASL) | np.isin(columns.api_key, LOGIN)].tolist()
    if request.has_secrets or request.is_decrypted:
        return bool(logins)
    return any(not capture.frames.decrypted_connections([row]) for row in logins)


def _redacted(
    capture: Capture, rows: Sequence[int], export_format: ExportFormat, warn: Callable[[str], object]
) -> Iterator[bytes]:
    """Yield the pieces of a redacted export. Other formats than captures are made from a redacted copy on disk."""
    redactor = Redactor()
    if export_format.entry.needs_packets:
        yield from _redacted_capture(capture, rows, redactor, warn)
        return
    carried = [row for row in range(len(capture)) if capture.frames.spans(row)]
    with TemporaryDirectory() as folder:
        path = Path(folder) / "redacted.pcapng"
        with path.open("wb") as file:
            file.writelines(_redacted_capture(capture, carried, redactor, warn))
        decode_as = [choice.with_addresses(redactor.addresses.of) for choice in capture.decode_as]
        with Capture([str(path)], decode_as=decode_as) as copy:
            deque(copy.read(), maxlen=0)
            if _identities(copy, range(len(copy))) != _identities(capture, carried):
                raise CaptureError(
                    "damaged: reads differently once redacted: write a redacted capture (pcapng) instead"
                )
            copy_rows = {row: copy_row for copy_row, row in enumerate(carried)}
            copied = [copy_rows[row] for row in rows if row in copy_rows]
            yield from export_format.entry.produce(copy, copied, ExportRequest(export_format))


def _redacted_capture(
    capture: Capture, rows: Sequence[int], redactor: Redactor, warn: Callable[[str], object]
) -> Iterator[bytes]:
    frames = RedactedFrames(capture, redactor)
    frames.learn(rows)
    encrypted = capture.frames.decrypted_connections(rows)
    is_encrypted = [
        bool(encrypted) and any(span.direction >> 1 in encrypted for span in capture.frames.spans(row)) for row in rows
    ]
    plain = redacted_packets(capture, compress(rows, map(not_, is_encrypted)), frames, redactor.addresses)
    made = made_packets(capture, compress(rows, is_encrypted), frames.content_of, redactor.addresses.of)
    both = merge(plain, made, key=lambda packet: packet.time_ns) if encrypted else plain
    yield from pcapng(both, f"kdissect export --redact: {counted(len(rows), 'row')}")
    if redactor.lost:
        warn(f"{redactor.lost:,} compressed sections did not fit in their place once redacted and are zeros")


def _identities(capture: Capture, rows: Sequence[int]) -> list[tuple[object, ...]]:
    """Return fields that identify rows, also in a copy."""
    names = ("kind", "request.time_ns", "request.size", "response.size", "correlation_id")
    table = list(zip(*capture.index.columns(names, range(len(capture))), strict=True))
    return [table[row] for row in rows]
