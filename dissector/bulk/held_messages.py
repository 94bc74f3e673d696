"""The plain messages of some rows, held while several readers go through them: to find, mask and join them takes longer
than most of what is read.

Invariant: a reader gets the messages that `BodyColumns` gives for the same rows, but for those that it takes besides
`in_columns` or `for_words`: rows with one of these need a careful look, and are not asked for.
"""

from collections.abc import Iterator

import numpy as np

from dissector.bulk.body_columns import BodyColumns, Messages
from dissector.core.arrays import Int64

_NO_ROWS = np.zeros(0, np.int64)


class HeldMessages(BodyColumns):
    """Those of one capture, of some rows at a time."""

    _all: tuple[Int64, dict[bool, list[Messages]]] = _NO_ROWS, {}
    _some = _all

    def hold(self, rows: Int64) -> None:
        """Hold the messages of rows of the index, ascending, in place of those that were held before."""
        sides = {side: list(super(HeldMessages, self).messages(rows, is_request=side)) for side in (True, False)}
        self._all = self._some = rows, sides

    def release(self) -> None:
        """Hold nothing."""
        self._all = self._some = _NO_ROWS, {}

    def messages(
        self, rows: Int64, *, is_request: bool, in_columns: bool = False, joins: bool = False
    ) -> Iterator[Messages]:
        """Those of some of the rows that are held."""
        if not np.array_equal(rows, self._some[0]):
            self._some = rows, self._of(rows)
        yield from self._some[1][is_request]

    def _of(self, rows: Int64) -> dict[bool, list[Messages]]:
        held, sides = self._all
        if len(rows) == len(held):
            return sides
        places = np.full(len(held), -1)
        places[np.searchsorted(held, rows)] = np.arange(len(rows))
        return {
            side: [some for each in all_of if len((some := _chosen(each, places)).at)] for side, all_of in sides.items()
        }


def _chosen(messages: Messages, places: Int64) -> Messages:
    """Messages without those of rows that are not asked for, whose place is -1."""
    at = places[messages.at]
    some = np.flatnonzero(at >= 0)
    return messages._replace(at=at[some], frames=messages.frames.at(some))
