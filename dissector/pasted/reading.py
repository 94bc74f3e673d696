"""Reads a text that has bytes of Kafka's in whatever form: the way in of this package.

Invariants:
  * whatever the text is, reading returns, in time and memory linear in it;
  * a text without messages of Kafka or packets gives None, however many numbers it has.
"""

from typing import Final

from dissector.core import limits
from dissector.pasted.arrangement import Arrangement, arrange
from dissector.pasted.judge import Fit, Judge, frames_of
from dissector.pasted.pieces import FoundPieces, Piece
from dissector.pasted.plain_text import plain_text
from dissector.pasted.recognizers import RECOGNIZERS
from dissector.pasted.text_versions import TextVersion, versions_of
from dissector.protocol.message_layout import PREFIX, sized

_WHOLE: Final = 0.8
"""The share of a text's characters from which bytes are what it is about: then their sizes are enough to believe it."""
_MOST: Final = 0.5
"""The share of the bytes found that must be of likely messages where none is read to its last byte."""
_NEARLY: Final = 0.9
"""The share of another reading's score from which a reading to the last byte is better."""
_LEAST: Final = 8
"""Bytes that are enough to be believed by their sizes."""


class PastedText:
    """What was found in a text."""

    def __init__(self, arrangement: Arrangement, version: TextVersion) -> None:
        self.arrangement = arrangement
        self._version = version

    @property
    def first_line(self) -> int:
        """The line of the first bytes, from 1."""
        return self._version.line(min(self.arrangement.places))

    def problems(self) -> list[str]:
        """What is wrong with the bytes, each with its line."""
        return [f"line {self._version.line(place)}: {words}" for place, words in self.arrangement.problems]


def read_bytes(data: bytes, response_to: tuple[int, int] | None = None) -> PastedText | None:
    """Return what a text has, or a file of nothing but messages; None if it has no bytes of Kafka's. `response_to` is
    what responses answer, as the user says: API key and version."""
    text = plain_text(data)
    if text is None:
        return _read_raw(data, response_to)
    best: PastedText | None = None
    for version in versions_of(text):
        made = _best_of(version, response_to)
        if made is not None and (best is None or _is_better(made, best.arrangement)):
            best = PastedText(made, version)
        if best is not None and best.arrangement.is_whole:
            break
    return best


def _is_better(made: Arrangement, best: Arrangement) -> bool:
    """Return whether another version of a text reads better: whole, where little more was found that is not."""
    return made.score > (_NEARLY * best.score if made.is_whole and not best.is_whole else best.score)


def _best_of(version: TextVersion, response_to: tuple[int, int] | None) -> Arrangement | None:
    """Return the best reading of a text's version; None if it has no bytes of Kafka's."""
    text, lines = version.text, version.lines
    characters = len("".join(text.split()))
    best: Arrangement | None = None
    rest = lines
    for recognizer in RECOGNIZERS:
        pieces = recognizer.find(rest if recognizer.is_loose else lines)
        if not pieces:
            continue
        ways = [FoundPieces(recognizer.form, pieces)]
        if recognizer.may_swap and any(piece.cell > 1 for piece in pieces):
            ways.append(
                FoundPieces(f"{recognizer.form} of little-endian numbers", [piece.swapped() for piece in pieces])
            )
        for way in ways:
            made = arrange(way, text, Judge(response_to))
            is_better = best is None or made.score > best.score
            if is_better and _is_believed(made, characters, by_size=recognizer.by_size and not version.is_surmised):
                best = made
        if best is not None and (recognizer.is_decisive or _explains(best, characters)):
            break
        if recognizer.has_rows:
            rest = lines.without([(piece.start, piece.end) for piece in pieces])
    return best


def may_be_raw(head: bytes) -> bool:
    """Return whether a file that begins so may be messages and nothing else: if the first reads as a request, or is a
    response of which all is there."""
    size = PREFIX + int.from_bytes(head[:PREFIX], "big")
    if not size <= limits.DEFAULT.frame_size or len(head) < _LEAST:
        return False
    judge = Judge()
    whole = size <= len(head)
    if judge.as_request(head[:size], whole=whole) >= Fit.LIKELY:
        return True
    return whole and size >= _LEAST and judge.as_response(head[:size], whole=True) >= Fit.LIKELY


def _read_raw(data: bytes, response_to: tuple[int, int] | None) -> PastedText | None:
    """Return messages that are a whole file, as a program wrote them."""
    is_framed = may_be_raw(data) and frames_of(data) is not None
    if not is_framed and Judge().as_request(sized(data), whole=True) is not Fit.EXACT:
        return None
    made = arrange(FoundPieces("bytes of messages", [Piece(0, len(data), data)]), "", Judge(response_to))
    return PastedText(made, TextVersion("")) if made.best >= Fit.LIKELY and made.fits_sizes else None


def _explains(made: Arrangement, characters: int) -> bool:
    """Return whether a reading leaves nothing to look for."""
    return made.is_whole and made.characters >= _WHOLE * characters


def _is_believed(made: Arrangement, characters: int, *, by_size: bool) -> bool:
    """Return whether a reading is more than chance: with a message that reads to its last byte, with likely ones that
    are most of what was found, or (`by_size`) with sizes that end where the bytes do, if the text is nothing else."""
    if made.best is Fit.EXACT:
        return True
    if made.best is Fit.LIKELY and made.score >= _MOST * made.found:
        return True
    if made.best is Fit.NONE or not made.fits_sizes or not by_size:
        return False
    size = sum(len(turn.data) for turns in made.turns.values() for turn in turns)
    return size >= _LEAST and made.characters >= _WHOLE * characters
