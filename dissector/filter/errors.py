"""Errors of filters: one plain line, a column, and suggestions."""

from collections.abc import Iterable
from difflib import get_close_matches

from dissector.core.text import clean


class FilterError(ValueError):
    """An invalid filter. `column` counts characters of `text` from 0; `near` are suggestions, the best first.

    >>> try:
    ...     capture.exchanges("api == Fecth")
    ... except dissector.FilterError as error:
    ...     print(error, error.near)
    column 8: unknown API 'Fecth'; did you mean Fetch ('Fetch',)
    """

    def __init__(
        self, text: str, column: int, message: str, near: tuple[str, ...] = (), *, is_syntax: bool = False
    ) -> None:
        hint = f"expected {' or '.join(near)}" if is_syntax else f"did you mean {', '.join(near)}"
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


def nearest(word: str, names: Iterable[str], most: int = 3) -> tuple[str, ...]:
    """Return the names most similar to a word, ignoring case; if none is, those that begin with it or contain it."""
    by_folded = {name.casefold(): name for name in names}
    folded = word.casefold()
    found = get_close_matches(folded, by_folded, n=most, cutoff=0.6)
    if not found:
        begin = sorted((name for name in by_folded if name.startswith(folded)), key=len)
        hold = sorted((name for name in by_folded if folded in name), key=len) if len(folded) > 2 else []
        found = list(dict.fromkeys([*begin, *hold]))[:most]
    return tuple(by_folded[name] for name in found)
