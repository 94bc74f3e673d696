"""Finds what is left of a capture's names in bytes that redaction keeps: numbers, ids and lengths.

A damaged frame may read well and have a name where its numbers are: where a length, an API key or a version changed.
So all names of the rows are learned first. Bytes that stay are then compared with every four bytes of a name, in any
case; six letters or digits in a row are no number either, and no four of them stay. In the header of a damaged frame,
where the layout is a guess, and where another number has a piece of a name, four are none: a name may be there alone.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from dissector.core.arrays import Int64, UInt8
from dissector.protocol.message import Traced

PIECE: Final = 4
"""Bytes of a name that are no chance."""
RUN: Final = 6
"""Letters and digits in a row that are no number."""
_TEXT: Final = re.compile(
    rb"(?:[ -~]|[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}){2,}", re.DOTALL
)
"""Text in UTF-8 without control characters: zeros between numbers are no name."""
_NO_CONTROL: Final = re.compile(rb"[^\x00-\x1f\x7f]{%d,}" % PIECE)
_LONGEST_CONTENT: Final = 256
"""Bytes of the longest content that is taken for a name: keys of records are names often, documents are not."""
_MAX_BYTES: Final = 1 << 22
"""Bytes of names, and of contents, that are remembered."""
_IS_LETTER: Final = np.zeros(256, np.bool_)
_IS_LETTER[list(b"abcdefghijklmnopqrstuvwxyz0123456789._-@/:")] = True
"""In lower case."""

_STAYS: Final = ~np.isin(np.arange(256), [*range(0x20), 0x7F])
"""What is no control character."""

Span = tuple[int, int]
UInt32 = npt.NDArray[np.uint32]


class Remnants:
    """The names of a capture, and the search for pieces of them."""

    def __init__(self) -> None:
        self._names: set[bytes] = set()
        self._sizes = {str: 0, bytes: 0}
        """Bytes that were learned, of texts and of contents."""
        self._pieces: UInt32 | None = None
        """Every piece of a name, sorted; None after a name was learned."""
        self._judged: dict[bytes, bool] = {}
        """Whether a few bytes have a piece, of those that were asked for: the same texts stand in many frames."""

    def learn(self, traced: Traced) -> None:
        """Learn the names in a frame."""
        for node in traced.tree.walk():
            if isinstance(node.value, bytes):
                self.learn_name(node.value, is_text=False)
            elif isinstance(node.value, str) and node.type != "UUID":
                self.learn_name(node.value.encode("utf-8", "surrogateescape"), is_text=True)

    def learn_name(self, raw: bytes, *, is_text: bool) -> None:
        """Learn a text, or a content, which is a name if it is short."""
        if len(raw) < PIECE or raw in self._names or (not is_text and len(raw) > _LONGEST_CONTENT):
            return
        kind = str if is_text else bytes
        if self._sizes[kind] <= _MAX_BYTES:
            self._names.add(raw)
            self._sizes[kind] += len(raw)
            self._pieces = None

    def find(self, kept: bytes, run: int = RUN) -> Iterator[Span]:
        """Yield the spans of pieces of names, and of those of `run` letters and digits in a row or more; bytes that
        don't stay are 0."""
        if _NO_CONTROL.search(kept) is None:
            return
        data = np.frombuffer(kept.lower(), np.uint8)
        is_of_run = np.zeros(len(data), np.bool_)
        is_of_run[(np.flatnonzero(_runs(_IS_LETTER[data], run))[:, None] + np.arange(run)).ravel()] = True
        starts = {*self._starts(data), *np.flatnonzero(_runs(is_of_run, PIECE)).tolist()}
        yield from ((start, start + PIECE) for start in sorted(starts))

    def pieces(self, data: bytes) -> Iterator[Span]:
        """Yield the spans of pieces of names."""
        if _NO_CONTROL.search(data) is not None:
            yield from ((at, at + PIECE) for at in self._starts(np.frombuffer(data.lower(), np.uint8)).tolist())

    def has_piece(self, data: bytes) -> bool:
        """Whether a few bytes have a piece of a name; once all names are learned."""
        if data not in self._judged:
            self._judged[data] = any(self.pieces(data))
        return self._judged[data]

    def parts_with_pieces(self, parts: Sequence[bytes | bytearray], run: int = RUN) -> set[int]:
        """Return the numbers of those parts in which `find` finds something."""
        data = np.frombuffer(b"\x00".join(parts).lower(), np.uint8)
        starts = self._starts(data)
        found = np.concatenate([starts, np.flatnonzero(_runs(_IS_LETTER[data], run))])
        ends = np.cumsum([len(part) + 1 for part in parts])
        return set(np.searchsorted(ends, found, side="right").tolist())

    def _starts(self, data: UInt8) -> Int64:
        """Return where pieces begin in bytes in lower case."""
        starts = np.flatnonzero(_runs(_STAYS[data], PIECE))
        pieces = self._known_pieces()
        if not len(pieces):
            return starts[:0]
        windows = _windows(data, starts)
        found: Int64 = starts[pieces[np.minimum(np.searchsorted(pieces, windows), len(pieces) - 1)] == windows]
        return found

    def _known_pieces(self) -> UInt32:
        if self._pieces is None:
            texts = b"\n".join(text for name in self._names for text in _TEXT.findall(name.lower()))
            every = np.frombuffer(texts, np.uint8)
            starts = np.flatnonzero(_runs(every != ord("\n"), PIECE))
            self._pieces = np.unique(_windows(every, starts))
        return self._pieces


def _runs(flags: npt.NDArray[np.bool_], size: int) -> npt.NDArray[np.bool_]:
    """Return where so many flags in a row begin that are set."""
    count = max(0, len(flags) - size + 1)
    out = np.ones(count, np.bool_)
    for at in range(size):
        out &= flags[at : at + count]
    return out


def _windows(data: UInt8, starts: npt.NDArray[np.int64]) -> UInt32:
    """Return the four bytes at each start as a number."""
    out = np.zeros(len(starts), np.uint32)
    for at in range(PIECE):
        out = (out << np.uint32(8)) | data[starts + at]
    return out
