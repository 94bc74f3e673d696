"""The stages of a capture, wired: packets of its files go through transport and framing into the index.

One step takes one batch of packets all the way down. What the stages count, and what is wrong with the files, is
collected here.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, islice
from typing import Final, NamedTuple

import numpy as np

from dissector.capture.errors import CaptureError
from dissector.capture.file_opening import open_capture, raise_open_file_limit
from dissector.capture.files import GrowingFile, OpenFile
from dissector.capture.merge import PacketMerger
from dissector.capture.packet_objects import PacketObjects
from dissector.capture.partition import CapturePartition
from dissector.capture.process_notes import ProcessNote
from dissector.capture.sources import TRUNCATED
from dissector.capture_session.checkpoint import Checkpoint
from dissector.capture_session.tally import CaptureTally, omitted_findings
from dissector.capture_session.tls_problems import TlsTally, problems_of_key_logs
from dissector.capture_session.unreachable import Unreachable
from dissector.core.arrays import Int64
from dissector.core.batches import FrameBatch, PacketBatch
from dissector.core.expansion import RUN
from dissector.core.finding import Finding
from dissector.core.limits import Limits
from dissector.core.process_memory import trim
from dissector.core.stage import StageChain
from dissector.core.store import Store
from dissector.detection.decode_as import DecodeAs
from dissector.framing import Framer
from dissector.index.indexer import Indexer
from dissector.storage import KafkaFiles
from dissector.tls import KeyLog, KeyLogError, KeyLogFile, TlsStage
from dissector.transport import Transport
from dissector.transport.partitions import Partition

NO_CONNECTIONS: Final[Int64] = np.zeros(0, np.int64)
_READERS_PER_LOOK: Final = 16
"""Files whose bytes are summed up for one report of progress, on average."""
NEAR_SECRETS: Final = 1 << 14
"""Runs of a TLS connection that a pcapng file may have before a block with its secrets."""
Source = str | GrowingFile | OpenFile | CapturePartition | PacketObjects
"""What is opened: a path (``-`` is standard input), a file that grows or is open, a part of a capture, packets."""


class Progress(NamedTuple):
    """How far reading is, in bytes of all files as they are on disk. `total` is 0 where it is unknown, as a pipe or a
    file that grows is among them."""

    done: int
    total: int
    packets: int
    exchanges: int
    """Rows so far."""


class StagePipeline:
    """Reads packets and feeds them to the stages. Opening reads the beginnings of files only.

    Raises `CaptureError` where a file can't be opened, or where a pipe turns out to be no capture.
    """

    def __init__(
        self, sources: Sequence[Source], limits: Limits, decode_as: Sequence[DecodeAs], restored: Checkpoint | None, *,
        key_logs: Sequence[str], response_to: tuple[int, int] | None, show_secrets: bool,
    ) -> None:  # fmt: skip
        self._limits = limits
        self.store = Store() if restored is None else restored.store
        self.files = KafkaFiles(show_secrets=show_secrets)
        """Kafka's own files: they have no packets, and their rows come before those of exchanges."""
        raise_open_file_limit(len(sources))
        self._readers = [
            open_capture(each, self.store, self.files, response_to=response_to, limits=limits) for each in sources
        ]
        self._merged = PacketMerger(self._readers, self.store, limits)
        if restored is not None:
            self.streams, self.indexer = restored.streams, restored.indexer
            self.transport, self.tls, self.framer = restored.transport, restored.tls, restored.framer
        else:
            self.transport = Transport(self.store, limits, _partition(sources), is_patient=not self.grows)
            self.indexer = Indexer(self.store, self.transport.connections, limits, decode_as)
            self.framer = Framer(self.store, self.indexer.detector, limits)
            self.tls = TlsStage(self.store, KeyLog(), limits)
            # A stage between them is one more argument: a checkpoint keeps whichever stages there are.
            self.streams = StageChain(self.transport, self.tls, self.framer)
        self._key_logs = _open_key_logs(key_logs, self.tls.keys, limits)
        for each in sources:
            if isinstance(each, CapturePartition):
                self.tls.keys.add(each.secrets)
        self.tls.most_waiting = self._most_waiting
        self.tls.expects_keys = self.grows and bool(self._key_logs)
        self.comments: dict[int, str] = {}
        """Comments on packets, by the packet's number."""
        self.problems: list[Finding] = []
        """What is wrong with the files themselves, and which packets could not be read."""
        self.tally = CaptureTally()
        """The same as counts, once reading is finished."""
        self.is_finished = False
        """Whether all packets are read and the stages are flushed."""
        self._is_partition = any(isinstance(each, CapturePartition) for each in sources)
        self.packets = 0 if restored is None else restored.packets
        """Packets read."""
        self._packets_before = 0 if self._is_partition else self.packets
        """What packets of these files are numbered behind; those of a partition have their numbers."""
        self._bytes_seen, self._bytes_allowed = 0, 0
        """Bytes of packets, and bytes for which there is room (`Expansion`)."""
        self._looks, self._bytes = 0, (self.done, self.total)
        """How often progress was asked for since bytes were summed up over all files, and these."""
        self._allow_expansion(self._bytes[1])
        self.start_ns = 0 if restored is None else restored.start_ns
        """Time of the first packet, or of the first entry of Kafka's own files."""

    def close(self) -> None:
        """Close the files and release the bytes."""
        self.store.release()
        self.tls.close()
        self._merged.close()
        for reader in self._readers:
            reader.close()

    def read_available(self) -> Iterator[Progress]:
        """Read all packets that there are; bytes and frames that wait for more stay pending in the stages."""
        yield from self._read_files()
        self._read_keys(range(len(self._readers)))
        for batch in self._merged.batches():
            self._read_keys(self._merged.take_loaded())
            if len(batch):
                self._feed_packets(replace(batch, number=batch.number + self._packets_before))
            elif self._key_logs:  # secrets may come after the packets that they decrypt
                self._index(self.streams.end(NO_CONNECTIONS))
            yield self.progress

    def flush(self) -> Iterator[Progress]:
        """Have the stages give out what is pending, as no packets follow."""
        yield from self._read_files()  # of what a pipe turned out to be
        self._read_keys(range(len(self._readers)))
        for key_log in self._key_logs:
            key_log.text.finish()
        self._index(self.streams.flush())

    def finish(self, *, sort: bool) -> None:
        """Complete the index after `flush`. With `sort`, rows change their numbers."""
        self.indexer.flush()
        if sort:
            self.indexer.sort_rows()

    def count(self) -> None:
        """Count what could not be read, after `finish`."""
        of_files = [*self.files.problems, *(problem for reader in self._readers for problem in reader.problems)]
        self.tally = CaptureTally(
            of_files + self._merged.problems + problems_of_key_logs(self._key_logs),
            Counter(self.transport.ignored),
            self.transport.connections.resumed, self.indexer.without_row, self._unreachable(),
            self.transport.retransmissions.left_out, self.indexer.early_responses,
            tls=TlsTally.of(self.tls, self.transport.connections, self.start_ns, self._key_logs),
            cut_frames=self.indexer.frames.cut_frames, snap_length=self.indexer.frames.snap_length,
        )  # fmt: skip
        self.problems += self.tally.problems
        self.is_finished = True

    def later_truncations(self) -> list[Finding]:
        """Return findings for files that have become shorter since they were read."""
        known = {problem.message.partition(": ")[0] for problem in self.problems if problem.code == TRUNCATED}
        readers = [reader for reader in self._readers if reader.name not in known] if self.is_finished else []
        return [problem for reader in readers for problem in reader.problems if problem.code == TRUNCATED]

    def _unreachable(self) -> Unreachable:
        """Count the servers that clients did not reach."""
        unreachable = Unreachable.of(self.transport.connections, self.indexer.detector.with_data())
        if unreachable.has_unreached:  # else no message need be read
            self.indexer.conversation_state.learn_names(self.indexer.generation)
            unreachable.advertised.update(self.indexer.conversation_state.nodes.values())
        return unreachable

    def count_omitted_findings(self, counts: Mapping[str, int]) -> None:
        """Count findings that are not kept, by code."""
        self.tally.omitted_findings.update(counts)
        self.problems += omitted_findings(Counter(counts))

    @property
    def progress(self) -> Progress:
        """How far reading is: of many files, as it was some batches ago."""
        self._looks += 1
        if self._looks >= len(self._readers) // _READERS_PER_LOOK:
            self._looks, self._bytes = 0, (self.done, self.total)
        return Progress(*self._bytes, self.packets, len(self.files) + len(self.indexer.table))

    @property
    def grows(self) -> bool:
        """Whether packets arrive as they are sent: from a pipe, or from a file that is being written."""
        return any(reader.grows for reader in self._readers)

    @property
    def total(self) -> int:
        """Bytes of all files; 0 where one of them has no end yet."""
        return 0 if self.grows else sum(reader.total for reader in self._readers)

    @property
    def done(self) -> int:
        """Bytes of all files that are read."""
        return sum(reader.done for reader in self._readers)

    @property
    def remarks(self) -> list[str]:
        """Comments on the capture as a whole, or on its interfaces."""
        return [text for reader in self._readers if reader.notes for text in reader.notes.remarks]

    def host_name(self, address: str) -> str | None:
        """The name of a host that the files have, by its address."""
        for reader in self._readers:
            if reader.notes is not None and (names := reader.notes.names.get(address)):
                return names[0]
        return None

    def process_notes(self, first: int) -> Iterator[ProcessNote]:
        """The comments of files about processes, from the one with a number on; the last file may grow."""
        notes = chain.from_iterable(reader.notes.processes for reader in self._readers if reader.notes is not None)
        return islice(notes, first, None)

    @property
    def ignored(self) -> dict[str, int]:
        """Packets that are not TCP, or could not be read, by reason."""
        return self.transport.ignored

    def _read_files(self) -> Iterator[Progress]:
        """Find the entries of Kafka's own files."""
        for _ in self.files.read():
            yield self.progress
        self.start_ns = self.files.start_ns or self.start_ns

    @property
    def _most_waiting(self) -> int:
        """How many runs of a TLS connection may wait for its secrets: a key log grows while packets arrive, and a
        pcapng file has some near the connections that they are of."""
        if self.grows:
            return self._limits.held_runs if self._key_logs else 0
        return NEAR_SECRETS if any(reader.notes is not None for reader in self._readers) else 0

    def _read_keys(self, readers: Iterable[int]) -> None:
        """Read the TLS secrets that there are, in key logs and by some of the readers."""
        for key_log in self._key_logs:
            key_log.read()
            if not self.grows:  # else more of its last line may come
                key_log.text.finish()
        for each in readers:
            notes = self._readers[each].notes
            for block in notes.take_secrets() if notes else ():
                self.tls.keys.add(block)

    def _feed_packets(self, batch: PacketBatch) -> None:
        if not self.packets and not self.files.start_ns:
            self.start_ns = int(batch.time_ns[0])
        for row, text in sorted(batch.comments.items()):
            number = int(batch.number[row])
            self.comments[number] = text
            self.indexer.injections.add(number, text)
        self.packets += len(batch)
        self._learn_snap_length(batch)
        self._bytes_seen += int(batch.captured.sum())
        self._allow_expansion(self._bytes_seen)
        self._index(self.streams.feed(batch))
        closed = self.transport.closed_connections
        self._index(self.streams.end(closed))
        self.indexer.end(closed)
        trim()

    def _allow_expansion(self, read: int) -> None:
        """Let what is read become more the more it is: of files all that there is, of others what came."""
        if read > self._bytes_allowed:
            RUN.grow(read - self._bytes_allowed)
            self._bytes_allowed = read

    def _learn_snap_length(self, batch: PacketBatch) -> None:
        """Learn from the packets of a batch that are cut, unless it is files that end inside a packet. Of a partition
        nobody says so: there a lone one at the end of a batch may be that."""
        is_cut, frames = batch.captured < batch.length, self.indexer.frames
        count = int(is_cut.sum())
        if not count:  # and to look for truncated files in vain would take the square of their number
            return
        ends = int(is_cut[-1]) if self._is_partition else sum(1 for _ in islice(self._truncations(), count))
        if frames.snap_length or count > ends:
            frames.snap_length = max(frames.snap_length, int(batch.captured[is_cut].max()))

    def _truncations(self) -> Iterator[Finding]:
        return (problem for reader in self._readers for problem in reader.problems if problem.code == TRUNCATED)

    def _index(self, batches: Iterable[FrameBatch]) -> None:
        for frames in batches:
            self.indexer.feed(frames)


def _open_key_logs(paths: Sequence[str], keys: KeyLog, limits: Limits) -> list[KeyLogFile]:
    try:
        return [KeyLogFile(path, keys, limits.key_log_bytes) for path in paths]
    except KeyLogError as error:
        raise CaptureError(str(error)) from None


def source_names(sources: Sequence[Source]) -> list[str]:
    """What sources are called."""
    return [
        each.path
        if isinstance(each, GrowingFile)
        else each.name
        if isinstance(each, OpenFile | CapturePartition | PacketObjects)
        else each
        for each in sources
    ]


def _partition(sources: Sequence[Source]) -> Partition | None:
    """Which connections are read, where the one source is a part of a capture."""
    match sources:
        case [CapturePartition(number=number, of=of)]:
            return Partition(number, of)
    return None
