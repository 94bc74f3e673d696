"""Redacts the frames of rows: those of ordinary traffic many at a time (`plain_frames`), all others by their trees.

What decoding a row has told when its names were learned is remembered, in a few bytes: the layout of a response without
a request, which is found by trying many, and what a damaged message can keep. So such rows are decoded once.

A frame right before bytes without one is doubtful: as a rule its size is wrong, and its numbers are what came behind.

Invariant: frames are redacted in the order in which they are asked for, as names are numbered so.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np

from dissector.bulk.message_texts import MessageTexts
from dissector.capture_session import Capture
from dissector.core.arrays import Int64
from dissector.exchange.model import Exchange, ExchangeMessage
from dissector.export.packets import MAX_STREAM
from dissector.export.redaction.frames import FrameDamage, Redactor
from dissector.export.redaction.plain_frames import PlainFrames
from dissector.index.exchange_table import RowKind
from dissector.protocol.message_layout import MessageLayout
from dissector.protocol.schema.loader import alternatives

CACHED_FRAMES: Final = 256
"""Redacted frames that are cached: a frame may be in many packets."""
CACHED_EXCHANGES: Final = 4
"""Decoded exchanges that are cached: most frames follow, or are followed by, the other one of their row."""
TOGETHER: Final = 2_048
"""Frames that are read together, unless they have more than so many bytes:"""
BYTES_TOGETHER: Final = 1 << 22
MOST_REMEMBERED: Final = 1 << 18
"""Messages of which it is remembered what they are: all others are decoded once more."""


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
        self._known: dict[tuple[int, bool], MessageLayout | FrameDamage] = {}
        """What messages are that are not plain by themselves, by row and side: their layout, or what is left."""
        self._kinds: dict[MessageLayout | FrameDamage, MessageLayout | FrameDamage] = {}
        """Each of those once."""
        self._doubtful: set[tuple[int, bool]] = set()
        """Frames that are doubtful, by row and side."""

    def learn(self, rows: Sequence[int]) -> None:
        """Learn the names in the messages of rows, ascending, before the first one is redacted."""
        self._doubtful = _right_before_unparsed(self._capture, np.asarray(rows, np.int64))
        sides = (side for row in rows for side in self._sides(row))
        for some in _together(sides):
            texts = self._texts(some)
            inferred: dict[MessageLayout, list[tuple[FrameSide, ExchangeMessage]]] = {}
            for side in some:
                message = texts.get(side[:2])
                if message is not None and self._plain.learn(message):
                    continue
                exchange = self._exchange(side.row)
                for each in (exchange.request, exchange.response):
                    if each is not None and (side.size < 0 or (each is exchange.request) == side.of_client):
                        if side.size > 0 and exchange.request is None and _is_as_inferred(each):
                            inferred.setdefault(each.layout, []).append((side, each))
                        else:
                            self._learn(side, each)
            for layout, found in inferred.items():
                self._learn_inferred(layout, found)

    def _learn(self, side: FrameSide, message: ExchangeMessage) -> None:
        """Learn the names of a message by its tree, and what is left of it if it is damaged."""
        shown = message.with_mask()
        self._redactor.learn(shown)
        if side.size > 0 and shown.whole == len(shown.data) and (damage := self._redactor.damage(shown)) is not None:
            masked_from = shown.layout.masked_from
            if damage.kept <= masked_from if masked_from is not None else not shown.masked:
                self._remember(side, damage)

    def _learn_inferred(self, layout: MessageLayout, found: Sequence[tuple[FrameSide, ExchangeMessage]]) -> None:
        """Learn the names of responses of a layout."""
        texts = self._capture.messages.texts_of_frames(layout, [response.data for _, response in found])
        for (side, response), message in zip(found, texts, strict=True):
            if message is not None and self._plain.learn(message):
                self._remember(side, layout)
            else:
                self._learn(side, response)

    def _remember(self, side: FrameSide, kind: MessageLayout | FrameDamage) -> None:
        if len(self._known) < MOST_REMEMBERED:
            self._known[side.row, side.of_client] = self._kinds.setdefault(kind, kind)

    def contents(self, sides: Iterable[FrameSide]) -> Iterator[bytes]:
        """Yield redacted frames; of one that is not whole as many bytes as can be read."""
        texts: dict[tuple[int, bool], MessageTexts] = {}
        known: dict[tuple[int, bool], bytes] = {}

        @lru_cache(maxsize=CACHED_FRAMES)
        def content(row: int, of_client: bool) -> bytes:
            plain, damage = texts.get((row, of_client)), self._known.get((row, of_client))
            made = None if plain is None or (row, of_client) in self._doubtful else self._plain.redacted(plain)
            if isinstance(damage, FrameDamage):
                data = known[row, of_client]
                made = self._redactor.damaged(data, damage, len(data))
            return self._by_tree(row, of_client=of_client) if made is None else made

        for some in _together(sides):
            known = self._frames_of({side[:2] for side in some} & self._known.keys())
            texts = self._texts(some) | self._inferred(known)
            self._plain.begin([texts[side[:2]] for side in dict.fromkeys(some) if side[:2] in texts])
            for side in some:
                yield content(side.row, side.of_client)

    def _frames_of(self, keys: set[tuple[int, bool]]) -> dict[tuple[int, bool], bytes]:
        """The bytes of frames, unmasked, by row and side; of a damaged one nothing but the header, and zeros."""
        rows = sorted({row for row, _ in keys})
        found: dict[tuple[int, bool], bytes] = {}
        for row, sides in zip(rows, self._capture.frames.raw_bytes(np.array(rows, np.int64)), strict=True):
            for key, data in zip(((row, True), (row, False)), sides, strict=True):
                if key in keys:
                    kind = self._known[key]
                    found[key] = data[: kind.kept].ljust(len(data), b"\x00") if isinstance(kind, FrameDamage) else data
        return found

    def _inferred(self, known: dict[tuple[int, bool], bytes]) -> dict[tuple[int, bool], MessageTexts]:
        """The messages of those frames whose layout was inferred, by row and side."""
        by_layout: dict[MessageLayout, list[tuple[int, bool]]] = {}
        for key in known:
            if isinstance(layout := self._known[key], MessageLayout):
                by_layout.setdefault(layout, []).append(key)
        found: dict[tuple[int, bool], MessageTexts] = {}
        for layout, keys in by_layout.items():
            texts = self._capture.messages.texts_of_frames(layout, [known[key] for key in keys])
            found.update((key, each) for key, each in zip(keys, texts, strict=True) if each is not None)
        return found

    def _decode(self, row: int) -> Exchange:
        [exchange] = self._capture.at(range(row, row + 1))
        return exchange

    def _by_tree(self, row: int, *, of_client: bool) -> bytes:
        exchange = self._exchange(row)
        message = exchange.request if of_client else exchange.response
        return b"" if message is None else self.content_of((row, of_client), message)

    def content_of(self, side: tuple[int, bool], message: ExchangeMessage) -> bytes:
        """Return the redacted frame of a message that is decoded, of a row and whether it is the client's."""
        return self._redactor.message(message, is_doubtful=side in self._doubtful)

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


def _right_before_unparsed(capture: Capture, rows: Int64) -> set[tuple[int, bool]]:
    """Return the frames behind which there is no other one but bytes that are none, by row and side."""
    kinds = capture.index.numbers(rows).kind
    if not (kinds == RowKind.UNPARSED).any():
        return set()
    spans = capture.frames.span_columns(rows)
    starts = spans.direction * MAX_STREAM + spans.start
    is_unparsed = kinds[np.searchsorted(rows, spans.row)] == RowKind.UNPARSED
    is_before = ~is_unparsed & np.isin(starts + spans.size, starts[is_unparsed])
    return set(zip(spans.row[is_before].tolist(), spans.of_client[is_before].tolist(), strict=True))


def _is_as_inferred(message: ExchangeMessage) -> bool:
    """Whether a response is all of what was inferred, without a secret, or records of the metadata log."""
    layout = message.layout
    is_whole = not message.masked and message.whole == len(message.data) == message.size
    is_known = layout.header is not None and layout.body is not None and layout.unread is None
    is_plain = is_known and layout.masked_from is None and not alternatives(layout.body or "", layout.body_version)
    is_of_log = message.context.fetches_metadata
    return is_whole and is_plain and not is_of_log and message.findings == [*layout.findings]


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
