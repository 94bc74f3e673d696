"""The state of the diff screen, without a screen: pairs, fields of the selected pair, bytes of each side.

Invariants:
  * `shown` are indices of pairs in the comparison, ascending;
  * each side's `ExchangeModel` shows the selected pair's exchange of that side, or nothing if there is none;
  * the number of differences of a pair is counted when it is drawn, and a bounded number of counts is cached.
"""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np

from dissector.analysis.diff import DiffEntry, DiffResult, ExchangePair, PairVerdict
from dissector.analysis.diff.exact_fields import ExactField, exact_fields
from dissector.analysis.diff.formatting import format_path
from dissector.analysis.diff.message_leaves import LeafPath
from dissector.analysis.diff.node_lookup import find_node
from dissector.analysis.diff.result import FieldDifference
from dissector.capture_session import Capture
from dissector.protocol.tree import Node
from tui.exchange_model import ExchangeModel

KEPT_COUNTS: Final = 4_096
MOST_FIELDS: Final = 5_000
"""Lines of the fields of one pair."""
BODY: Final = "all of it"
"""What of a message differs that has no field of its own."""
SIDES: Final = (0, 1)


class FieldLine(NamedTuple):
    """One line of the fields of a pair. A side's path is None if it has no such field."""

    part: str
    """``request``, ``response``, or empty for the version of both."""
    path: str
    where: tuple[LeafPath | None, LeafPath | None]
    values: tuple[str, str]
    """In the comparison's words, for fields whose node has no value."""
    alike: bool
    difference: FieldDifference | None
    is_exact: bool = False
    """Whether it is compared as the wire has it."""

    @property
    def is_ignored(self) -> bool:
        """Whether both sides have other values, which a comparison of clients leaves out."""
        has_both = bool(self.part) and all(where is not None for where in self.where)
        return has_both and not self.alike and self.difference is None and not self.is_exact


class DiffModel:
    """The state of the diff screen, once there is a comparison."""

    def __init__(self, comparison: DiffResult, a: Capture, b: Capture, *, is_exact: bool = False) -> None:
        """`is_exact` if two exchanges are compared as the wire has them, not what two clients do."""
        self.comparison = comparison
        self.is_exact = is_exact
        self.sides = (ExchangeModel(a), ExchangeModel(b))
        self.hides_equal = False
        self.shows_all_fields = False
        self.cause: DiffEntry | None = None
        """The cause that is followed."""
        self.pair: ExchangePair | None = None
        self.lines: list[FieldLine] = []
        self.line = 0
        self._exact: tuple[ExchangePair, list[ExactField]] | None = None
        """The last pair that was compared exactly."""
        self._captures = (a, b)
        self._places = [np.full(len(capture), -1) for capture in self._captures]
        for place, pair in enumerate(comparison.pairs):
            for side in SIDES:
                if (row := row_of(pair, side)) is not None:
                    self._places[side][row] = place
        self._slots = [np.where(places >= 0, np.cumsum(places >= 0) - 1, -1) for places in self._places]
        """Where each row is among those of the comparison; -1 for the others."""
        columns = [
            capture.index.columns(["api", "api_version"], np.flatnonzero(places >= 0))
            for capture, places in zip(self._captures, self._places, strict=True)
        ]
        self._apis, self._versions = zip(*columns, strict=True)
        self.differing = lru_cache(maxsize=KEPT_COUNTS)(self._differing)
        self.shown: Sequence[int] = ()
        self.show_equal(shown=True)

    def show_equal(self, *, shown: bool) -> None:
        """Show all pairs, or those that differ."""
        self.hides_equal = not shown
        pairs = self.comparison.pairs
        everything = range(len(pairs))
        self.shown = everything if shown else [n for n in everything if not self.is_equal(pairs[n])]

    def nearest(self, place: int) -> int:
        """Return the position in `shown` of a pair, or of the next one after it; the last position if there is none."""
        return max(0, min(bisect_left(self.shown, place), len(self.shown) - 1))

    def api(self, side: int, row: int) -> str:
        return str(self._apis[side][self._slots[side][row]])

    def version(self, side: int, row: int) -> int | None:
        version = self._versions[side][self._slots[side][row]]
        return version if isinstance(version, int) else None

    def versions_differ(self, pair: ExchangePair) -> bool:
        if pair.a is None or pair.b is None:
            return False
        return self.version(0, pair.a) != self.version(1, pair.b)

    def is_equal(self, pair: ExchangePair) -> bool:
        """Return whether nothing differs in a pair."""
        return pair.verdict is PairVerdict.SAME and not self.versions_differ(pair)

    def _differing(self, pair: ExchangePair) -> int:
        """Return how many fields of a pair differ."""
        return len(self.comparison.differences(pair))

    def place_of(self, side: int, row: int) -> int | None:
        """Return the index in the comparison of the pair of a row."""
        places = self._places[side]
        place = int(places[row]) if row < len(places) else -1
        return place if place >= 0 else None

    def place_shown_by(self, before: "DiffModel") -> int | None:
        """Return the index of the pair of the exchange that another comparison shows. Its sides may be swapped."""
        for side in SIDES:
            row = row_of(before.pair, side) if before.pair is not None else None
            if row is None:
                continue
            of_capture = [n for n in (side, 1 - side) if self._captures[n] is before._captures[side]]
            places = (self.place_of(n, row) for n in of_capture)
            if (found := next((place for place in places if place is not None), None)) is not None:
                return found
        return None

    def choose(self, pair: ExchangePair | None) -> None:
        """Show another pair: its differences, its bytes."""
        self.pair = pair
        for side in SIDES:
            row = row_of(pair, side) if pair is not None else None
            if row is None:
                self.sides[side].clear()
            else:
                self.sides[side].choose(row)
        self.relist()

    def relist(self) -> None:
        """Rebuild the lines of the selected pair, and select the first that differs."""
        self.lines = self._lines(self.pair) if self.pair is not None else []
        self.choose_line(next((n for n, line in enumerate(self.lines) if not line.alike), 0))

    def _lines(self, pair: ExchangePair) -> list[FieldLine]:
        out: list[FieldLine] = []
        if pair.a is not None and pair.b is not None:
            versions = [self.version(0, pair.a), self.version(1, pair.b)]
            if versions[0] != versions[1] or self.shows_all_fields:
                texts = [f"v{version}" for version in versions]
                is_equal = versions[0] == versions[1]
                out.append(FieldLine("", "version", (None, None), (texts[0], texts[1]), is_equal, None))
            if self.is_exact:
                return out + self._exact_lines(pair)
            if not self.shows_all_fields:
                return out + [
                    FieldLine(each.part, each.path_a or each.path_b or each.path, (each.where_a, each.where_b),
                         (each.value_a, each.value_b), False, each)
                    for each in self.comparison.differences(pair)
                ]  # fmt: skip
        for field in self.comparison.fields(pair)[:MOST_FIELDS]:
            path = format_path(field.where_a or field.where_b or ())
            out.append(
                FieldLine(field.part, path, (field.where_a, field.where_b), ("", ""), field.is_equal, field.difference)
            )
        return out

    def _exact_lines(self, pair: ExchangePair) -> list[FieldLine]:
        """Return the fields of both exchanges, compared as the wire has them."""
        fields = [each for each in self._exact_fields(pair) if self.shows_all_fields or not each.is_equal]
        return [
            FieldLine(
                each.part, format_path(each.where[0] or each.where[1] or ()) or BODY, each.where, each.texts,
                each.is_equal, each.difference, is_exact=True,
            )
            for each in fields[:MOST_FIELDS]
        ]  # fmt: skip

    def _exact_fields(self, pair: ExchangePair) -> list[ExactField]:
        if self._exact is None or self._exact[0] != pair:
            a, b = (side.exchange for side in self.sides)
            assert a is not None
            assert b is not None
            self._exact = pair, exact_fields(a, b, self.comparison.differences(pair))
        return self._exact[1]

    @property
    def unlike(self) -> int:
        """How many fields of the selected pair are not alike, listed or not; 0 unless it is compared exactly."""
        if self._exact is None or self.pair is None:
            return 0
        return sum(not each.is_equal for each in self._exact[1]) + self.versions_differ(self.pair)

    @property
    def is_masked(self) -> bool:
        """Whether a message of the selected pair has masked secrets, which nobody can compare."""
        exchanges = [side.exchange for side in self.sides if side.exchange is not None]
        messages = [message for each in exchanges for message in (each.request, each.response)]
        return any(message.masked for message in messages if message is not None)

    def choose_line(self, number: int) -> None:
        """Select a field: both sides show the message that has it, and its bytes."""
        self.line = max(0, min(number, len(self.lines) - 1))
        line = self.lines[self.line] if self.lines else None
        for side in SIDES:
            model = self.sides[side]
            if line is not None and line.part:
                model.turn(line.part)
            model.node = self.node(side, line) if line is not None and model.side == line.part else None

    def node(self, side: int, line: FieldLine) -> Node | None:
        """Return the node of a line's field on a side."""
        exchange, where = self.sides[side].exchange, line.where[side]
        message = getattr(exchange, line.part, None) if exchange is not None and line.part else None
        return find_node(message, where) if message is not None and where is not None else None

    def line_of(self, side: int, node: Node) -> int | None:
        """Return the line of a side's node, or of its nearest ancestor."""
        part = self.sides[side].side
        found = [
            (n, place)
            for n, line in enumerate(self.lines)
            if line.part == part and (place := self.node(side, line)) is not None
        ]
        near = [(len(place.path), n) for n, place in found if _is_within(node.path, place.path)]
        return max(near)[1] if near else None

    def flip(self) -> bool:
        """Show the other message on both sides, at its first field that differs; return whether there is one."""
        now = next((side.side for side in self.sides if side.exchange is not None), "request")
        other = "response" if now == "request" else "request"
        there = [side.turn(other) for side in self.sides]
        if not any(there):
            return False
        lines = ((n, line) for n, line in enumerate(self.lines) if line.part == other)
        first = next((n for n, line in lines if self._tells(line)), None)
        if first is not None:
            self.choose_line(first)
        return True

    def last_line(self) -> int:
        """Return the last line that differs."""
        return next((n for n in range(len(self.lines) - 1, -1, -1) if self._tells(self.lines[n])), 0)

    def next_line(self, step: int) -> int | None:
        """Return the next line that differs; None if there is none."""
        numbers = range(self.line + step, len(self.lines) if step > 0 else -1, step)
        return next((n for n in numbers if self._tells(self.lines[n])), None)

    def _tells(self, line: FieldLine) -> bool:
        return line.difference is not None or ((self.is_exact or not line.part) and not line.alike)

    def next_pair(self, start: int, step: int, stopped: Callable[[], bool]) -> int | None:
        """Return the index in the comparison of the next pair that differs, or that shows the followed cause: of those
        in `shown`, from position `start` on. None if there is none, or if `stopped`. May take a while: run it in a
        thread."""
        shown = self.shown  # a copy: the user may show other pairs meanwhile
        for position in range(start, len(shown) if step > 0 else -1, step):
            if stopped():
                return None
            pair = self.comparison.pairs[shown[position]]
            if self._shows(pair, self.cause) if self.cause is not None else self.differs(pair):
                return shown[position]
        return None

    def _shows(self, pair: ExchangePair, entry: DiffEntry) -> bool:
        """Return whether a pair shows an entry. Pairs of other APIs are skipped without decoding them."""
        apis = (self.api(side, row) for side in SIDES if (row := row_of(pair, side)) is not None)
        return entry.api in apis and self.comparison.shows(pair, entry)

    def first_shown(self, entry: DiffEntry, stopped: Callable[[], bool]) -> int | None:
        """Return the index in the comparison of the first pair that shows an entry; of the entry's first row if none
        does: the exchange that shows it may have no counterpart. May take a while."""
        for place, pair in enumerate(self.comparison.pairs):
            if stopped():
                return None
            if self._shows(pair, entry):
                return place
        return self.said_at(entry)

    def said_at(self, entry: DiffEntry) -> int | None:
        """Return the index in the comparison of an entry's first row; None if it has none."""
        first = ((side, row) for side, row in enumerate((entry.row_a, entry.row_b)) if row is not None)
        return next((found for side, row in first if (found := self.place_of(side, row)) is not None), None)

    def differs(self, pair: ExchangePair) -> bool:
        """Return whether a pair differs: in a field, the version, the order, or because one side is missing."""
        if pair.verdict in (PairVerdict.SAME, PairVerdict.DIFFERENT):
            return self.versions_differ(pair) or (pair.verdict is PairVerdict.DIFFERENT and self.differing(pair) > 0)
        return pair.verdict is not PairVerdict.MORE

    def line_of_cause(self, entry: DiffEntry) -> int:
        """Return the line of the selected pair that shows an entry."""
        if entry.path == "version":
            return 0
        wanted = (entry.part, entry.path)
        lines = enumerate(self.lines)
        return next((n for n, line in lines if line.difference and (line.part, line.difference.path) == wanted), 0)


def row_of(pair: ExchangePair, side: int) -> int | None:
    """Return a side's row of a pair."""
    return pair.b if side else pair.a


def _is_within(path: str, above: str) -> bool:
    return path == above or path.startswith((f"{above}.", f"{above}["))
