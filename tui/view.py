"""Which rows the list shows, and in which order: positions in the list to rows of the capture and back.

Invariant: no row stands at two positions.
"""


class View:
    """All rows, as they are numbered."""

    def __init__(self) -> None:
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def grow(self, count: int) -> None:
        """The capture has so many rows now."""
        self._count = count

    def number(self, position: int) -> int:
        """The row at a position of the list, both from 0."""
        return position

    def position(self, number: int) -> int | None:
        """Where the list shows a row; None where it does not."""
        return number if 0 <= number < self._count else None
