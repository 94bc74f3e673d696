"""Whether a secret, or six bytes of it, is in any face of a capture: raw, as hex, as base64."""

from base64 import b64encode
from collections.abc import Iterator, Sequence
from typing import Final

from dissector.capture_session import Capture
from dissector.cli.render.rows import row_line
from dissector.cli.render.trees import tree_lines
from dissector.exchange.to_json import json_line
from dissector.export.transcript import transcript

LEAST: Final = 6
"""Bytes of a secret that are no chance."""
OF_BASE64: Final = 9


def faces(capture: Capture) -> Iterator[tuple[str, bytes]]:
    """What the faces of a capture that was read show, by name."""
    for number in range(len(capture)):
        exchange = capture.exchange(number)
        yield f"row {number + 1}", row_line(exchange.row, capture.start_ns).encode("utf-8", "surrogateescape")
        yield f"fields {number + 1}", repr(exchange.row).encode("utf-8", "backslashreplace")
        yield f"JSON {number + 1}", json_line(exchange)
        yield f"tree {number + 1}", "\n".join(tree_lines(exchange, capture.start_ns)).encode("utf-8", "surrogateescape")
        for message in filter(None, (exchange.request, exchange.response)):
            yield f"bytes {number + 1}", message.data
            for source in message.sources:
                yield f"source {number + 1}", source.data
    yield "transcript", "\n".join(transcript(capture, range(len(capture)))).encode("utf-8", "surrogateescape")


def leak(capture: Capture, secrets: Sequence[bytes]) -> str:
    """The first face that shows a secret, with what it shows; empty if none does."""
    if not secrets:
        return ""
    pieces = list(dict.fromkeys(piece for each in secrets for piece in _pieces(each)))
    for name, shown in faces(capture):
        found = next((piece for piece in pieces if piece in shown), None)
        if found is not None:
            return f"{name} shows {found!r}"
    return ""


def _pieces(secret: bytes) -> Iterator[bytes]:
    for at in range(len(secret) - LEAST + 1):
        piece = secret[at : at + LEAST]
        yield piece
        yield piece.hex().encode()
        if at + OF_BASE64 <= len(secret):
            yield b64encode(secret[at : at + OF_BASE64])
