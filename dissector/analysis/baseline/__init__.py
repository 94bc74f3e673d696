"""Baselines: what a client does on the wire, as a short text that people review, and captures held to it."""

from dissector.analysis.baseline.baseline import Baseline, observe
from dissector.analysis.baseline.baseline_file import BaselineError, read_baseline, write_baseline
from dissector.analysis.baseline.holding import choices, count_checks, hold, no_line

__all__ = [
    "Baseline",
    "BaselineError",
    "choices",
    "count_checks",
    "hold",
    "no_line",
    "observe",
    "read_baseline",
    "write_baseline",
]
