"""Arranges the pieces that a recognizer found: packets as packets, other bytes as messages that each have a side.

What the bytes are decides before what stands beside them: a message that reads to its last byte as one side's is that
side's. A piece that goes on where the one before it ended inside a message is joined to it. Pieces without a size in
front are tried as one message, request and response. Every assumption is a note.

Invariant: no byte is made up but a size prefix, and that is noted.
"""

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field
from typing import Final

from dissector.conversation import Packet, Turn
from dissector.core.text import counted
from dissector.pasted.judge import WEIGHTS, Fit, Judge, frame_end, frames_of
from dissector.pasted.labels import CONTEXT, label_of
from dissector.pasted.packets import PacketHead, packet_head, time_in
from dissector.pasted.pieces import FoundPieces, Hole, Piece
from dissector.protocol.message_layout import PREFIX, sized

_MOST_CUT: Final = 8
"""How many times as large as what is there a message may be of which only the size tells that it is one."""
_STEP_NS: Final = 1_000
"""Between packets without times."""


@dataclass(slots=True)
class JoinedPieces:
    """Bytes of one connection that belong together: pieces that were joined."""

    place: int
    """Where they begin in the text."""
    data: bytes
    connection: int
    hint: bool | None
    holes: list[Hole]
    characters: int

    @property
    def virtual(self) -> bytes:
        """The bytes with zeros where some are left out."""
        if not self.holes:
            return self.data
        parts, at = [], 0
        for hole in self.holes:
            parts += [self.data[at : hole.at], bytes(hole.size)]
            at = hole.at
        return b"".join([*parts, self.data[at:]])


class _GrowingRun:
    """Pieces that are being joined.

    Invariant: where the last message ends is kept, so that joining takes time linear in the pieces."""

    def __init__(self, piece: Piece, hint: bool | None) -> None:
        self._first = piece
        self._hint = hint
        self._data = bytearray()
        self._characters = 0
        self._end: int | None = 0
        """Where the last message ends whose size is there; None where a size can't be one."""
        self.holes: list[Hole] = []
        self.add(piece)

    def __len__(self) -> int:
        return len(self._data)

    def add(self, piece: Piece) -> None:
        """Join a piece; none after one with holes."""
        self.holes = [Hole(hole.at + len(self), hole.size) for hole in piece.holes]
        self._data += piece.data
        self._characters += piece.end - piece.start
        while self._end is not None and self._end + PREFIX <= len(self):
            self._end = frame_end(bytes(self._data[self._end : self._end + PREFIX]), self._end)

    @property
    def missing(self) -> int:
        """How many bytes the last message lacks, as its size says."""
        return 0 if self._end is None else max(0, self._end - len(self))

    def joined(self) -> JoinedPieces:
        """Return what was joined."""
        first, data = self._first, bytes(self._data)
        return JoinedPieces(first.start, data, first.connection, self._hint, self.holes, self._characters)


@dataclass(slots=True)
class Arrangement:
    """One reading of a text: packets, or turns by connection."""

    form: str
    packets: list[Packet] = field(default_factory=list)
    turns: dict[int, list[Turn]] = field(default_factory=dict)
    places: list[int] = field(default_factory=list)
    """Where in the text packets or runs begin."""
    score: float = 0.0
    """Bytes of what was understood, by how well."""
    best: Fit = Fit.NONE
    characters: int = 0
    """Characters of the text that are bytes."""
    notes: list[str] = field(default_factory=list)
    """What was assumed."""
    problems: list[tuple[int, str]] = field(default_factory=list)
    """What is wrong, and where in the text."""
    found: int = 0
    """Bytes of all pieces."""
    left_out: int = 0
    """Pieces that are nothing of Kafka's."""
    fits_sizes: bool = False
    """Whether sizes in the bytes end where the bytes end."""

    @property
    def is_whole(self) -> bool:
        """Whether all that was found reads to its last byte, and nothing of it is missing."""
        return self.best is Fit.EXACT and not self.left_out and not self.problems


def arrange(found: FoundPieces, text: str, judge: Judge) -> Arrangement:
    """Return what the pieces of a recognizer are."""
    made = Arrangement(found.form, found=sum(len(piece.data) for piece in found.pieces))
    heads = [packet_head(piece.data, sum(hole.size for hole in piece.holes)) for piece in found.pieces]
    in_packets = sum(len(piece.data) for piece, head in zip(found.pieces, heads, strict=True) if head)
    if 2 * in_packets > sum(len(piece.data) for piece in found.pieces):
        _arrange_packets(made, found.pieces, heads, text)
    else:
        _Arranger(made, judge).arrange(_runs(found.pieces, text, judge))
    return made


def _arrange_packets(made: Arrangement, pieces: list[Piece], heads: list[PacketHead | None], text: str) -> None:
    times: list[int | None] = []
    last = 0
    for piece, head in zip(pieces, heads, strict=True):
        context, last = text[max(last, piece.start - 2 * CONTEXT) : piece.start], piece.end
        if head is None:
            made.left_out += 1
            continue
        first = piece.holes[0].at if piece.holes else len(piece.data)
        data = piece.data[:first]
        times.append(time_in(context) if piece.time_ns is None else piece.time_ns)
        made.packets.append(Packet(0, data, head.length if head.length > len(data) else None, head.link_type))
        made.places.append(piece.start)
        made.score += len(data)
        made.characters += piece.end - piece.start
        if head.length > len(data):
            made.problems.append((piece.start, f"a packet of {head.length:,} bytes, of which {len(data):,} are there"))
    known = [each for each in times if each is not None]
    if len(known) < len(times):
        known = [number * _STEP_NS for number in range(len(times))]
        made.notes.append("times are made up")
    made.packets = [packet._replace(time_ns=time) for packet, time in zip(made.packets, known, strict=True)]
    made.best, made.fits_sizes = Fit.EXACT, True


def _runs(pieces: list[Piece], text: str, judge: Judge) -> list[JoinedPieces]:
    """Return the pieces, those joined that go on in the next one of their connection and direction."""
    runs: list[_GrowingRun] = []
    last: dict[tuple[int, bool | None], _GrowingRun] = {}
    end = 0
    for piece in pieces:
        label = label_of(text[max(end, piece.start - CONTEXT) : piece.start])
        hint, end = label.from_client if piece.from_client is None else piece.from_client, piece.end
        before = None if label.is_message else last.get((piece.connection, hint))
        if before is not None and not before.holes and _goes_on(before, piece, judge):
            before.add(piece)
            continue
        run = _GrowingRun(piece, hint)
        runs.append(run)
        # What stands behind it without a word may be more of it.
        last[piece.connection, hint] = last[piece.connection, None] = run
    return [run.joined() for run in runs]


def _goes_on(before: _GrowingRun, piece: Piece, judge: Judge) -> bool:
    """Return whether a piece is more of the message that the run before it ends in."""
    if len(before) < PREFIX:
        return True
    missing = before.missing
    if not missing:
        return False
    own = frames_of(piece.data)
    begins = own is not None and (
        sum(own[-1]) == len(piece.data) or judge.as_request(piece.data, whole=False) >= Fit.LIKELY
    )
    return not begins and (len(piece.data) <= missing or frames_of(piece.data[missing:]) is not None)


class _Arranger:
    """Gives the messages of runs their sides."""

    def __init__(self, made: Arrangement, judge: Judge) -> None:
        self._made = made
        self._judge = judge
        self._sides: set[tuple[bool, bool]] = set()
        """Sides of messages, and whether the text said so."""
        self._unsized: set[bool] = set()
        self._seen: set[bytes] = set()
        """Runs: where the same bytes stand twice in a text, they count once."""
        self._bodies = False
        self._turns = 0

    def arrange(self, runs: list[JoinedPieces]) -> None:
        fits = True
        for run in runs:
            frames = frames_of(run.virtual)
            if not self._sized(run, frames) and not self._unsized_message(run):
                fits = False
                self._made.left_out += 1
        self._made.fits_sizes = fits and bool(self._made.places)
        self._note()

    def _sized(self, run: JoinedPieces, frames: list[tuple[int, int]] | None) -> bool:
        """Take a run as messages with their sizes in front; return whether it is."""
        if not frames:
            return self._damaged_end(run)
        data, judge = run.virtual, self._judge
        gaps = _gaps(run)
        judged = []
        for at, size in frames:
            frame = data[at : at + size]
            inside = _within(gaps, at, at + size)
            whole = at + size <= len(data) and not inside
            cut = next((start for start, _ in inside if start >= at), at + len(frame))
            seen = frame[: cut - at]
            side, fit = self._side(seen, run.hint, whole=whole)
            judged.append((at, size, side, fit))
            is_guess = fit is Fit.POSSIBLE and not whole and len(frames) == 1 and run.hint is None
            if fit is Fit.NONE or (is_guess and size > _MOST_CUT * len(seen)):
                return False
            (judge.note_request if side else judge.note_response)(seen)
        best = max(fit for *_, fit in judged)
        if best <= Fit.POSSIBLE and self._reads_unsized(run) is not None:
            return False
        self._take(run, best)
        self._emit(run, [(at, at + size, side) for at, size, side, _ in judged])
        is_new = run.data not in self._seen
        self._seen.add(run.data)
        for at, size, side, fit in judged:
            self._made.score += min(size, len(data) - at) * WEIGHTS[fit] * is_new
            self._sides.add((side, run.hint is side))
        at, size = frames[-1]
        if at + size > len(data):
            there = len(data) - at
            words = (
                f"byte {at:,}: a message of {size:,} bytes, its size included, of which {there:,} are there: "
                f"{size - there:,} are missing"
            )
            self._made.problems.append((run.place, words))
        for hole in run.holes:
            if hole.size:
                self._made.problems.append((run.place, f"byte {hole.at:,}: {hole.size:,} bytes are left out"))
        return True

    def _damaged_end(self, run: JoinedPieces) -> bool:
        """Take a run whose first messages are whole, and whose rest is none."""
        at, whole = 0, 0
        data = run.data
        while len(data) - at > PREFIX and not run.holes:
            size = PREFIX + int.from_bytes(data[at : at + PREFIX], "big", signed=True)
            if size < PREFIX + 4 or at + size > len(data):
                break
            at += size
            whole = at
        if not whole or self._reads_unsized(run) is not None:
            return False  # a message without its size may begin with what can be one
        rest = len(data) - whole
        first = JoinedPieces(run.place, data[:whole], run.connection, run.hint, [], run.characters)
        if not self._sized(first, frames_of(first.data)):
            return False
        self._made.problems.append((run.place, f"byte {whole:,}: {counted(rest, 'byte')} behind the last message"))
        return True

    def _side(self, frame: bytes, hint: bool | None, *, whole: bool) -> tuple[bool, Fit]:
        """Return whether a message is the client's, and how well it fits."""
        judge = self._judge
        request = judge.as_request(frame, whole=whole)
        if request is Fit.EXACT and (hint is not False) and judge.response_to is None and not judge.answers(frame):
            return True, request
        response = judge.as_response(frame, whole=whole)
        if hint is None:
            if judge.response_to is not None and request is not Fit.EXACT:
                return False, response
            side = request >= Fit.LIKELY and request >= response
        elif hint:
            side = not (request <= Fit.POSSIBLE and response >= Fit.LIKELY)
        else:
            side = (request is Fit.EXACT and response < Fit.EXACT) or (request >= Fit.LIKELY > response)
        return side, request if side else response

    def _reads_unsized(self, run: JoinedPieces) -> tuple[bool, Fit, bytes] | None:
        """Return side, fit and frame of a run that is one message without its size; None if it is none."""
        if run.holes or len(run.data) < 6 or not any(run.data):
            return None  # zeros read as a Produce of nothing
        frame = sized(run.data)
        request = self._judge.as_request(frame, whole=True)
        if request is Fit.EXACT or (request is Fit.LIKELY and run.hint is not False):
            return True, request, frame
        response = self._judge.as_response(frame, whole=True)
        if response is Fit.EXACT or (response is Fit.LIKELY and self._judge.answers(frame)):
            return False, response, frame
        if self._judge.is_body(run.data):
            self._bodies = True
            return False, Fit.EXACT, sized(bytes(4) + run.data)
        if response is Fit.LIKELY and self._judge.reads_as_some_response(frame):
            return False, response, frame
        return None

    def _unsized_message(self, run: JoinedPieces) -> bool:
        """Take a run as one message without its size; return whether it is."""
        found = self._reads_unsized(run)
        if found is None:
            return False
        side, fit, frame = found
        (self._judge.note_request if side else self._judge.note_response)(frame)
        self._take(run, fit)
        self._made.score += len(run.data) * WEIGHTS[fit]
        self._sides.add((side, run.hint is side))
        self._unsized.add(side)
        self._emit(JoinedPieces(run.place, frame, run.connection, side, [], 0), [(0, len(frame), side)])
        return True

    def _take(self, run: JoinedPieces, fit: Fit) -> None:
        self._made.best = max(self._made.best, fit)
        self._made.places.append(run.place)
        self._made.characters += run.characters

    def _emit(self, run: JoinedPieces, frames: list[tuple[int, int, bool]]) -> None:
        """Add turns: a message each, cut at what is left out."""
        turns = self._made.turns.setdefault(run.connection, [])
        data, gaps = run.virtual, _gaps(run)
        for start, end, side in frames:
            at, stop = start, min(end, len(data))
            for first, last in _within(gaps, at, stop):
                begin, behind = max(first, at), min(last, stop)
                turns.append(Turn(self._turns, side, data[at:begin], behind - begin))
                at, self._turns = behind, self._turns + 1
            missing = end - stop
            if at < stop or missing:
                turns.append(Turn(self._turns, side, data[at:stop], missing))
                self._turns += 1

    def _note(self) -> None:
        """Note what was assumed, and what changes it."""
        made, sides = self._made, {side for side, _ in self._sides}
        if self._bodies:
            made.notes.append("a body without a header: size and correlation id 0 were put in front")
        elif self._unsized:
            made.notes.append("a message without its size prefix, which was put in front")
        if self._judge.response_to is None and any(not said for _, said in self._sides):
            if sides == {True}:
                made.notes.append("taken for the client's (--response API:VERSION reads it as a response)")
            elif sides == {False}:
                made.notes.append("taken for a response, the broker's (--response API:VERSION says to what)")
            else:
                made.notes.append("the direction of messages follows from their bytes (> and < before hex set it)")


def _gaps(run: JoinedPieces) -> list[tuple[int, int]]:
    """Return where bytes are left out, in the run with them."""
    found, more = [], 0
    for hole in run.holes:
        if hole.size:
            found.append((hole.at + more, hole.at + more + hole.size))
        more += hole.size
    return found


def _within(gaps: list[tuple[int, int]], start: int, end: int) -> list[tuple[int, int]]:
    """Return the gaps, ascending, that have bytes between two places."""
    first = bisect_right(gaps, start, key=lambda gap: gap[1])
    return gaps[first : bisect_left(gaps, end, key=lambda gap: gap[0])]
