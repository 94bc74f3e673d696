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
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Final

from dissector.capture.live.bpf import WHOLE_PACKETS
from dissector.capture.live.packet_ring import Packet
from dissector.capture.live.settings import CaptureSettings, RingSettings
from dissector.conversation.pcapng import block, interface, option, section
from dissector.core.private_files import private

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
    """Writes the file or files of a capture. `on_file` is called with the path of each once it can be opened."""

    def __init__(self, settings: CaptureSettings, link_type: int, on_file: Callable[[str], None]) -> None:
        self._settings = settings
        self._on_file = on_file
        options = option(_IF_NAME, settings.interface.encode())
        options += option(_IF_FILTER, _FILTER_STRING + settings.filter_expression.encode())
        self._head = section() + interface(link_type, WHOLE_PACKETS, options)
        self._file_count = 0
        self._kept: deque[Path] = deque()
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
        if self._settings.ring is not None and self._is_full(self._settings.ring):
            self._file.close()
            self._file = self._begin()

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

    def _append(self, blocks: bytes) -> None:
        """Append all blocks or nothing: if the disk is full, no part of a block remains."""
        view, before = memoryview(blocks), self._file.tell()
        try:
            while view:
                view = view[self._file.write(view) :]
        except OSError:
            self._file.truncate(before)
            raise

    def close(self) -> None:
        """Complete the file."""
        self._file.close()

    def _begin(self) -> IO[bytes]:
        path, ring = Path(self._settings.path), self._settings.ring
        self._file_count += 1
        self._since = time.monotonic()
        if ring is not None:
            path = path.with_name(f"{path.stem}_{self._file_count:05}_{time.strftime('%Y%m%d%H%M%S')}{path.suffix}")
        file = os.fdopen(private(str(path), os.O_WRONLY | os.O_CREAT | os.O_TRUNC), "wb", buffering=0)
        file.write(self._head)
        self._on_file(str(path))
        self._kept.append(path)
        if ring is not None and 0 < ring.files < len(self._kept):
            self._kept.popleft().unlink(missing_ok=True)
        return file

    def _is_full(self, ring: RingSettings) -> bool:
        full = 0 < ring.kilobytes * 1_000 <= self._file.tell()
        return full or 0 < ring.seconds <= time.monotonic() - self._since
