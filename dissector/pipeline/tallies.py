"""Tallies of partitions, which come beside their data files: what was ignored, and which files had problems."""

import pickle
from collections.abc import Sequence

from dissector.capture_session.tally import CaptureTally, PartitionTally
from dissector.tables.data_files import DataFile


def partition_tallies(files: Sequence[DataFile]) -> list[PartitionTally]:
    """Return the tallies of partitions."""
    return [pickle.loads(file.tally) for file in files if file.tally is not None]


def total_tally(files: Sequence[DataFile]) -> CaptureTally:
    """Return the tally of what all partitions ignored."""
    tallies = partition_tallies(files)
    shuffled = [tally for partition in tallies for tally in partition.shuffled]
    return CaptureTally.merged(shuffled, [partition.tally for partition in tallies])
