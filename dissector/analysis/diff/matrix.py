"""Put the behavior of any number of sides side by side: a line for each behavior, a column for each side."""

from collections.abc import Sequence
from dataclasses import dataclass

from dissector.analysis.diff.behavior import NOTHING, side_behavior
from dissector.analysis.diff.side import DiffSide
from dissector.analysis.diff.side_profile import SideProfile


@dataclass(frozen=True, slots=True)
class BehaviorMatrix:
    """`rows` are the lines: the name of a behavior, and the text of each side in the order of `labels`."""

    labels: tuple[str, ...]
    rows: tuple[tuple[str, tuple[str, ...]], ...]

    @property
    def is_same(self) -> bool:
        """Whether all sides behave the same."""
        return all(len(set(texts)) <= 1 for _, texts in self.rows)


def build_matrix(sides: Sequence[DiffSide]) -> BehaviorMatrix:
    """Return the behavior of all sides. A behavior that none of them has is left out."""
    columns = [side_behavior(SideProfile(side, {}, {})) for side in sides]
    names = dict.fromkeys(name for column in columns for name in column)
    rows = [(name, tuple(column.get(name, NOTHING) for column in columns)) for name in names]
    used = tuple((name, texts) for name, texts in rows if any(text != NOTHING for text in texts))
    return BehaviorMatrix(tuple(side.label for side in sides), used)
