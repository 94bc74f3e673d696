"""Text as a capture: a hex transcript, or bytes that somebody pasted. Packets in it are read as they are; other bytes
become conversations with made-up addresses and times."""

import mmap
from typing import Final

from dissector.capture.errors import MAX_FINDINGS, CaptureError
from dissector.conversation import Conversation, Turn, packets, pcapng
from dissector.conversation.transcript import TranscriptError, is_transcript, turns_of
from dissector.conversation.turns import MADE_UP_SERVER, made_up_client
from dissector.core.arrays import UInt8
from dissector.core.finding import Finding, Severity
from dissector.core.limits import Limits
from dissector.core.text import counted
from dissector.pasted.plain_text import encoding_of
from dissector.pasted.reading import PastedText, may_be_raw, read_bytes

_HEAD: Final = 1 << 16
"""Bytes at the beginning in which a transcript, or a text, must be recognizable as one."""
_SEARCHED: Final = 1 << 20
"""Bytes at the beginning of a stream in which bytes must be found: it may never end."""

Converted = tuple[bytes, list[Finding]]
"""A pcapng file, and findings about the text."""


def pcapng_of(name: str, data: mmap.mmap, response_to: tuple[int, int] | None, limits: Limits) -> Converted | None:
    """Return a text as a capture; None if it has no bytes of Kafka's. Raises `CaptureError` with one plain line."""
    head, size = data[:_HEAD], len(data)
    error: TranscriptError | None = None
    if is_transcript(head):
        _check(name, size, limits.hex_text_bytes)
        try:
            return _of_transcript(name, data[:])
        except TranscriptError as caught:
            if not caught.is_unmarked:
                raise CaptureError(f"{name}: {caught}") from None
            error = caught  # perhaps it is mail that quotes bytes
    if size <= limits.pasted_bytes or begins_text(data[:_SEARCHED], response_to):
        _check(name, size, limits.pasted_bytes)
        found = read_bytes(data[:], response_to)
        if found is not None:
            return _of_pasted(name, found)
    if error is not None:
        raise CaptureError(f"{name}: {error}")
    return None


def begins_text(data: UInt8 | bytes, response_to: tuple[int, int] | None) -> bool | None:
    """Return whether a stream that begins so, and goes on, may be a text with bytes; None if more of it must come."""
    head = bytes(data[:_SEARCHED])
    if encoding_of(head[:_HEAD]) is None:
        return may_be_raw(head) and (None if len(head) < _SEARCHED else True)
    if is_transcript(head[:_HEAD]):
        return True
    if len(head) < _SEARCHED:
        return None
    return read_bytes(head[: head.rfind(b"\n") + 1] or head, response_to) is not None


def is_text(data: UInt8) -> bool:
    """Return whether a file begins as a text does, in some encoding."""
    return encoding_of(data[:_HEAD].tobytes()) is not None


def check_size(name: str, data: UInt8, limits: Limits) -> None:
    """Raise `CaptureError` if a text is larger than it may be."""
    is_marked = is_transcript(data[:_HEAD].tobytes())
    _check(name, len(data), limits.hex_text_bytes if is_marked else limits.pasted_bytes)


def _check(name: str, size: int, most: int) -> None:
    if size > most:
        raise CaptureError(f"{name}: more than {most:,} bytes of text: split it, or save packets as pcapng")


def _of_transcript(name: str, data: bytes) -> Converted:
    turns, problems = turns_of(data)
    words = f"{name}: hex transcript, not a capture: addresses and times are made up"
    return _of_turns(name, turns, words, problems)


def _of_pasted(name: str, found: PastedText) -> Converted:
    made = found.arrangement
    where = f" from line {found.first_line} on" if found.first_line > 1 else ""
    words = f"{name}: {made.form}{where}, not a capture: "
    if not made.packets:
        words += "; ".join(["addresses and times are made up", *made.notes])
        return _of_turns(name, made.turns, words, found.problems())
    words += "; ".join([f"{counted(len(made.packets), 'packet')} read from it", *made.notes])
    findings = [Finding("synthetic-metadata", Severity.NOTE, words), *_problems(name, found.problems())]
    return b"".join(pcapng(made.packets, words)), findings


def _of_turns(name: str, turns: dict[int, list[Turn]], words: str, problems: list[str]) -> Converted:
    conversations = [
        Conversation(made_up_client(number), MADE_UP_SERVER, each, closed=False)
        for number, each in enumerate(turns.values())
    ]
    findings = [Finding("synthetic-metadata", Severity.NOTE, words), *_problems(name, problems)]
    return b"".join(pcapng(packets(conversations), words)), findings


def _problems(name: str, problems: list[str]) -> list[Finding]:
    """Return findings of the first problems, and one that counts the others."""
    more = len(problems) - MAX_FINDINGS
    if more > 0:
        problems = [*problems[:MAX_FINDINGS], f"{counted(more, 'more line')} with wrong sizes"]
    return [Finding("frame-size", Severity.WARNING, f"{name}: {words}") for words in problems]
