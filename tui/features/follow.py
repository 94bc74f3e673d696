"""Along what exchanges have in common: a partition, a group's generation, a producer's epoch, a fetch session."""

from functools import partial
from typing import ClassVar, Final

from textual.binding import Binding, BindingType

from dissector.analysis.follow_keys import FollowKey, follow_keys
from dissector.core.arrays import Int64
from dissector.core.text import clean
from tui.features.row_search import Go, RowSearch
from tui.location_history import Location
from tui.screens.menu import Choice, Menu

_MOST: Final = 200
"""Choices of the menu: a Metadata response may name thousands of partitions."""
_KEYS: Final = "123456789abcdefghijklmnoprstuvwxyz"


class FollowFeature(RowSearch):
    """J chooses what to go along, { and } go."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("J", "choose_thread", "Along…", show=False, id="main.choose_thread",
                tooltip="Choose what to go along: partition, group, producer, fetch session, …"),
        Binding("right_curly_bracket", "on_thread(1)", "Next along", key_display="}", show=False,
                tooltip="The next exchange that has it in common", id="main.next_on_thread"),
        Binding("left_curly_bracket", "on_thread(-1)", "Previous along", key_display="{", show=False,
                tooltip="The exchange before that has it in common", id="main.previous_on_thread"),
    ]  # fmt: skip

    _thread: FollowKey | None = None

    def action_choose_thread(self) -> None:
        """What the exchange, and first of all the chosen field, can be gone along."""
        self._choose_thread(1)

    def _choose_thread(self, step: int) -> None:
        exchange = self.model.exchange
        threads = follow_keys(exchange) if exchange is not None else []
        if not threads:
            self.notify("this exchange has nothing in common with others that is known", timeout=3)
            return
        path = self.model.path
        near = sorted(threads, key=lambda thread: -_in_common(thread.path, path))[:_MOST]
        keys = _KEYS.ljust(_MOST)
        choices = [Choice(t.kind, clean(t.label), key.strip()) for t, key in zip(near, keys, strict=False)]

        def go(chosen: int | None) -> None:
            if chosen is not None:
                self._thread = near[chosen]
                self.action_on_thread(step)

        self.app.push_screen(Menu("Go along", choices), go)

    def action_on_thread(self, step: int) -> None:
        thread = self._thread
        if thread is None:
            self._choose_thread(step)
            return

        def find(rows: Int64) -> Go | None:
            number = thread.first(self.capture, rows)
            return None if number is None else partial(self.go_to_place, self._place_on(thread, number))

        self.seek(step, find, f"exchange of {thread.kind} {clean(thread.label)}")

    def _place_on(self, thread: FollowKey, number: int) -> Location:
        """The field that says a row is on a thread."""
        [exchange] = self.capture.at(range(number, number + 1))
        where = next((each.path for each in follow_keys(exchange) if each == thread), "")
        side, _, path = where.partition(".")
        return Location(number, side or None, path)


def _in_common(path: str, other: str) -> int:
    """Characters of the way that two paths share."""
    return next(
        (at for at, (one, two) in enumerate(zip(path, other, strict=False)) if one != two), min(len(path), len(other))
    )
