"""Two sides of conversations compared: what each does that the other does not, and why. `diff` begins it; `matrix` puts
any number of sides beside each other."""

from dissector.analysis.diff.compare import Matches, diff
from dissector.analysis.diff.comparison import (
    Aligned,
    Comparison,
    Difference,
    Entry,
    Pair,
    Reason,
    SideSummary,
    Timing,
    Verdict,
)
from dissector.analysis.diff.matrix import Matrix, matrix
from dissector.analysis.diff.sides import Side

__all__ = [
    "Aligned",
    "Comparison",
    "Difference",
    "Entry",
    "Matches",
    "Matrix",
    "Pair",
    "Reason",
    "Side",
    "SideSummary",
    "Timing",
    "Verdict",
    "diff",
    "matrix",
]
