"""Reads files of packets. Formats are recognized by content, never by name.

Files are mapped; pipes and compressed files go to a spool as they arrive; a growing file is followed.
"""

import mmap
import pickle
from collections.abc import Callable, Iterator
from typing import IO, Final, NamedTuple, Protocol, cast

import numpy as np

from dissector.capture.errors import CaptureError, Damage, DamagedRange, NoRoomError
from dissector.capture.pcap import MAGICS, Pcap
from dissector.capture.pcapng import Pcapng
from dissector.capture.pcapng_blocks import SECTION
from dissector.capture.pcapng_options import PcapngOptions
from dissector.capture.sources import CaptureSource, ConvertedSource, MappedSource
from dissector.core.arrays import UInt8
from dissector.core.batches import PacketBatch
from dissector.core.finding import Finding
from dissector.core.limits import BATCH_BYTES, BATCH_PACKETS, FIRST_PACKETS, Limits
from dissector.core.store import Store

PCAPNG: Final = SECTION.to_bytes(4, "big")
_ARCHIVES: Final = {
    "a zip": (0, b"PK\3\4"), "a tar": (257, b"ustar"), "a 7z": (0, b"7z\xbc\xaf"), "a rar": (0, b"Rar!"),
}  # fmt: skip
"""Where an archive, which may have captures in it, has which bytes."""
_OTHERS: Final = {
    "a PNG image": b"\x89PNG", "a JPEG image": b"\xff\xd8\xff", "a GIF image": b"GIF8", "a PDF document": b"%PDF",
    "a program": b"\x7fELF", "a Java class": b"\xca\xfe\xba\xbe", "a database of SQLite": b"SQLite format 3",
    "one file of tables, which are opened by their folder": b"PAR1", "a web page": b"<!DOCTYPE",
}  # fmt: skip
"""How other files begin that are opened by mistake."""
_MOST_MAGIC: Final = 16
_NONE: Final = np.zeros(0, np.int64)
NO_PACKETS_YET: Final = PacketBatch(
    np.zeros(0, np.uint8), 0, _NONE, _NONE, _NONE, _NONE, _NONE, _NONE.astype(np.uint16)
)
"""The batch of a growing source while no packet has arrived."""


class FileTaker(Protocol):
    """Takes files without packets."""

    def take(self, name: str, data: mmap.mmap) -> bool:
        """Take a file, by name and content; return whether it is taken."""

    def may_take(self, head: UInt8) -> bool:
        """Return whether it may take a file that begins with these bytes and goes on."""


class CaptureFormat(Protocol):
    """Reads packets of one file format."""

    base: int
    """The store's address of the file's first byte."""
    done: int
    """Bytes that reading has reached."""
    damage: Damage
    stopped: bool
    """Whether reading has stopped for good, whatever bytes arrive."""

    @property
    def problems(self) -> list[Finding]:
        """What is wrong with the file, as far as it was read."""

    def open(self, data: UInt8, *, ended: bool) -> bool:
        """Read the header; return whether enough of it is there. Raises `CaptureError` if there never will be."""

    def next(self, data: UInt8, *, ended: bool, most: int | None = None) -> PacketBatch | None:
        """Return the next packets of `data`, at `most` so many, numbered in the file; None if there are none (yet)."""


GROWING_PACKETS: Final = 2 * FIRST_PACKETS
"""Most packets in a batch of a source that grows: whoever follows it is asked between two batches whether to go on."""


class GrowingFile(NamedTuple):
    """A file that another process appends to. It is read until `ended` returns true and everything in it is read.

    `ended` is called a few times a second and must be fast.
    """

    path: str
    ended: Callable[[], bool]


class OpenFile(NamedTuple):
    """A file that is open already, such as the copy of one that is far away. Messages have its name."""

    name: str
    file: IO[bytes]


class Reader:
    """Reads one capture file. `batches` yields its packets once; `problems` is complete when that ends."""

    def __init__(
        self,
        name: str,
        source: CaptureSource,
        store: Store,
        limits: Limits,
        taker: FileTaker,
        *,
        response_to: tuple[int, int] | None,
    ) -> None:
        self.name = name
        self._source = source
        self._store = store
        self._limits = limits
        self._taker = taker
        self._response_to = response_to
        self._may_be_text: bool | None = None
        """Whether the beginning of a stream is a text with bytes; None while too little of it is there."""
        self._problems: list[Finding] = []
        self._format: CaptureFormat | None = None
        self._taken = False
        self._ahead: PacketBatch | None = None
        self._released_to = 0
        self.packets = 0
        """Read so far."""
        self._end: int | None = None
        """The number of packets that are to be read; None if all are."""
        while not source.grows and not self._taken and not self._recognize():
            source.more()

    @property
    def grows(self) -> bool:
        """Whether packets arrive at any time."""
        return self._source.grows

    @property
    def has_times(self) -> bool:
        """Whether its packets can be merged with those of others: not if times are made up or reading would wait."""
        return not self.grows and not isinstance(self._source, ConvertedSource)

    @property
    def total(self) -> int:
        """Bytes of the file on the disk; 0 if unknown."""
        return self._source.total

    @property
    def done(self) -> int:
        """Bytes of them that reading has reached."""
        return self._source.done(self._format.done if self._format else 0) if not self._taken else self.total

    @property
    def problems(self) -> list[Finding]:
        """Problems of the file, as far as it was read."""
        return self._problems + self._source.problems + (self._format.problems if self._format else [])

    @property
    def notes(self) -> PcapngOptions | None:
        """Comments and names, if the format has them."""
        return self._format.notes if isinstance(self._format, Pcapng) else None

    @property
    def damaged(self) -> list[DamagedRange]:
        """Positions that could not be read."""
        return self._format.damage.ranges if self._format else []

    @property
    def undecoded(self) -> DamagedRange | None:
        """The part of a compressed file, by its compressed bytes, that could not be decompressed."""
        rest = self._source.undecoded
        return None if rest is None else DamagedRange(rest.at, self.total - rest.at, self.packets + 1, rest.reason)

    def bytes_at(self, at: int, size: int) -> bytes:
        """Return bytes of the file, decompressed if it is compressed, as far as it was read."""
        return self._source.data[at : at + size].tobytes()

    @property
    def can_be_resumed(self) -> bool:
        """Whether reading can begin in the middle: of a mapped file of packets."""
        return isinstance(self._source, MappedSource) and self._format is not None

    def mark(self) -> bytes:
        """Return the state to resume from here. It is a pickle: never read it from a file."""
        return pickle.dumps(self._format)

    def resume(self, mark: bytes, skipped: int, packets: int) -> None:
        """Continue from where a reader of the same file made `mark`: leave out `skipped` packets, read so many."""
        self._format = cast(CaptureFormat, pickle.loads(mark))  # written by `mark`, never by others
        self._format.base = self._source.base
        self.packets, self._end = 0, skipped
        for _ in self._batches():
            pass
        self.packets, self._end = 0, packets

    def start_ns(self) -> int | None:
        """Return the time of the first packet; None if there is none. It waits, so not for growing files."""
        if self._ahead is None:
            self._ahead = next((batch for batch in self._batches(most=1) if len(batch)), None)
        return int(self._ahead.time_ns[0]) if self._ahead else None

    def batches(self, most: int | None = None) -> Iterator[PacketBatch]:
        """Yield all packets, at the `most` so many at a time, numbered from 0. A growing source yields an empty batch
        if no packet has arrived for a while.

        Raises `CaptureError` if a pipe turns out to be no capture."""
        if self._ahead is not None:
            yield self._ahead
        yield from self._batches(GROWING_PACKETS if most is None and self.grows else most)

    def _batches(self, most: int | None = None) -> Iterator[PacketBatch]:
        while not self._taken and self.packets != self._end:
            batch = None
            if self._format is not None or self._recognize():
                assert self._format is not None
                if self._end is not None:
                    most = min(most or BATCH_PACKETS, self._end - self.packets)
                batch = self._format.next(self._source.data, ended=self._source.ended, most=most)
            if batch is not None:
                self.packets += len(batch)
                yield batch
                self._release_read_pages()
            elif self._source.ended or (self._format and self._format.stopped):
                return
            else:
                self._source.more()
                yield NO_PACKETS_YET

    def _release_read_pages(self) -> None:
        """Release the memory of the parts of a mapped file that were read."""
        done = self._format.done if self._format else 0
        if done - self._released_to >= BATCH_BYTES // 2:
            self._released_to = done
            self._store.release_pages()

    def _recognize(self) -> bool:
        """Recognize the format; return whether it is known: enough bytes must have arrived."""
        data, ended = self._source.data, self._source.ended
        magic = data[:4].tobytes()
        if len(magic) < 4 and not ended:
            return False
        if magic not in MAGICS and magic != PCAPNG:
            if ended:
                return self._take_whole(magic)
            self._check_beginning(data)
            return False
        format_of = Pcap if magic in MAGICS else Pcapng
        found = format_of(self.name, magic, self._source.base, self._limits)
        if not found.open(data, ended=ended):
            return False
        self._format = found
        return True

    def _take_whole(self, magic: bytes) -> bool:
        """Read a text with bytes, or hand over a file that has no packets."""
        data = self._source.map_all()
        if data is None:
            for problem in self._source.problems:
                raise (NoRoomError if problem.code == "not-read-on" else CaptureError)(problem.message)
            raise CaptureError(f"{self.name}: empty file")
        from dissector.capture.text_capture import pcapng_of  # few files are of text

        converted = pcapng_of(self.name, data, self._response_to, self._limits)
        if converted is not None:
            packets, self._problems = converted
            self._source = ConvertedSource(packets, self._store, self._source)
            return self._recognize()
        self._taken = self._taker.take(self.name, data)
        if not self._taken:
            raise self._no_capture(np.frombuffer(data, np.uint8))
        return False

    def _check_beginning(self, data: UInt8) -> None:
        """Raise `CaptureError` for bytes with which no capture begins: a stream without an end would fill the disk."""
        from dissector.capture.text_capture import begins_text, check_size  # few files are of text

        if self._may_be_text is None:
            self._may_be_text = begins_text(data, self._response_to)
        if self._may_be_text is not False:
            check_size(self.name, data, self._limits)
        elif not self._taker.may_take(data):
            raise self._no_capture(data)

    def _no_capture(self, data: UInt8) -> CaptureError:
        from dissector.capture.text_capture import is_text
        from dissector.pasted.recognizers import FORMS

        for archive, (at, magic) in _ARCHIVES.items():
            if data[at : at + len(magic)].tobytes() == magic:
                return CaptureError(f"{self.name}: {archive} archive: unpack it and open the captures in it")
        head = data[:_MOST_MAGIC].tobytes()
        for other, magic in _OTHERS.items():
            if head.startswith(magic):
                return CaptureError(f"{self.name}: {other}, not a capture")
        if is_text(data):
            return CaptureError(
                f"{self.name}: not a capture: neither pcap nor pcapng, but text without a Kafka message or packet "
                f"in a known form ({FORMS})"
            )
        words = f"it begins with {head[:4].hex(' ')}, which is neither pcap nor pcapng, nor one of Kafka's own files"
        return CaptureError(f"{self.name}: not a capture: {words}")

    def close(self) -> None:
        """Close the file. Its mapping is released with the last batch that points into it."""
        self._source.close()
