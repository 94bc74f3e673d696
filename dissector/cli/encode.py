"""`kdissect encode`: the JSON lines of `show` back to bytes, as a hex transcript on stdout or as a capture."""

import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO

import orjson

from dissector.capture import CaptureError
from dissector.capture.files import STDIN
from dissector.cli.encode_targets import EXCHANGE, TAKEN, CaptureTarget, TranscriptTarget, add_line
from dissector.cli.exit_codes import NEGATIVE, print_error
from dissector.protocol.wire.writing import EncodeError


def encode(file: str, out: str | None) -> int:
    """Write; the exit code: 0, or 1 if no line is an exchange. Nothing is left in `out` where a line is bad."""
    name = "standard input" if file == STDIN else file
    sink = TranscriptTarget(sys.stdout.buffer) if out is None else CaptureTarget()
    kinds: Counter[str] = Counter()
    for number, text in _lines(file, name):
        try:
            kinds[add_line(sink, _object(text))] += 1
        except EncodeError as error:
            raise CaptureError(f"{name}: line {number}: {error}") from None
    if isinstance(sink, CaptureTarget) and out is not None and kinds[EXCHANGE]:
        _save(sink, out, name)
    _tell(name, sink.in_part, Counter({kind: n for kind, n in kinds.items() if kind not in TAKEN}))
    if not kinds[EXCHANGE]:
        print_error(f"{name}: no exchange")
        return NEGATIVE
    return 0


def _lines(file: str, name: str) -> Iterator[tuple[int, bytes]]:
    """Lines with something on them, numbered from 1."""
    try:
        stream: IO[bytes] = sys.stdin.buffer if file == STDIN else Path(file).open("rb")  # noqa: SIM115  # closed where it is read
        with stream:
            yield from ((number, line) for number, line in enumerate(stream, 1) if line.strip())
    except OSError as error:
        raise CaptureError(f"{name}: {(error.strerror or str(error)).lower()}") from None
    except ValueError:
        raise CaptureError(f"{file!r}: not a file name") from None


def _object(text: bytes) -> Mapping[str, object]:
    try:
        line = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise EncodeError(f"not JSON: {error}") from None
    if not isinstance(line, dict):
        raise EncodeError("not a JSON object")
    return line


def _save(made: CaptureTarget, out: str, name: str) -> None:
    try:
        with Path(out).open("wb") as file:
            file.writelines(made.pcapng(f"made by kdissect encode from {name}"))
    except OSError as error:
        raise CaptureError(f"{out}: {(error.strerror or str(error)).lower()}") from None


def _tell(name: str, in_part: int, left_out: Counter[str]) -> None:
    if left_out:
        words = ", ".join(f"{kind} {count:,}" for kind, count in sorted(left_out.items()))
        print_error(f"{name}: {left_out.total():,} lines skipped: {words}")
    if in_part:
        print_error(f"{name}: {in_part:,} messages are incomplete in the JSON, and in the output")
