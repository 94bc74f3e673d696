"""Sums of hashes of the records of many batches: two sides have produced the same records if their sums are equal.

A record's hash covers its key, value and headers, in the bytes that the wire has: no client encodes equal ones in
others. The key of the hashes is random in each process, so that nobody can craft records with equal ones.

Invariants, held by tests:
  * the sums of a batch do not depend on the order of its records, nor on their offsets and times;
  * a batch that can't be decompressed within the budget of a frame of its own, or is damaged, is an error and adds
    nothing.
"""

import os
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from dissector.core import limits
from dissector.core.arrays import UInt8
from dissector.core.kernel import kernel_function
from dissector.protocol.records.columns import BatchError, Entries, column
from dissector.protocol.records.entries import LEAST_RECORD
from dissector.protocol.records.opened_sections import HEADER, OpenedSections

_sum_records = kernel_function("sum_records", "PqPqPP")
RECORD_SUM: Final = np.dtype([("records", np.uint64), ("keyed", np.uint64), ("keyed_count", np.uint64)])
"""Of a batch: the sum over its records, the sum over those with a key, and how many these are. It is `KernelRecordSum`
in C."""
Sums = npt.NDArray[Any]
"""An array of `RECORD_SUM`."""
_KEY: Final = np.frombuffer(os.urandom(16), np.uint8)


class RecordSummation:
    """Sums up records. It keeps its buffers for the next ones."""

    def __init__(self, bounds: limits.Limits = limits.DEFAULT) -> None:
        self._bounds = bounds
        self._opened = OpenedSections(bounds)

    def sums(self, data: UInt8, batches: Entries) -> Sums:
        """Return the sums of batches in `data`, `(n,)`; of one that can't be read the error is set."""
        sums = np.zeros(len(batches), RECORD_SUM)
        first = 0
        while first < len(batches):
            opened = self._opened.open(data, batches[first:])
            some = batches[first : first + opened]
            self._refuse_many_records(some)
            _sum(self._opened.data, some, sums[first : first + opened], _KEY)
            first += opened
            if not opened:
                batches["error"][first] = BatchError.REFUSED
                first += 1
        return sums

    def _refuse_many_records(self, batches: Entries) -> None:
        """Refuse batches that have more records than their bytes on the wire account for."""
        packed = column(batches, "end") - column(batches, "start") - HEADER
        room = (column(batches, "section_end") - column(batches, "section_start")) // LEAST_RECORD
        most = np.minimum(self._bounds.frame_records, self._bounds.packed_records + packed)
        batches["error"][np.minimum(column(batches, "records_count"), room) > most] = BatchError.REFUSED


def _sum(data: UInt8, batches: Entries, sums: Sums, key: UInt8) -> None:
    """Fill `sums` with those of batches whose plain sections are in `data`."""
    _sum_records()(
        data.ctypes.data, len(data), batches.ctypes.data, len(batches), key.ctypes.data, sums.ctypes.data
    )  # fmt: skip
