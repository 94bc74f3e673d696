"""`kdissect encode`: from the JSON lines of `show` back to bytes: a hex transcript on stdout, or a capture."""

import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Final

import orjson

from dissector.capture import CaptureError
from dissector.capture.file_opening import STDIN
from dissector.cli.encode_targets import ENCODED, EXCHANGE, CaptureTarget, TranscriptTarget, add_line
from dissector.cli.errors import NEGATIVE, print_error
from dissector.core.private_files import private
from dissector.core.text import os_reason
from dissector.protocol.wire import EncodeError

_HEAD: Final = 1 << 16
"""Bytes of a line that show whether it may be an object: a device may have no line's end."""
_LONGEST: Final = 1 << 30


def encode(file: str, out: str | None) -> int:
    """Encode a file; return the exit code: 0, or 1 if no line is an exchange. A bad line leaves `out` untouched."""
    name = "standard input" if file == STDIN else file
    target = TranscriptTarget(sys.stdout.buffer) if out is None else CaptureTarget()
    kinds: Counter[str] = Counter()
    for number, text in _lines(file, name):
        try:
            kinds[add_line(target, _object(text))] += 1
        except EncodeError as error:
            raise CaptureError(f"{name}: line {number}: {error}") from None
    if isinstance(target, CaptureTarget) and out is not None and kinds[EXCHANGE]:
        _save(target, out, name)
    _print_summary(name, target.incomplete, Counter({kind: n for kind, n in kinds.items() if kind not in ENCODED}))
    if not kinds[EXCHANGE]:
        print_error(f"{name}: no exchange")
        return NEGATIVE
    return 0


def _lines(file: str, name: str) -> Iterator[tuple[int, bytes]]:
    """Yield the lines that are not blank, numbered from 1."""
    try:
        with sys.stdin.buffer if file == STDIN else Path(file).open("rb") as stream:
            yield from ((number, line) for number, line in enumerate(_pieces(stream), 1) if line.strip())
    except OSError as error:
        raise CaptureError(f"{name}: {os_reason(error)}") from None
    except ValueError:
        raise CaptureError(f"{file!r}: not a file name") from None


def _pieces(stream: IO[bytes]) -> Iterator[bytes]:
    """Yield lines; of one that is too long, its beginning."""
    while line := stream.readline(_HEAD):
        if not line.endswith(b"\n") and line.lstrip().startswith(b"{"):
            line += stream.readline(_LONGEST)
        yield line


def _object(text: bytes) -> Mapping[str, object]:
    try:
        line = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise EncodeError(f"not JSON: {error}") from None
    if not isinstance(line, dict):
        raise EncodeError("not a JSON object")
    return line


def _save(target: CaptureTarget, out: str, name: str) -> None:
    try:
        with open(out, "wb", opener=private) as file:
            file.writelines(target.pcapng(f"made by kdissect encode from {name}"))
    except OSError as error:
        raise CaptureError(f"{out}: {os_reason(error)}") from None


def _print_summary(name: str, incomplete: int, skipped: Counter[str]) -> None:
    if skipped:
        words = ", ".join(f"{kind} {count:,}" for kind, count in sorted(skipped.items()))
        print_error(f"{name}: {skipped.total():,} lines skipped: {words}")
    if incomplete:
        print_error(f"{name}: {incomplete:,} messages are incomplete in the JSON, and in the output")
