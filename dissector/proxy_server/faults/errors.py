"""The error of a rule that can't be read: one plain line with a column."""

from dissector.core.suggestions import alternatives
from dissector.core.text import clean


class FaultError(ValueError):
    """An invalid rule. `column` counts the characters of `text` from 0.

    >>> try:
    ...     with dissector.proxy("localhost:9092", listen=0) as traffic:
    ...         traffic.fault("api == Produce: dealy 2s")
    ... except dissector.FaultError as error:
    ...     print(error, error.near)
    column 17: unknown action 'dealy'; did you mean delay ('delay',)
    """

    def __init__(self, text: str, column: int, message: str, near: tuple[str, ...] = ()) -> None:
        hint = f"; did you mean {alternatives(near)}" if near else ""
        super().__init__(clean(f"column {column + 1}: {message}{hint}"))
        self.text = text
        self.column = column
        self.message = message
        self.near = near


class WordError(Exception):
    """A part of a rule that can't be read, at `column` of that part."""

    def __init__(self, column: int, message: str, near: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.column = column
        self.message = message
        self.near = near
