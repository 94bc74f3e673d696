"""What an ingest has written: its rows counted, what its partitions ignored, and its commit: rows first, and then the
captures, which make them count."""

import pickle
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from dissector.capture_session.tally import CaptureTally, PartitionTally
from dissector.core.finding import Finding
from dissector.core.version import version
from dissector.exchange.to_json import finding_object
from dissector.pipeline.file_scan import FileScan
from dissector.pipeline.origins import FileOrigins, Origin, merged_with
from dissector.pipeline.partition_rows import WriteOptions
from dissector.tables.data_files import DataFile
from dissector.tables.delta_log import CAPTURES, append_facts, digests_of, put_captures, remove_facts
from dissector.tables.maintenance import compact_crowded
from dissector.tables.row_batches import Cells
from dissector.tables.schemas import FACT_TABLES


def commit(
    uri: str, files: Iterable[DataFile], scans: Sequence[FileScan], epoch: int, options: WriteOptions,
    problems: Sequence[Finding], origins: FileOrigins, transaction: tuple[str, int] | None = None,
) -> None:  # fmt: skip
    """Commit data files and their captures, in place of what earlier ingests of the same captures wrote, or of others
    with the same contents. `problems` are those of all files together. A `transaction` makes the rows land once
    (`append_facts`)."""
    files = list(files)
    crowded = append_facts(uri, (file for file in files if file.table in FACT_TABLES), transaction)
    merged = merged_with(scans)
    others = _other_connections(files, origins)
    mine = [
        _capture_row(scan, epoch, options, problems)
        | {"merged_with": merged[scan.path], "other_connections": others.get(scan.digest)}
        for scan in scans
    ]

    def latest(captures: Sequence[Cells]) -> list[Cells]:
        later = {digest for each in captures if each["epoch"] >= epoch for digest in digests_of(each)}
        return [row for row in mine if later.isdisjoint(digests_of(row))]

    put = {row["capture"] for row in put_captures(uri, latest)}
    if transaction is None:
        remove_facts(uri, [row for row in mine if row["capture"] not in put])
    compact_crowded(uri, (*crowded, CAPTURES))


def rows_by_table(files: Iterable[DataFile]) -> dict[str, int]:
    """Return how many rows each table has got."""
    counts = Counter[str]()
    for file in files:
        counts[file.table] += file.rows
    return {name: counts[name] for name in FACT_TABLES}


def partition_tallies(files: Sequence[DataFile]) -> list[PartitionTally]:
    """Return the tallies of partitions."""
    return [pickle.loads(file.tally) for file in files if file.tally is not None]


def total_tally(files: Sequence[DataFile]) -> CaptureTally:
    """Return the tally of what all partitions ignored."""
    tallies = partition_tallies(files)
    shuffled = [tally for partition in tallies for tally in partition.shuffled]
    return CaptureTally.merged(shuffled, [partition.tally for partition in tallies])


def _other_connections(files: Sequence[DataFile], origins: FileOrigins) -> dict[str, list[int]]:
    """Return by the digest of a capture, the first one of those that were merged, where the TCP connections begin that
    have no row; nothing if a partition goes on, as its connections may get one."""
    found = [tally.others for tally in partition_tallies(files)]
    packets = np.sort(np.concatenate([np.zeros(0, np.int64), *(each for each in found if each is not None)]))
    if not found or any(each is None for each in found):
        return {}
    firsts = np.array([origin.first for origin in origins.ranges], np.int64)
    pieces = np.split(packets, np.searchsorted(packets, firsts[1:]))
    return {
        origin.digest: (piece - origin.first + 1).tolist() for origin, piece in zip(origins.ranges, pieces, strict=True)
    }


def are_current(captures: Iterable[Cells], options: WriteOptions) -> Iterator[Cells]:
    """Yield the rows of `captures` of this version and with these options: to ingest these again changes nothing."""
    now, words = version("kafka-dissector"), options.words
    return (each for each in captures if each["version"] == now and each["options"] == words)


def _capture_row(scan: FileScan, epoch: int, options: WriteOptions, problems: Sequence[Finding]) -> Cells:
    """Return the row of `captures`. Files with packets also get the problems of all files together."""
    found = (*scan.problems, *(problems if scan.ranges else ()))
    return Origin(0, scan.digest, scan.earliest_ns, epoch).keys | {
        "digest": scan.digest, "path": scan.path, "bytes": scan.size, "packets": scan.packets, "form": scan.form,
        "first_ns": scan.first_ns, "begin_ns": scan.earliest_ns, "end_ns": scan.latest_ns,
        "link_types": scan.link_types, "version": version("kafka-dissector"), "options": options.words,
        "problems": [finding_object(each) for each in found], "contents": scan.contents or None,
    }  # fmt: skip
