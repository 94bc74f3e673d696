"""The hex transcript: frames to lines, and lines to the turns of a conversation.

If a frame has fewer bytes than its size prefix announces, the rest becomes a gap, so that later frames are still read
correctly. An impossible prefix is handled by the framing. Both give a finding.
"""

from collections.abc import Iterator
from typing import Final

from dissector.conversation.transcript_reader import entries
from dissector.conversation.turns import Turn
from dissector.core import limits

PREFIX: Final = 4
_WIDTH: Final = 32
"""Bytes on a line."""
_GROUP: Final = 4


def frame_lines(data: bytes, *, from_client: bool, connection: int = 1) -> Iterator[str]:
    """Yield a frame as lines of a transcript. The first connection has no number."""
    first = ("" if connection == 1 else str(connection)) + (">" if from_client else "<")
    for at in range(0, len(data), _WIDTH):
        mark = " " * len(first) if at else first
        yield f"{mark} {data[at : at + _WIDTH].hex(' ', -_GROUP)}"


def turns_of(data: bytes) -> tuple[dict[int, list[Turn]], list[str]]:
    """Return the turns of a transcript by connection, and problems with sizes. Raises `TranscriptError`.

    A turn's time is its number: it only gives the order."""
    turns: dict[int, list[Turn]] = {}
    problems: list[str] = []
    for number, (line, connection, from_client, sent) in enumerate(entries(data)):
        missing, problem = _short_of(sent)
        if problem:
            problems.append(f"line {line}: {problem}")
        turns.setdefault(connection, []).append(Turn(number, from_client, sent, missing))
    return turns, problems


def _short_of(sent: bytes) -> tuple[int, str]:
    """Return how many bytes the last frame lacks, and what is wrong with the frames."""
    at = 0
    while at < len(sent):
        left = len(sent) - at
        size = int.from_bytes(sent[at : at + PREFIX], "big", signed=True)
        if left < PREFIX:
            return 0, f"{left} bytes behind the last frame, too few for a size"
        if not 0 <= size <= limits.DEFAULT.frame_size:
            return 0, f"byte {at:,}: {size:,} can't be a frame's size"
        if size > left - PREFIX:
            words = f"byte {at:,}: a frame of {size:,} bytes behind its size, of which {left - PREFIX:,} are there"
            return size - (left - PREFIX), words
        at += PREFIX + size
    return 0, ""
