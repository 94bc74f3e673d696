"""Two sides of conversations compared: what each does that the other does not, and why. `diff` begins it; `matrix` puts
any number of sides beside each other."""

from dissector.analysis.diff.compare import diff
from dissector.analysis.diff.comparison import (
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
    "Comparison",
    "Difference",
    "Entry",
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
