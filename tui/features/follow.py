"""Follows what exchanges have in common: a partition, a group's generation, a producer's epoch, a fetch session."""

from functools import partial
from typing import ClassVar, Final

from textual.binding import Binding

from dissector.analysis.follow_keys import FollowKey, follow_keys
from dissector.core.arrays import Int64
from dissector.core.text import clean
from tui.feature import GO, ScreenFeature
from tui.features.row_search import Go, RowSearchFeature
from tui.location_history import Location
from tui.screens.core_screen import CoreScreen
from tui.screens.dialog import Choice, Menu

_MOST: Final = 200
"""Choices of the menu: a Metadata response may name thousands of partitions."""
_KEYS: Final = "123456789abcdefghijklmnoprstuvwxyz"


class FollowFeature(ScreenFeature[CoreScreen]):
    """J chooses what to follow, { and } go to the previous and next exchange."""

    GROUP = GO

    BINDINGS: ClassVar[list[Binding]] = [
        Binding("J", "choose_key", "Follow…", show=False, id="main.follow",
                tooltip="Follow a partition, group, producer, fetch session, …"),
        Binding("right_curly_bracket", "follow_key(1)", "Next followed", key_display="}", show=False,
                tooltip="Next exchange about what you follow", id="main.next_followed"),
        Binding("left_curly_bracket", "follow_key(-1)", "Previous followed", key_display="{", show=False,
                tooltip="Previous exchange about what you follow", id="main.previous_followed"),
    ]  # fmt: skip

    _key: FollowKey | None = None

    def action_choose_key(self) -> None:
        """Choose a key to follow; those of the selected field come first."""
        self._choose_key(1)

    def _choose_key(self, step: int) -> None:
        exchange = self.screen.model.exchange
        keys_of_row = follow_keys(exchange) if exchange is not None else []
        if not keys_of_row:
            self.notify("this exchange has nothing to follow", timeout=3)
            return
        path = self.screen.model.path
        near = sorted(keys_of_row, key=lambda key: -_in_common(key.path, path))[:_MOST]
        keys = _KEYS.ljust(_MOST)
        choices = [Choice(t.kind, clean(t.label), key.strip()) for t, key in zip(near, keys, strict=False)]

        def go(chosen: int | None) -> None:
            if chosen is not None:
                self._key = near[chosen]
                self.action_follow_key(step)

        self.app.push_screen(Menu("Follow", choices), go)

    def action_follow_key(self, step: int) -> None:
        key = self._key
        if key is None:
            self._choose_key(step)
            return

        def find(rows: Int64) -> Go | None:
            number = key.first(self.screen.capture, rows)
            return None if number is None else partial(self.screen.go_to_place, self._place_on(key, number))

        self.screen.feature(RowSearchFeature).search(step, find, f"exchanges of {key.kind} {clean(key.label)}")

    def _place_on(self, key: FollowKey, number: int) -> Location:
        """Return the location of the followed key in a row."""
        [exchange] = self.screen.capture.at(range(number, number + 1))
        where = next((each.path for each in follow_keys(exchange) if each == key), "")
        side, _, path = where.partition(".")
        return Location(number, side or None, path)


def _in_common(path: str, other: str) -> int:
    """Return the length of the common prefix of two paths."""
    return next(
        (at for at, (one, two) in enumerate(zip(path, other, strict=False)) if one != two), min(len(path), len(other))
    )
