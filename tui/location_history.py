"""Where a user has been: places that were jumped from, to go back to and forth again.

Invariants:
  * no place stands twice in a row;
  * who goes back and then jumps elsewhere has nothing to go forward to: as in editors and browsers.
"""

from collections.abc import Callable
from typing import Final, NamedTuple

KEPT: Final = 1_000
"""Places; the oldest go first."""


class Location(NamedTuple):
    """A row from 0, one of its messages (``request`` or ``response``; None where any will do), a field of that by its
    path from the message's root (empty where none is meant)."""

    number: int
    side: str | None = None
    path: str = ""


class LocationHistory:
    """Places behind, places ahead."""

    def __init__(self) -> None:
        self._behind: list[Location] = []
        self._ahead: list[Location] = []

    def leave(self, place: Location) -> None:
        """Remember a place that is jumped from."""
        if not self._behind or self._behind[-1] != place:
            self._behind.append(place)
            del self._behind[:-KEPT]
        self._ahead.clear()

    def back(self, here: Location, is_shown: Callable[[int], bool]) -> Location | None:
        """The place that was jumped from last, of those whose row is shown; `here` is ahead then. None where there is
        no such place."""
        return _step(self._behind, self._ahead, here, is_shown)

    def forward(self, here: Location, is_shown: Callable[[int], bool]) -> Location | None:
        """The place that one went back from last; None where there is none."""
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
