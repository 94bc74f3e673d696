"""Pairs of exchanges as columns: there is one for each exchange of a capture, and a report shows few of them; and the
steps of a workflow, which are paired as wholes: consecutive exchanges of one key are one step.

Invariants: a row of either side is in one pair at most; rows ascend, so a step is a stretch of them.
"""

from array import array
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple, overload

import numpy as np

from dissector.analysis.diff.kept_numbers import as_column, extend, no_numbers
from dissector.analysis.diff.result import ExchangePair, PairVerdict
from dissector.core.arrays import Bool, Int64
from dissector.core.columns import tuples

NO_ROW: Final = -1
VERDICTS: Final = tuple(PairVerdict)
_NUMBERS: Final = {verdict: number for number, verdict in enumerate(VERDICTS)}


class RowStretches(NamedTuple):
    """Stretches of rows of one side, `(n,)`: those of a key, or of a step of a workflow."""

    rows: Int64
    """All rows of which these are stretches."""
    starts: Int64
    sizes: Int64

    def where(self, chosen: Bool | Int64) -> "RowStretches":
        """Some of the stretches: where a mask is set, or at some places."""
        return RowStretches(self.rows, self.starts[chosen], self.sizes[chosen])

    def after(self, sizes: Int64) -> "RowStretches":
        """What comes after so many rows of each stretch."""
        return RowStretches(self.rows, self.starts + sizes, self.sizes - sizes)

    def first(self, sizes: Int64) -> Int64:
        """The first so many rows of each stretch, one stretch after the other."""
        ends = np.cumsum(sizes)
        first: Int64 = self.rows[np.repeat(self.starts - ends + sizes, sizes) + np.arange(ends[-1] if len(ends) else 0)]
        return first


def whole_stretch(rows: "array[int]") -> RowStretches:
    """Return rows as one stretch."""
    return RowStretches(as_column(rows), np.zeros(1, np.int64), np.array([len(rows)], np.int64))


class ExchangePairs(Sequence[ExchangePair]):
    """Pairs, made when they are looked at."""

    def __init__(self, a: Int64, b: Int64, verdicts: Int64) -> None:
        """Rows of A and of B, `NO_ROW` where a side has none, and places in `VERDICTS`, `(n,)` each."""
        self._a = a
        self._b = b
        self._verdicts = verdicts

    def __len__(self) -> int:
        return len(self._a)

    @overload
    def __getitem__(self, at: int) -> ExchangePair: ...

    @overload
    def __getitem__(self, at: slice) -> "ExchangePairs": ...

    def __getitem__(self, at: int | slice) -> "ExchangePair | ExchangePairs":
        if isinstance(at, slice):
            return ExchangePairs(self._a[at], self._b[at], self._verdicts[at])
        return _pair(int(self._a[at]), int(self._b[at]), int(self._verdicts[at]))

    def __iter__(self) -> Iterator[ExchangePair]:
        return (_pair(a, b, verdict) for a, b, verdict in tuples(self._a, self._b, self._verdicts))

    def with_rows(self, a: int | None, b: int | None) -> Iterator[ExchangePair]:
        """Yield the pairs that have a row of A, or one of B."""
        has_row = np.zeros(len(self), np.bool_)
        for rows, row in ((self._a, a), (self._b, b)):
            if row is not None:
                has_row |= rows == row
        return (self[at] for at in np.flatnonzero(has_row).tolist())


class PairColumns:
    """Collects pairs."""

    def __init__(self) -> None:
        none = np.zeros(0, np.int64)
        self._parts = [(none, none, none)]

    def add_stretches(self, a: RowStretches, b: RowStretches, verdicts: Sequence[PairVerdict]) -> None:
        """Pair the n-th row of a stretch of A with the n-th of B's; further ones of either side are repetitions, and so
        belong to no pair if the other side has none."""
        both = np.minimum(a.sizes, b.sizes)
        numbers = np.array([_NUMBERS[each] for each in verdicts], np.int64)
        self._add(a.first(both), b.first(both), np.repeat(numbers, both))
        self._add_rest(a.after(both), both > 0, PairVerdict.ONLY_A)
        self._add_rest(b.after(both), both > 0, PairVerdict.ONLY_B)

    def add_alone(self, rows: RowStretches, verdict: PairVerdict) -> None:
        """Add the rows of stretches that only one side has."""
        self._add_rest(rows, np.zeros(len(rows.sizes), np.bool_), verdict)

    def _add_rest(self, rest: RowStretches, is_of_both: Bool, alone: PairVerdict) -> None:
        rows = rest.first(rest.sizes)
        none = np.full(len(rows), NO_ROW)
        numbers = np.where(is_of_both, _NUMBERS[PairVerdict.MORE], _NUMBERS[alone])
        a, b = (rows, none) if alone is PairVerdict.ONLY_A else (none, rows)
        self._add(a, b, np.repeat(numbers, rest.sizes))

    def _add(self, a: Int64, b: Int64, verdicts: Int64) -> None:
        if len(a):
            self._parts.append((a, b, verdicts))

    def listed(self, share: float) -> ExchangePairs:
        """Return the pairs in the order in which they are listed: by A's row; rows of B alone at the same relative
        position. `share` is how many rows A has for each of B."""
        a, b, verdicts = (np.concatenate(parts) for parts in zip(*self._parts, strict=True))
        is_alone = a == NO_ROW
        order = np.lexsort((b, is_alone, np.where(is_alone, b * share, a)))
        return ExchangePairs(a[order], b[order], verdicts[order])


def _pair(a: int, b: int, verdict: int) -> ExchangePair:
    return ExchangePair(None if a == NO_ROW else a, None if b == NO_ROW else b, VERDICTS[verdict])


class Steps(NamedTuple):
    """Steps in order, `(n,)`: the numbers of their keys, and their rows."""

    keys: Int64
    rows: RowStretches


class WorkflowSteps:
    """Collects the exchanges of one workflow."""

    def __init__(self) -> None:
        self._rows = no_numbers()
        self._keys = no_numbers()

    def add(self, rows: Int64, keys: Int64) -> None:
        """Add rows, ascending, and the numbers of their keys."""
        extend(self._rows, rows)
        extend(self._keys, keys)

    def steps(self) -> Steps:
        """Return the steps of all exchanges so far."""
        keys = as_column(self._keys)
        starts = np.flatnonzero(np.diff(keys, prepend=-1))
        sizes = np.diff(starts, append=len(keys))
        return Steps(keys[starts], RowStretches(as_column(self._rows), starts, sizes))
