"""The steps of a workflow, as columns: consecutive exchanges of one key are one step.

Invariant: rows ascend, so a step is a stretch of them.
"""

from typing import NamedTuple

import numpy as np

from dissector.analysis.diff.exchange_pairs import RowStretches
from dissector.analysis.diff.kept_numbers import as_column, extend, no_numbers
from dissector.core.arrays import Int64


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
