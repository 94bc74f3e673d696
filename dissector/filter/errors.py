"""Errors of filters: one plain line, a column, and suggestions."""

from dissector.core.suggestions import alternatives
from dissector.core.text import clean


class FilterError(ValueError):
    """An invalid filter. `column` counts the characters of `text` from 0; `near` has suggestions, the best one first.

    >>> try:
    ...     capture.exchanges("api == Fecth")
    ... except dissector.FilterError as error:
    ...     print(error, error.near)
    column 8: unknown API 'Fecth'; did you mean Fetch ('Fetch',)
    """

    def __init__(
        self, text: str, column: int, message: str, near: tuple[str, ...] = (), *, is_syntax: bool = False
    ) -> None:
        hint = f"expected {alternatives(near)}" if is_syntax else f"did you mean {alternatives(near)}"
        self.words = f"{message}; {hint}" if near else message
        """The message with the suggestions."""
        super().__init__(clean(f"column {column + 1}: {self.words}"))
        self.text = text
        self.column = column
        self.message = message
        self.near = near


class MismatchError(Exception):
    """A value or operator that a field can't be compared with, at `column`."""

    def __init__(self, column: int, message: str, near: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.column = column
        self.message = message
        self.near = near
