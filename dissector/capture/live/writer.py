"""Writes packets as pcapng, for the capture process: to one file, or to a ring of files that are each complete.

draft-ietf-opsawg-pcapng. A file has one section and one interface, an enhanced packet block per packet, and statistics
blocks in between, whose counters count from the capture's start.

Invariants:
  * the packets are in the file when `packets` returns, so that a process that follows it can read them;
  * a file only ever grows, by complete blocks.
"""

import os
import struct
import time
from collections.abc import Callable, Sequence
from typing import IO, Final

from dissector.capture.live.bpf import WHOLE_PACKETS
from dissector.capture.live.output_files import Files, OutputFiles
from dissector.capture.live.packet_ring import Packet
from dissector.capture.live.settings import RecordingSettings
from dissector.conversation.pcapng import block, interface, option, section

_PACKET: Final = 6
_COMMENT: Final = 1
_LONGEST_OPTION: Final = 0xFFFF
_STATISTICS: Final = 5
_IF_NAME, _IF_FILTER = 2, 11
_ISB_RECEIVED, _ISB_DROPPED_BY_SYSTEM, _ISB_DELIVERED = 4, 7, 8
_HEAD: Final = struct.Struct("<IIIIIII")
_FILTER_STRING: Final = b"\0"
"""The first byte of an if_filter option whose filter is text."""
_PADDING: Final = [bytes(-size % 4) for size in range(4)]


class CaptureWriter:
    """Writes the file or files of a capture. `on_file` is called with a descriptor to read each, once it has a
    head."""

    def __init__(
        self, settings: RecordingSettings, link_type: int, on_file: Callable[[int], None], files: Files | None = None
    ) -> None:
        self._settings = settings
        self._files = files or OutputFiles(settings)
        self._on_file = on_file
        options = option(_IF_NAME, settings.interface_name.encode())
        if settings.filter_expression:
            options += option(_IF_FILTER, _FILTER_STRING + settings.filter_expression.encode())
        self._head = section() + interface(link_type, WHOLE_PACKETS, options)
        self.delivered = 0
        """Packets written, to all files."""
        self._file = self._begin()

    def packets(self, packets: Sequence[Packet]) -> None:
        """Append packets."""
        parts: list[bytes | memoryview] = []
        for time_ns, length, data in packets:
            captured = len(data)
            padding = _PADDING[captured & 3]
            size = captured + len(padding) + 32
            head = _HEAD.pack(_PACKET, size, 0, time_ns >> 32, time_ns & 0xFFFFFFFF, captured, length)
            parts += (head, data, padding + size.to_bytes(4, "little"))
        self._append(b"".join(parts))
        self.delivered += len(packets)
        self._turn_ring()

    def blocks(self, blocks: bytes | memoryview, packets: int) -> None:
        """Append blocks that were made elsewhere, of so many packets."""
        self._append(blocks)
        self.delivered += packets
        self._turn_ring()

    def parts_of_blocks(self, parts: Sequence[bytes | memoryview], packets: int) -> None:
        """As `blocks`, in a few parts that are not copied."""
        self._append_parts(parts)
        self.delivered += packets
        self._turn_ring()

    def _turn_ring(self) -> None:
        """Begin the next file of a ring, if this one is full."""
        ring = self._settings.ring
        if ring is not None and ring.is_full(self._size, time.monotonic() - self._since):
            self._file.close()
            self._file = self._begin()

    def commented(self, packet: Packet, comment: str) -> None:
        """Append a packet with a comment."""
        time_ns, length, data = packet
        head = struct.pack("<IIIII", 0, time_ns >> 32, time_ns & 0xFFFFFFFF, len(data), length)
        options = option(_COMMENT, comment.encode(errors="replace")[:_LONGEST_OPTION]) + bytes(4)
        self._append(block(_PACKET, head + data + _PADDING[len(data) & 3] + options))
        self.delivered += 1

    def statistics(self, received: int, dropped: int) -> None:
        """Append a statistics block: packets that passed the filter, those of them that were dropped."""
        now = time.time_ns()
        options = b"".join(
            option(code, count.to_bytes(8, "little"))
            for code, count in (
                (_ISB_RECEIVED, received),
                (_ISB_DROPPED_BY_SYSTEM, dropped),
                (_ISB_DELIVERED, self.delivered),
            )
        )
        self._append(block(_STATISTICS, struct.pack("<III", 0, now >> 32, now & 0xFFFFFFFF) + options + bytes(4)))

    def comments(self, texts: Sequence[str]) -> None:
        """Append comments, as options of a statistics block: a comment of the file itself must be at its beginning."""
        now = time.time_ns()
        options = b"".join(option(_COMMENT, text.encode()[:_LONGEST_OPTION]) for text in texts)
        self._append(block(_STATISTICS, struct.pack("<III", 0, now >> 32, now & 0xFFFFFFFF) + options + bytes(4)))

    def _append(self, blocks: bytes | memoryview) -> None:
        """Append all blocks or nothing: if the disk is full, no part of a block remains."""
        try:
            written = self._file.write(blocks)
            while written < len(blocks):
                written += self._file.write(memoryview(blocks)[written:])
        except OSError:
            self._file.truncate(self._size)
            raise
        self._size += written

    def _append_parts(self, parts: Sequence[bytes | memoryview]) -> None:
        """As `_append`, for a few parts."""
        size = sum(map(len, parts))
        try:
            written = os.writev(self._file.fileno(), parts)
        except OSError:
            self._file.truncate(self._size)
            raise
        if written == size:
            self._size += size
        else:  # a disk that is nearly full: the rest is tried, and all is taken back if it fails
            self._file.truncate(self._size)
            self._file.seek(self._size)
            self._append(b"".join(parts))

    def close(self) -> None:
        """Complete the file."""
        self._file.close()

    def _begin(self) -> IO[bytes]:
        self._since = time.monotonic()
        made = self._files.next()
        file = os.fdopen(made.writing, "wb", buffering=0)
        file.write(self._head)
        self._size = len(self._head)
        self._on_file(made.reading)
        os.close(made.reading)
        return file
