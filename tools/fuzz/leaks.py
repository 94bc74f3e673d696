"""Whether a secret, or six bytes of it, is in any face of a capture: raw, as hex, as base64."""

import asyncio
import html
import re
from base64 import b64encode
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Final, cast

import numpy as np
import pyarrow as pa

from dissector.capture import CaptureError
from dissector.capture_session import Capture
from dissector.cli.formats import Format
from dissector.cli.render.lines import row_line
from dissector.cli.render.printing import RowRenderer
from dissector.cli.render.trees import tree_lines
from dissector.core.arrays import Int64, UInt8
from dissector.exchange.row_fields import ROW_FIELDS
from dissector.exchange.to_json import json_line
from dissector.export.exporter import export_rows
from dissector.export.formats import ExportFormat, ExportRequest
from dissector.export.transcript import transcript
from dissector.pipeline.origins import FileOrigins, Origin, Origins, Sources
from dissector.pipeline.partition_rows import RowBuilder, WriteOptions
from dissector.tables.row_batches import Cells, RowGroup
from tui.app import KDissectApp
from tui.screens.main_screen import MainScreen

LEAST: Final = 6
"""Bytes of a secret that are no chance."""
OF_BASE64: Final = 9
HASH_BITS: Final = 20
SCREEN: Final = (200, 60)
ROWS_ON_SCREEN: Final = 12
"""Rows whose fields and bytes the screen shows in turn."""
EXPORTS: Final = (ExportFormat.PYTEST, ExportFormat.MERMAID, ExportFormat.SVG, ExportFormat.COMMAND)
REDACTED: Final = (ExportFormat.PCAPNG, ExportFormat.JSON, ExportFormat.TRANSCRIPT)
Face = tuple[str, bytes]
_TAG: Final = re.compile(r"<[^>]+>")
_BREAK: Final = re.compile(rb"\"?\s+\"?")


def faces(capture: Capture) -> Iterator[Face]:
    """What the faces of a capture that was read show, by name."""
    for form in (Format.TEXT, Format.JSON):
        lines = b"".join(RowRenderer.of(form, None).lines(capture, range(len(capture))))
        yield f"lines of {form.value}", lines
    for number in range(len(capture)):
        exchange = capture.exchange(number)
        yield f"row {number + 1}", _encoded(row_line(exchange.row, capture.start_ns))
        yield f"fields {number + 1}", repr(exchange.row).encode("utf-8", "backslashreplace")
        yield f"JSON {number + 1}", json_line(exchange)
        yield f"tree {number + 1}", _encoded("\n".join(tree_lines(exchange, capture.start_ns)))
        for message in filter(None, (exchange.request, exchange.response)):
            yield f"bytes {number + 1}", message.data
            for source in message.sources:
                yield f"source {number + 1}", source.data
    words = _encoded("\n".join(transcript(capture, range(len(capture)))))
    yield "transcript", words
    yield "transcript", _without_breaks(words)


def rare_faces(capture: Capture) -> Iterator[Face]:
    """The same of faces that cost more: columns as for CSV, tables, exports, redacted ones too."""
    names = [name for name, field in ROW_FIELDS.items() if field.from_index]
    rows = range(len(capture))
    yield "columns", _encoded(repr(list(zip(names, capture.index.columns(names, rows), strict=True))))
    for options in (WriteOptions(), WriteOptions(frames=True)):
        for table, content in RowBuilder(
            capture, Origins(FileOrigins([Origin(0, "0" * 64, 0, 1)], []), Sources()), options
        ).rows():
            for cells in _rows(content):
                for name, value in cells.items():
                    yield f"table {table}.{name}", value if isinstance(value, bytes) else _encoded(repr(value))
    requests = [ExportRequest(each) for each in EXPORTS] + [ExportRequest(each, redact=True) for each in REDACTED]
    for request in requests:
        with suppress(CaptureError):  # no packet of it is left, or it can't be redacted
            content = b"".join(export_rows(capture, rows, request, lambda _: None))
            name = f"export {request.format.value}{' --redact' if request.redact else ''}"
            yield name, content
            yield name, _without_breaks(content)


def _rows(content: Cells | RowGroup | pa.Table) -> Sequence[Cells]:
    """The rows of a table, one by one."""
    if isinstance(content, pa.Table):
        return cast(Sequence[Cells], content.to_pylist())
    return content.rows if isinstance(content, RowGroup) else (content,)


def screen_faces(capture: Capture) -> Iterator[Face]:
    """What the screen shows of the first rows, without its spaces."""
    yield from asyncio.run(_screens(capture))


async def _screens(capture: Capture) -> list[Face]:
    found: list[Face] = []
    app = KDissectApp(MainScreen(capture))
    async with app.run_test(size=SCREEN) as pilot:
        for number in range(min(len(capture), ROWS_ON_SCREEN)):
            await pilot.pause()
            text = html.unescape(_TAG.sub("", app.export_screenshot(simplify=False)))
            found.append((f"screen {number + 1}", _without_breaks(_encoded(text.replace("\xa0", " ")))))
            await pilot.press("down")
    return found


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _without_breaks(content: bytes) -> bytes:
    """The same without spaces, and with literals of several lines in one: hex may be in groups."""
    return _BREAK.sub(b"", content)


def leak(capture: Capture, secrets: Sequence[bytes], *ways: Callable[[Capture], Iterator[Face]]) -> str:
    """The first face that shows a secret, with what it shows; empty if none does. `ways` are those of faces besides the
    usual ones."""
    if not secrets:
        return ""
    wanted = Pieces(secrets)
    for way in (faces, *ways):
        for name, shown in way(capture):
            found = wanted.first_in(shown)
            if found is not None:
                return f"{name} shows {found!r}"
    return ""


class Pieces:
    """What no face may show of some secrets. There are thousands, and faces of megabytes: a face is looked at once."""

    def __init__(self, secrets: Sequence[bytes]) -> None:
        self._by_head: dict[bytes, set[bytes]] = {}
        for piece in (piece for each in secrets for piece in pieces(each)):
            self._by_head.setdefault(piece[:LEAST], set()).add(piece)
        heads = np.frombuffer(b"".join(self._by_head), np.uint8).reshape(-1, LEAST)
        self._may_begin = np.zeros(1 << HASH_BITS, np.bool_)
        self._may_begin[_hashes(heads)] = True

    def first_in(self, shown: bytes) -> bytes | None:
        """The first piece that is there."""
        if len(shown) < LEAST:
            return None
        windows = np.lib.stride_tricks.sliding_window_view(np.frombuffer(shown, np.uint8), LEAST)
        for at in np.flatnonzero(self._may_begin[_hashes(windows)]).tolist():
            for piece in self._by_head.get(shown[at : at + LEAST], ()):
                if shown.startswith(piece, at):
                    return piece
        return None


def _hashes(heads: UInt8) -> Int64:
    """A number of `HASH_BITS` for each row of bytes."""
    found = np.zeros(len(heads), np.int64)
    for column in range(heads.shape[1]):
        found = (found * 31 + heads[:, column]) & ((1 << HASH_BITS) - 1)
    return found


def pieces(secret: bytes) -> Iterator[bytes]:
    """What no face may show of a secret."""
    for at in range(len(secret) - LEAST + 1):
        piece = secret[at : at + LEAST]
        yield piece
        yield piece.hex().encode()
        if at + OF_BASE64 <= len(secret):
            yield b64encode(secret[at : at + OF_BASE64])
