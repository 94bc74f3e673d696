"""Rows of files that are read alone: Kafka's own files, and files with parts that could not be read.

Invariant: nobody knows what unreadable bytes are, so they may be secrets. The first ones of a part of a capture are
kept if secrets are shown and contents of records are not hashed; of a file that is no capture none ever is.
"""

import pickle
from collections.abc import Iterator
from typing import Final

from dissector.capture.errors import CaptureError, DamagedRange
from dissector.capture.file_opening import ALL_FILES, open_capture
from dissector.capture.files import Reader
from dissector.capture_session.tally import CaptureTally, PartitionTally
from dissector.core.store import Store
from dissector.pipeline.file_scan import FileScan
from dissector.pipeline.input_files import bytes_of, input_file
from dissector.pipeline.origins import Origin
from dissector.pipeline.partition_rows import WriteOptions, rows_of_kafka_file
from dissector.pipeline.splits import changed_file
from dissector.tables.data_files import TALLIES
from dissector.tables.row_batches import Cells, TableRow

KEPT_BYTES: Final = 64 << 10
"""Maximum bytes that are kept of an unreadable part."""


def rows_of_file(scan: FileScan, options: WriteOptions, epoch: int) -> Iterator[TableRow]:
    """Yield the table and the row of everything in a file that is read alone."""
    origin = Origin(0, scan.digest, scan.earliest_ns, epoch)
    where = origin.keys | {"path": scan.path}
    try:
        if scan.is_stored:
            yield from rows_of_kafka_file(scan.path, origin, options)
        for cells in _unread(scan, keeps_bytes=options.secrets and options.records):
            yield "quarantine", where | cells
    except (OSError, CaptureError):
        tally = CaptureTally(file_problems=[changed_file(scan.path)])
        yield TALLIES, {"tally": pickle.dumps(PartitionTally([tally], CaptureTally()))}


def _unread(scan: FileScan, *, keeps_bytes: bool) -> Iterator[Cells]:
    """Yield the parts of a file that could not be read."""
    if scan.unread_reason:
        yield {"at": None, "packet": None, "size": scan.size, "reason": scan.unread_reason, "data": None}
        return
    if scan.undecoded is not None:
        at, size = scan.undecoded.at, min(scan.undecoded.size, KEPT_BYTES)
        yield _cells(scan.undecoded, bytes_of(scan.path, at, size) if keeps_bytes else None)
    if not (keeps_bytes and scan.damage):
        yield from (_cells(damaged, None) for damaged in scan.damage)
        return
    store = Store()
    reader = open_capture(input_file(scan.path), store, ALL_FILES)
    assert isinstance(reader, Reader)
    try:
        if not reader.can_be_resumed:  # a compressed file must be read completely before its bytes can be read
            for _ in reader.batches():
                pass
        for damaged in scan.damage:
            yield _cells(damaged, reader.bytes_at(damaged.at, min(damaged.size, KEPT_BYTES)))
    finally:
        store.release()
        reader.close()


def _cells(damaged: DamagedRange, data: bytes | None) -> Cells:
    return {"at": damaged.at, "packet": damaged.packet, "size": damaged.size, "reason": damaged.reason, "data": data}
