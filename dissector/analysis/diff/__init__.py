"""Compare captures: what one side does that the other does not, and why.

`diff` compares two sides field by field; `build_matrix` puts the behavior of any number of sides side by side.
"""

from dissector.analysis.diff.behavior import BehaviorMatrix, build_matrix
from dissector.analysis.diff.compare import ManualMatches, compared, diff, profiled
from dissector.analysis.diff.result import (
    ComparedField,
    DiffEntry,
    DiffReason,
    DiffResult,
    ExchangePair,
    FieldDifference,
    PairVerdict,
    SideSummary,
    TimingSummary,
)
from dissector.analysis.diff.side import DiffSide

__all__ = [
    "BehaviorMatrix",
    "ComparedField",
    "DiffEntry",
    "DiffReason",
    "DiffResult",
    "DiffSide",
    "ExchangePair",
    "FieldDifference",
    "ManualMatches",
    "PairVerdict",
    "SideSummary",
    "TimingSummary",
    "build_matrix",
    "compared",
    "diff",
    "profiled",
]
