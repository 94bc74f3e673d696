"""Locations that the user jumped from, to go back to and forward again.

Invariants:
  * no location occurs twice in a row;
  * a jump after going back clears the way forward, as in editors and browsers.
"""

from collections.abc import Callable
from typing import Final, NamedTuple

KEPT: Final = 1_000
"""Locations; the oldest are dropped first."""


class Location(NamedTuple):
    """A row from 0, one of its messages (``request`` or ``response``; None for either), a field by its path from the
    message's root (empty for none)."""

    number: int
    side: str | None = None
    path: str = ""


class LocationHistory:
    """The locations behind and ahead."""

    def __init__(self) -> None:
        self._behind: list[Location] = []
        self._ahead: list[Location] = []

    def push(self, place: Location) -> None:
        """Remember a location that is jumped from."""
        if not self._behind or self._behind[-1] != place:
            self._behind.append(place)
            del self._behind[:-KEPT]
        self._ahead.clear()

    def back(self, here: Location, is_shown: Callable[[int], bool]) -> Location | None:
        """Return the last location that was jumped from and whose row is shown; `here` is ahead then. None if there is
        none."""
        return _step(self._behind, self._ahead, here, is_shown)

    def forward(self, here: Location, is_shown: Callable[[int], bool]) -> Location | None:
        """Return the last location that the user went back from; None if there is none."""
        return _step(self._ahead, self._behind, here, is_shown)


def _step(
    source: list[Location], target: list[Location], here: Location, is_shown: Callable[[int], bool]
) -> Location | None:
    while source:
        place = source.pop()
        if place != here and is_shown(place.number):
            target.append(here)
            return place
    return None
