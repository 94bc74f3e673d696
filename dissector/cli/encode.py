"""`kdissect encode`: from the JSON lines of `show` back to bytes: a hex transcript on stdout, line by line, or the
conversations of a capture."""

import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Final, NamedTuple

import orjson

from dissector.capture import CaptureError
from dissector.capture.errors import MissingFileError
from dissector.capture.file_opening import STDIN
from dissector.cli.errors import NEGATIVE, print_error
from dissector.cli.saved_files import save
from dissector.conversation import Conversation, End, Turn, packets, pcapng
from dissector.conversation.pcapng import LATEST
from dissector.conversation.transcript import frame_lines
from dissector.conversation.turns import MADE_UP_SERVER, made_up_client
from dissector.core.text import clean, counted, os_reason
from dissector.exchange.from_json import REQUEST, RESPONSE, EncodedFrame, frames_of_exchange, integer, token
from dissector.exchange.row_findings import MAY_WAIT, UNANSWERED
from dissector.exchange.silence_causes import OF_OPEN_CONNECTIONS
from dissector.protocol.wire import EncodeError

Line = Mapping[str, object]
_SIDES: Final = {REQUEST: True, RESPONSE: False}
EXCHANGE: Final = "exchange"
SASL: Final = "sasl"
GAP: Final = "gap"
ENCODED: Final = (EXCHANGE, SASL, GAP)
"""The kinds of lines that are encoded."""
MOST_CONNECTIONS: Final = 1 << 32
LARGEST_GAP: Final = 1 << 30
"""Most bytes of a gap: with more, TCP's sequence numbers can't distinguish it from a step back."""
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
        save(target.pcapng(f"made by kdissect encode from {name}"), out)
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
    except FileNotFoundError:
        raise MissingFileError(file) from None
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
        raise EncodeError(_json_trouble(text, error)) from None
    if not isinstance(line, dict):
        raise EncodeError("not a JSON object")
    return line


def _json_trouble(text: bytes, error: orjson.JSONDecodeError) -> str:
    """Return why a line is no JSON, and what to do if it was something else that was given."""
    if not text.lstrip().startswith((b"{", b"[", b'"')) or b"\0" in text:
        return "not JSON: encode takes what kdissect show --format json prints"
    hint = "; JSON has its names in double quotes: in a shell, the whole line stands in single ones"
    return f"not JSON: column {error.colno}: {error.msg}" + hint * ("key" in error.msg)


def _print_summary(name: str, incomplete: int, skipped: Counter[str]) -> None:
    if skipped:
        words = ", ".join(f"{kind} {count:,}" for kind, count in sorted(skipped.items()))
        print_error(f"{name}: {counted(skipped.total(), 'line')} skipped: {words}")
    if incomplete:
        print_error(f"{name}: {counted(incomplete, 'message')} incomplete in the JSON and in the output")


class ConnectionKey(NamedTuple):
    """Identifies a connection."""

    number: int
    client: End
    server: End


class TranscriptTarget:
    """A hex transcript in which each response follows its request."""

    def __init__(self, out: IO[bytes]) -> None:
        self._out = out
        self.incomplete = 0
        """Messages that are incomplete in the JSON."""

    def exchange(self, line: Line) -> None:
        """Write the frames below a comment that names them."""
        messages = frames_of_exchange(line)
        words = [f"{name} {line[name]}" for name in ("number", "connection", "api", "api_version") if name in line]
        lines = ["# " + clean(", ".join(words))]
        for message, from_client in zip(messages, (True, False), strict=True):
            if message is not None:
                lines += frame_lines(message.data, from_client=from_client, connection=_connection(line))
                lines += [f"# {counted(message.missing, 'byte')} missing"] if message.missing else []
                self.incomplete += bool(message.missing)
        self._write(lines)

    def token(self, line: Line) -> None:
        """Write the token as a frame."""
        frame = frame_lines(token(line).data, from_client=_SIDES[_direction(line)], connection=_connection(line))
        self._write(["# sasl", *frame])

    def gap(self, line: Line) -> None:
        """Write a comment."""
        self._write([f"# gap: {counted(integer(line, 'size', 1, LARGEST_GAP), 'byte')} of a {_direction(line)}"])

    def _write(self, lines: list[str]) -> None:
        self._out.write("".join(f"{line}\n" for line in lines).encode())


class CaptureTarget:
    """The conversations of a capture, one for each connection."""

    def __init__(self) -> None:
        self._turns: dict[ConnectionKey, list[Turn]] = {}
        self._open: set[ConnectionKey] = set()
        """Connections that were open at the end of the capture, according to a line."""
        self.incomplete = 0
        """Messages that are incomplete in the JSON."""

    def exchange(self, line: Line) -> None:
        """Add a turn for each message."""
        key = _key(line)
        for side, message in zip(_SIDES, frames_of_exchange(line), strict=True):
            if message is not None:
                self._add(key, side, message, _time(line[side], side))
                self.incomplete += bool(message.missing)
        if _is_open(line):
            self._open.add(key)

    def token(self, line: Line) -> None:
        """Add a turn."""
        self._add(_key(line), _direction(line), token(line), _time(line))

    def gap(self, line: Line) -> None:
        """Add a turn without its bytes."""
        missing = EncodedFrame(b"", integer(line, "size", 1, LARGEST_GAP))
        self._add(_key(line), _direction(line), missing, _time(line))

    def pcapng(self, comment: str) -> Iterator[bytes]:
        """Return the capture's bytes."""
        conversations = (
            Conversation(key.client, key.server, turns, closed=key not in self._open)
            for key, turns in self._turns.items()
        )
        return pcapng(packets(conversations), comment)

    def _add(self, key: ConnectionKey, side: str, message: EncodedFrame, time_ns: int | None) -> None:
        """Add a turn; without a time, at that of the turn before it."""
        turns = self._turns.setdefault(key, [])
        if time_ns is None:
            time_ns = turns[-1].time_ns if turns else 0
        turns.append(Turn(time_ns, _SIDES[side], message.data, message.missing))


def add_line(target: TranscriptTarget | CaptureTarget, line: Line) -> str:
    """Write a line if its kind can be encoded; return the kind. Raises `EncodeError`."""
    kind = str(line.get("kind", EXCHANGE))
    writers = {EXCHANGE: target.exchange, SASL: target.token, GAP: target.gap}
    if kind in writers:
        writers[kind](line)
    return kind


def _time(values: object, side: str | None = None) -> int | None:
    """Return the time of a line, or of the message on one `side` of it."""
    if not isinstance(values, Mapping) or "time_ns" not in values:
        return None
    try:
        return integer(values, "time_ns", 0, LATEST)
    except EncodeError as error:
        raise error.under(side) if side else error from None


def _key(line: Line) -> ConnectionKey:
    number = _connection(line)
    client, server = _end(line, "client", made_up_client(number - 1)), _end(line, "server", MADE_UP_SERVER)
    if (":" in client.host) != (":" in server.host):
        raise EncodeError(f"{server.host} and the client's {client.host} have different IP versions", "server")
    return ConnectionKey(number, client, server)


def _connection(line: Line) -> int:
    return integer(line, "connection", 0, MOST_CONNECTIONS) if "connection" in line else 1


def _end(line: Line, name: str, otherwise: End) -> End:
    if name not in line:
        return otherwise
    try:
        return End.parse(str(line[name]))
    except ValueError as error:
        raise EncodeError(str(error), name) from None


def _direction(line: Line) -> str:
    direction = line.get("direction")
    if direction not in (REQUEST, RESPONSE):
        raise EncodeError(f"{direction!r:.40} is neither {REQUEST} nor {RESPONSE}", "direction")
    return str(direction)


def _is_open(line: Line) -> bool:
    """Return whether a finding says that a response was still pending when the capture ended."""
    of_line = line.get("findings")
    findings = [each for each in of_line if isinstance(each, dict)] if isinstance(of_line, list) else []
    messages = (UNANSWERED.message, MAY_WAIT.message)
    return any(each.get("message") in messages or each.get("code") in OF_OPEN_CONNECTIONS for each in findings)
