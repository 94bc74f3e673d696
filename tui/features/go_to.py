"""Go to: a row by its number, a time, a packet, the next row with a finding, or with what a filter asks for."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import ClassVar, NamedTuple

import numpy as np
from textual.binding import Binding

from dissector.core.arrays import Int64
from dissector.core.text import clean, counted
from tui.command_line import CommandError, LineCommand, of_names
from tui.feature import GO, ScreenFeature
from tui.features.row_search import Go, RowSearchFeature
from tui.screens.core_screen import CoreScreen
from tui.time_format import TimeFormat, time_text
from tui.time_places import time_place


class _Place(NamedTuple):
    """Where a typed text goes, in words, and what goes there."""

    words: str
    go: Callable[[], object]


class GoToFeature(ScreenFeature[CoreScreen]):
    """Goes to a place that is typed, and to the next row of a kind."""

    GROUP = GO

    BINDINGS: ClassVar[list[Binding]] = [
        Binding("right_parenthesis", "same_kind(1)", "Next of the kind", key_display=")", show=False,
                tooltip="Next exchange with the same finding or, if there is none, of the same API",
                id="main.next_of_kind"),
        Binding("left_parenthesis", "same_kind(-1)", "Previous of the kind", key_display="(", show=False,
                tooltip="Previous exchange with the same finding or, if there is none, of the same API",
                id="main.previous_of_kind"),
        Binding("s", "slow(1)", "Next slow", show=False, id="main.next_slow",
                tooltip="Next exchange with the finding slow"),
        Binding("S", "slow(-1)", "Previous slow", show=False, id="main.previous_slow",
                tooltip="Previous exchange with the finding slow"),
    ]  # fmt: skip

    def go_to(self, text: str) -> bool:
        """Go to a place that was typed; return whether it is one. Raises `CommandError` for one that is wrong."""
        place = self._place(text)
        if place is not None:
            place.go()
        return place is not None

    def place_words(self, text: str) -> str:
        """Return where a place that is being typed goes; nothing as long as it is none."""
        try:
            place = self._place(text)
        except CommandError:
            return ""
        return place.words if place is not None else ""

    def _place(self, text: str) -> "_Place | None":
        """Read a place: ``42``, ``+5``, ``7.3``, ``+2s``, ``12:04:31``. Raises `CommandError` for one that is wrong."""
        digits = text.replace(",", "")
        if digits.isascii() and digits.isdecimal():
            number = int(digits[:18])
            return _Place(f"row {number:,} of {len(self.screen.capture):,}", partial(self._go_to_number, number))
        if text[:1] in ("+", "-") and text[1:].isascii() and text[1:].isdecimal():
            rows = int(text[1:10])
            step = rows if text[0] == "+" else -rows
            words = f"{counted(rows, 'row')} {'down' if step > 0 else 'up'}"
            return _Place(words, partial(self._go_by_rows, step))
        exchange = self.screen.model.exchange
        start_ns = self.screen.capture.start_ns
        here_ns = exchange.row.time_ns if exchange is not None else start_ns
        time_ns = time_place(text, start_ns, here_ns, utc=self.screen.appearance.time is TimeFormat.UTC)
        if time_ns is None:
            return None
        words = f"the first row at or after {time_text(time_ns, TimeFormat.START, start_ns)} s"
        return _Place(words, partial(self._go_to_time, time_ns))

    def _go_by_rows(self, step: int) -> None:
        self.screen.exchange_list.cursor += step

    def _go_to_number(self, number: int) -> None:
        count = len(self.screen.capture)
        if not 1 <= number <= count:
            self.notify(f"there is no row {number:,}: rows are 1 to {count:,}", timeout=3)
        elif not self.screen.go_to(number - 1):
            self.notify(f"row {number:,} is hidden by the filter", timeout=3)

    def _go_to_time(self, time_ns: int) -> None:
        """Go to the first shown row at or after a time, or to the last one."""
        rows = self.screen.view.rows
        if not len(rows):
            self.notify("no row is shown", timeout=3)
            return
        later = np.flatnonzero(self._times(rows) >= time_ns)
        self.screen.go_to(int(rows[later[0]] if len(later) else rows[-1]))
        if not len(later):
            self.notify("no row is that late; this is the last one", timeout=3)

    def _times(self, rows: Int64) -> Int64:
        columns = self.screen.capture.index.numbers(rows)
        times: Int64 = np.where(columns.request_time_ns > 0, columns.request_time_ns, columns.response_time_ns)
        return times

    def action_same_kind(self, step: int) -> None:
        """Go to the next exchange with the finding of this one, or of its API."""
        exchange = self.screen.model.exchange
        if exchange is None:
            return
        if exchange.findings:
            code = exchange.findings[0].code
            self._go_to_matching(f'finding == "{code}"', step, f"exchanges with {code}")
        elif exchange.api_key is not None:
            self._go_to_matching(f"api == {exchange.api_key}", step, f"exchanges of {exchange.row.api}")

    def action_slow(self, step: int) -> None:
        self._go_to_matching('finding == "slow"', step, "slow exchanges")

    def _go_to_matching(self, text: str, step: int, words: str) -> None:
        """Go to the next row along the list that matches a filter. Raises `CommandError` for a wrong filter."""
        from dissector.filter import FilterError, parse  # the engine takes a tenth of a second to import

        try:
            wanted = parse(text)
        except FilterError as error:
            raise CommandError(clean(str(error).partition("\n")[0])) from None

        def find(rows: Int64) -> Go | None:
            matching = self.screen.capture.matching(wanted, np.sort(rows))
            found = np.flatnonzero(np.isin(rows, matching))
            return (lambda: self.screen.go_to(int(rows[found[0]]))) if len(found) else None

        self.screen.feature(RowSearchFeature).search(step, find, words)

    def commands(self) -> Iterator[LineCommand]:
        codes = of_names(_finding_codes)
        yield LineCommand("goto", "go to a row, or to a time: 42, 7.3, +2s, 12:04:31", self._goto, "PLACE",
                          needs_argument=True)  # fmt: skip
        yield LineCommand("packet", "go to the row of a packet, by Wireshark's number", self._packet, "NUMBER",
                          needs_argument=True)  # fmt: skip
        yield LineCommand("finding", "go to the next row with a finding", self._finding, "[CODE]", codes)
        yield LineCommand("next", "go to the next row that matches a filter", self._next, "FILTER", needs_argument=True)
        yield LineCommand("previous", "go to the previous row that matches a filter", self._previous, "FILTER",
                          needs_argument=True)  # fmt: skip

    def _goto(self, place: str) -> None:
        if not self.go_to(place):
            raise CommandError(clean(f"{place!r} is neither a row's number nor a time, such as 7.3, +2s, 12:04:31"))

    def _packet(self, number: str) -> None:
        if not number.isascii() or not number.isdecimal():
            raise CommandError(clean(f"{number!r} is not a packet's number"))
        wanted = int(number[:18])
        rows = self.screen.view.rows
        entries, columns = self.screen.capture.index.field_columns(rows)
        begins, answers = columns.packet().values, columns.response_packet()
        exact = np.flatnonzero((begins == wanted) | (answers.values == wanted) & answers.present)
        before = np.flatnonzero(begins <= wanted)
        found = exact if len(exact) else before[-1:]
        if not len(found):
            self.notify(f"no shown row begins at or before packet {wanted:,}", timeout=3)
            return
        self.screen.go_to(int(rows[entries + found[0]]))
        if not len(exact):
            self.notify(f"no row begins with packet {wanted:,}: this is the last row before it", timeout=3)

    def _finding(self, code: str) -> None:
        self._go_to_matching(f'finding == "{code}"' if code else "finding", 1, f"exchanges with {code or 'findings'}")

    def _next(self, text: str) -> None:
        self._go_to_matching(text, 1, f"exchanges with {text}")

    def _previous(self, text: str) -> None:
        self._go_to_matching(text, -1, f"exchanges with {text}")


def _finding_codes() -> Iterator[tuple[str, str]]:
    from dissector.findings.registry import CODES, explain  # only for those who ask

    for code in CODES:
        explanation = explain(code)
        yield code, explanation.title if explanation is not None else ""
