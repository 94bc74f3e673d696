"""Two sides of conversations compared: what each does that the other does not, and why. `diff` begins it."""

from dissector.analysis.diff.compare import diff
from dissector.analysis.diff.comparison import Comparison, Difference, Entry, Pair, Reason, SideSummary, Verdict
from dissector.analysis.diff.sides import Side

__all__ = ["Comparison", "Difference", "Entry", "Pair", "Reason", "Side", "SideSummary", "Verdict", "diff"]
