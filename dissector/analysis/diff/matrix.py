"""Several sides beside each other: a line for each thing that clients do, a column for each side."""

from collections.abc import Sequence
from dataclasses import dataclass

from dissector.analysis.diff.behavior import NOTHING, side_behavior
from dissector.analysis.diff.side import DiffSide
from dissector.analysis.diff.side_profile import SideProfile


@dataclass(frozen=True, slots=True)
class BehaviorMatrix:
    """`rows` are the lines: what it is, and the words for each side, in the order of `labels`."""

    labels: tuple[str, ...]
    rows: tuple[tuple[str, tuple[str, ...]], ...]

    @property
    def is_same(self) -> bool:
        """Whether all sides do all things alike."""
        return all(len(set(words)) <= 1 for _, words in self.rows)


def build_matrix(sides: Sequence[DiffSide]) -> BehaviorMatrix:
    """The behaviour of several sides. What none of them does has no line."""
    columns = [side_behavior(SideProfile(side, {}, {})) for side in sides]
    names = dict.fromkeys(name for column in columns for name in column)
    lines = [(name, tuple(column.get(name, NOTHING) for column in columns)) for name in names]
    there = tuple((name, words) for name, words in lines if any(word != NOTHING for word in words))
    return BehaviorMatrix(tuple(side.label for side in sides), there)
