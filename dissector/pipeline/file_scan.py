"""Scans one file before it is ingested: its type, digest and times, and where reading can start in its middle.

Invariants:
  * a range begins where the one before it ended when the file was read from its beginning, so that all ranges together
    give the packets of the file, damaged or not, however they are joined and cut;
  * a file that is not a capture, or can't be opened, gives a finding and does not stop the run.
"""

from bisect import bisect_left, bisect_right
from contextlib import closing
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np

from dissector.capture.errors import CaptureError, DamagedRange, NoRoomError
from dissector.capture.file_opening import open_capture
from dissector.capture.files import Reader
from dissector.capture.packet_digest import PacketDigest
from dissector.capture.packet_times import PacketTimes
from dissector.capture.partition import COLUMN_BYTES
from dissector.core.finding import Finding, Severity
from dissector.core.store import Store
from dissector.pipeline.input_files import OnProgress, digest_and_file
from dissector.storage import KafkaFiles

RANGE_PACKETS: Final = 1 << 14
"""Most packets of a range as it is scanned: so many are skipped at most to read from any packet on."""


class PacketRange(NamedTuple):
    """Consecutive packets of a file."""

    first: int
    """Number of its first packet in the file, from 0."""
    packets: int
    mark: bytes
    """State of the reader at its beginning; empty for a file that is read from its beginning."""
    begin: int = 0
    """Offset in the file at which reading begins."""
    end: int = 0
    """Offset in the file at which it has ended; 0 for a file that is read whole."""
    skipped: int = 0
    """How many packets are behind the mark and before its first one."""


@dataclass
class FileScan:
    """The result of scanning one file."""

    path: str
    digest: str = ""
    """SHA-256 of its bytes: its name in the tables."""
    contents: str = ""
    """Digest of its packets (`PacketDigest`), or of the bytes of one of Kafka's own files, decompressed: the same in
    all files with the same contents. Empty if there are none, or if their times are made up, as those of a text."""
    size: int = 0
    packets: int = 0
    """Number of packets, or of entries in one of Kafka's own files."""
    block_bytes: int = 0
    """Bytes of its packets as blocks: more than the file's bytes if it is compressed."""
    first_ns: int = 0
    """Time of its first packet; 0 if there is none."""
    latest_ns: int = 0
    earliest_ns: int = 0
    link_types: list[int] = field(default_factory=list)
    has_times: bool = True
    """Whether its packets can be merged with those of other files."""
    is_stored: bool = False
    """Whether it is one of Kafka's own files, which has entries and no packets."""
    ranges: list[PacketRange] = field(default_factory=list)
    """All packets, a batch of the reader in each; or one range of a file that can only be read from its beginning."""
    times: PacketTimes = field(default_factory=PacketTimes, compare=False)
    problems: list[Finding] = field(default_factory=list)
    damage: list[DamagedRange] = field(default_factory=list)
    undecoded: DamagedRange | None = None
    """The part of a compressed file, by its compressed bytes, that could not be decompressed."""
    unread_reason: str = ""
    """Why the file could not be read; empty if it could."""
    secrets: bytes = field(default=b"", repr=False)
    """Key logs that it has, one behind the other."""

    @property
    def form(self) -> str:
        """The value of the column `form` in `captures`."""
        if self.unread_reason:
            return "unread"
        return "log" if self.is_stored else "capture" if self.has_times else "hex"

    @property
    def digests(self) -> tuple[str, ...]:
        """Digests by which it is known in the tables: of its bytes, and of its contents."""
        return tuple(filter(None, (self.digest, self.contents)))

    @property
    def is_read_alone(self) -> bool:
        """Whether a task reads it by itself, besides its packets: it gives rows that do not depend on other files."""
        has_damage = bool(self.damage) or self.undecoded is not None
        return self.is_stored or has_damage or bool(self.unread_reason and self.digest)

    @property
    def can_be_cut(self) -> bool:
        """Whether reading can begin in its middle."""
        return bool(self.ranges[0].mark)

    def part(self, begin: int, end: int) -> PacketRange:
        """Return the packets from number `begin` to before `end`, at least one, as a range."""
        first = self.ranges[bisect_right(self.ranges, begin, key=lambda each: each.first) - 1]
        last = self.ranges[bisect_left(self.ranges, end, key=lambda each: each.first) - 1]
        return PacketRange(begin, end - begin, first.mark, first.begin, last.end, begin - first.first)


def scan_file(path: str, most: int = RANGE_PACKETS, on_progress: OnProgress = lambda: None) -> FileScan:
    """Scan a file, at the `most` so many packets at a time. Problems of the file go to `problems`."""
    scan, stored = FileScan(path), KafkaFiles(show_secrets=False)
    try:
        scan.digest, scan.size, file = digest_and_file(path, on_progress)
        store = Store()
        reader = open_capture(file, store, stored)
        assert isinstance(reader, Reader)
    except OSError as error:
        _mark_unread(scan, f"{path}: {(error.strerror or str(error)).lower()}")
    except NoRoomError as error:
        scan.digest = ""  # a later run may have room for it
        _mark_unread(scan, str(error))
    except CaptureError as error:
        _mark_unread(scan, str(error))
    else:
        with closing(reader):
            _scan_packets(scan, reader, most, on_progress)
            if stored.count:
                _scan_entries(scan, stored)
            store.release()
    for problem in scan.problems:
        if problem.code == "not-read-on":  # no room on the disk: tables have a complete capture or nothing of it
            scan = FileScan(path)
            _mark_unread(scan, problem.message)
    return scan


def _scan_packets(scan: FileScan, reader: Reader, most: int, on_progress: OnProgress) -> None:
    scan.has_times = reader.has_times
    links: set[int] = set()
    digest = PacketDigest()
    mark, begun = reader.mark() if reader.can_be_resumed else b"", 0
    secrets: list[bytes] = []
    for batch in reader.batches(most):
        on_progress()
        secrets += reader.notes.take_secrets() if reader.notes else ()
        if not len(batch):
            continue
        if scan.has_times:
            digest.add(batch)
            scan.times.add(batch)
        if not scan.packets:
            scan.first_ns = scan.earliest_ns = scan.latest_ns = int(batch.time_ns[0])
        scan.earliest_ns = min(scan.earliest_ns, int(batch.time_ns.min()))
        scan.latest_ns = max(scan.latest_ns, int(batch.time_ns.max()))
        scan.block_bytes += int(batch.captured.sum()) + COLUMN_BYTES * len(batch)
        links.update(np.unique(batch.link_type).tolist())
        if reader.can_be_resumed:
            scan.ranges.append(PacketRange(scan.packets, len(batch), mark, begun, reader.done))
            mark, begun = reader.mark(), reader.done
        scan.packets += len(batch)
    if scan.packets and not scan.ranges:
        scan.ranges = [PacketRange(0, scan.packets, mark)]
    secrets += reader.notes.take_secrets() if reader.notes else ()
    scan.secrets = b"\n".join(secrets)
    if scan.packets and scan.has_times:
        scan.contents = digest.value(scan.secrets)
    scan.link_types = sorted(links)
    scan.problems += reader.problems
    scan.damage, scan.undecoded = reader.damaged, reader.undecoded


def _scan_entries(scan: FileScan, stored: KafkaFiles) -> None:
    """Scan one of Kafka's own files."""
    for _ in stored.read():
        pass
    scan.is_stored, scan.contents = True, stored.digest
    scan.packets = len(stored)
    if scan.packets:
        ends = [stored.exchange(number).row.time_ns for number in (0, scan.packets - 1)]
        scan.first_ns, (scan.earliest_ns, scan.latest_ns) = ends[0], sorted(ends)
    scan.problems += stored.problems
    scan.damage = stored.damage


def _mark_unread(scan: FileScan, reason: str) -> None:
    scan.unread_reason = reason
    scan.problems = [Finding("not-a-capture", Severity.ERROR, reason)]
