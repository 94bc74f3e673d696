"""Redacts the frames of rows: those of ordinary traffic many at a time (`plain_frames`), all others by their trees.

Invariant: frames are redacted in the order in which they are asked for, as names are numbered so.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np

from dissector.bulk.message_texts import MessageTexts
from dissector.capture_session import Capture
from dissector.exchange.model import Exchange
from dissector.export.redaction.frames import Redactor
from dissector.export.redaction.plain_frames import PlainFrames

CACHED_FRAMES: Final = 256
"""Redacted frames that are cached: a frame may be in many packets."""
CACHED_EXCHANGES: Final = 4
"""Decoded exchanges that are cached: most frames follow, or are followed by, the other one of their row."""
TOGETHER: Final = 2_048
"""Frames that are read together, unless they have more than so many bytes:"""
BYTES_TOGETHER: Final = 1 << 22


class FrameSide(NamedTuple):
    """The request of a row, or its response, with its size."""

    row: int
    of_client: bool
    size: int


class RedactedFrames:
    """The frames of a capture that has been read to its end."""

    def __init__(self, capture: Capture, redactor: Redactor) -> None:
        self._capture = capture
        self._redactor = redactor
        self._plain = PlainFrames(redactor, capture.messages.topic_names)
        self._exchange = lru_cache(maxsize=CACHED_EXCHANGES)(self._decode)

    def learn(self, rows: Sequence[int]) -> None:
        """Learn the names in the messages of rows, ascending, before the first one is redacted."""
        sides = (side for row in rows for side in self._sides(row))
        for some in _together(sides):
            texts = self._texts(some)
            for side in some:
                message = texts.get(side[:2])
                if message is not None and self._plain.learn(message):
                    continue
                exchange = self._exchange(side.row)
                for each in (exchange.request, exchange.response):
                    if each is not None and (side.size < 0 or (each is exchange.request) == side.of_client):
                        self._redactor.learn(each)

    def contents(self, sides: Iterable[FrameSide]) -> Iterator[bytes]:
        """Yield redacted frames; of one that is not whole as many bytes as can be read."""
        texts: dict[tuple[int, bool], MessageTexts] = {}

        @lru_cache(maxsize=CACHED_FRAMES)
        def content(row: int, of_client: bool) -> bytes:
            plain = texts.get((row, of_client))
            made = None if plain is None else self._plain.redacted(plain)
            return self._by_tree(row, of_client=of_client) if made is None else made

        for some in _together(sides):
            texts = self._texts(some)
            self._plain.begin([texts[side[:2]] for side in dict.fromkeys(some) if side[:2] in texts])
            for side in some:
                yield content(side.row, side.of_client)

    def _decode(self, row: int) -> Exchange:
        [exchange] = self._capture.at(range(row, row + 1))
        return exchange

    def _by_tree(self, row: int, *, of_client: bool) -> bytes:
        exchange = self._exchange(row)
        message = exchange.request if of_client else exchange.response
        return b"" if message is None else self._redactor.message(message)

    def _sides(self, row: int) -> list[FrameSide]:
        """The frames of a row; a side of no size for all that a row has that no packets carried."""
        spans = self._capture.frames.spans(row)
        return [FrameSide(row, span.of_client, span.size) for span in spans] or [FrameSide(row, True, -1)]

    def _texts(self, sides: Sequence[FrameSide]) -> dict[tuple[int, bool], MessageTexts]:
        """The messages of those that are plain, by row and side."""
        if self._capture.shows_secrets:  # redaction is of masked frames
            return {}
        found: dict[tuple[int, bool], MessageTexts] = {}
        for of_client in (True, False):
            rows = sorted({side.row for side in sides if side.of_client == of_client and side.size >= 0})
            texts = self._capture.messages.texts(np.array(rows, np.int64), is_request=of_client)
            found.update(((row, of_client), each) for row, each in zip(rows, texts, strict=True) if each is not None)
        return found


def _together(sides: Iterable[FrameSide]) -> Iterator[list[FrameSide]]:
    """Yield sides, as many together as may be read at once."""
    some: list[FrameSide] = []
    room = BYTES_TOGETHER
    for side in sides:
        if len(some) == TOGETHER or (some and side.size > room):
            yield some
            some, room = [], BYTES_TOGETHER
        room -= 0 if some and some[-1] == side else max(0, side.size)
        some.append(side)
    if some:
        yield some
