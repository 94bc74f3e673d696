"""How well bytes read as messages of Kafka: as a request, or as a response to one of those before it, or to any.

A judgement is cheap: only the first messages of a text are read to their end.
"""

from enum import IntEnum
from typing import Final

from dissector.core import limits
from dissector.protocol.codec.reader import DECODE_ERRORS, reader
from dissector.protocol.inference.evidence import NOTHING
from dissector.protocol.inference.verdict import Confidence, infer_response
from dissector.protocol.message import read
from dissector.protocol.message_layout import PREFIX, key_and_version, request_layout, response_layout, sized
from dissector.protocol.schema.loader import api

_NEWER: Final = 3
"""A client newer than the tables may use versions so far past those known."""
_HEAD: Final = PREFIX + 10
"""Bytes up to the client id."""
_MOST_READ: Final = 200
"""Messages that are read to their end; of later ones the header decides."""
_MOST_INFERRED: Final = 20
"""Responses that are tried as those of every API."""
_LARGEST_INFERRED: Final = 1 << 16
_LEAST_UNSIZED: Final = 20
"""Bytes of the shortest response, its size included, that is recognized by its layout alone."""


class Fit(IntEnum):
    """How well bytes read as a message."""

    NONE = 0
    POSSIBLE = 1
    """Its size is right, and nothing contradicts."""
    LIKELY = 2
    """Its header is right, or it reads as a response of some API."""
    EXACT = 3
    """It reads to its last byte."""


WEIGHTS: Final = {Fit.NONE: 0.0, Fit.POSSIBLE: 0.05, Fit.LIKELY: 0.7, Fit.EXACT: 1.0}
"""What a byte of a message counts where two readings of a text are compared."""


class Judge:
    """Judges the messages of one reading of a text, in their order. `response_to` is what the user says that responses
    without a request answer: API key and version."""

    def __init__(self, response_to: tuple[int, int] | None = None) -> None:
        self.response_to = response_to
        self._pending: dict[int, tuple[int, int]] = {}
        self._read = self._inferred = 0

    def as_request(self, frame: bytes, *, whole: bool) -> Fit:
        """Return how well a frame with its size reads as a request."""
        key, version = key_and_version(frame)
        known = api(key)
        if len(frame) < _HEAD or known is None or not known.versions.low <= version <= known.versions.high + _NEWER:
            return Fit.NONE
        length = int.from_bytes(frame[_HEAD - 2 : _HEAD], "big", signed=True)
        name = frame[_HEAD : _HEAD + max(0, length)]
        is_header = length >= -1 and (not whole or _HEAD + length <= len(frame)) and _is_printable(name)
        if not is_header and (key, version) != (7, 0):  # the one request that has no client id
            return Fit.NONE
        if whole and self._may_read():
            decoded = read(frame, request_layout(key, version, frame))
            if not decoded.rest and not decoded.findings:
                return Fit.EXACT
        return Fit.LIKELY if length > 0 and len(name) == length else Fit.POSSIBLE

    def as_response(self, frame: bytes, *, whole: bool) -> Fit:
        """Return how well a frame with its size reads as a response."""
        if len(frame) < PREFIX + 4:
            return Fit.NONE
        asked = self._pending.get(frame_id(frame), self.response_to)
        if asked is not None:
            if whole and self._may_read():
                decoded = read(frame, response_layout(*asked, frame))
                if not decoded.rest and not decoded.findings:
                    return Fit.EXACT
            return Fit.LIKELY if frame_id(frame) in self._pending else Fit.POSSIBLE
        if not whole or frame_id(frame) < 0 or self._inferred >= _MOST_INFERRED or len(frame) > _LARGEST_INFERRED:
            return Fit.POSSIBLE
        return Fit.LIKELY if self._confidence(frame) is not Confidence.NONE else Fit.POSSIBLE

    def reads_as_some_response(self, frame: bytes) -> bool:
        """Return whether a frame whose size is made up reads as a response of some API, and hardly by chance."""
        if len(frame) < _LEAST_UNSIZED or frame_id(frame) < 0 or self._inferred >= _MOST_INFERRED:
            return False
        return self._confidence(frame) in (Confidence.SURE, Confidence.LIKELY)

    def _confidence(self, frame: bytes) -> Confidence:
        self._inferred += 1
        return infer_response(frame, len(frame), len(frame), NOTHING).confidence

    def answers(self, frame: bytes) -> bool:
        """Return whether a frame has the id of a pending request."""
        return frame_id(frame) in self._pending

    def note_request(self, frame: bytes) -> None:
        """Remember a request whose response may follow."""
        self._pending[_int32(frame, 8)] = key_and_version(frame)

    def note_response(self, frame: bytes) -> None:
        """Forget the request that a response answers."""
        self._pending.pop(frame_id(frame), None)

    def is_body(self, data: bytes) -> bool:
        """Return whether bytes are the body of the response that the user says, without its header."""
        if self.response_to is None:
            return False
        layout = response_layout(*self.response_to, sized(bytes(4) + data))
        if layout.body is None:
            return False
        try:
            return reader(layout.body, layout.body_version)(data, 0, len(data))[1] == len(data)
        except DECODE_ERRORS:
            return False

    def _may_read(self) -> bool:
        self._read += 1
        return self._read <= _MOST_READ


def frame_id(frame: bytes) -> int:
    """Return the correlation id of a response."""
    return _int32(frame, PREFIX)


def frames_of(data: bytes) -> list[tuple[int, int]] | None:
    """Return where frames begin, and how many bytes each has, of which the last one may not be whole. None where a size
    can't be one, or a few bytes are left behind the last."""
    found: list[tuple[int, int]] = []
    at = 0
    while at < len(data):
        end = frame_end(data[at : at + PREFIX], at)
        if end is None:
            return None
        found.append((at, end - at))
        at = end
    return found


def frame_end(prefix: bytes, at: int) -> int | None:
    """Return where a frame ends that begins at `at` with these four bytes; None where they can't be a size."""
    size = int.from_bytes(prefix, "big", signed=True)
    return at + PREFIX + size if len(prefix) == PREFIX and 4 <= size <= limits.DEFAULT.frame_size else None


def _int32(data: bytes, at: int) -> int:
    return int.from_bytes(data[at : at + 4], "big", signed=True)


def _is_printable(name: bytes) -> bool:
    try:
        return all(character.isprintable() for character in name.decode())
    except UnicodeDecodeError:
        return False
