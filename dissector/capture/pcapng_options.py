"""Comments, host names, drop counters and secrets of a pcapng file. All of it is bounded.

draft-ietf-opsawg-pcapng, 3.5 (options), 4.5 (names), 4.6 (statistics), 4.7 (secrets).
"""

import struct
from collections import defaultdict
from collections.abc import Iterator
from ipaddress import ip_address
from typing import Final

import numpy as np

from dissector.capture.errors import MAX_FINDINGS
from dissector.capture.integers import ByteOrder, read_unsigned
from dissector.capture.process_notes import ProcessNote, note_of
from dissector.core.arrays import Int64, UInt8
from dissector.core.finding import Finding, Severity
from dissector.core.limits import Limits
from dissector.core.text import clean, counted

END: Final = 0
COMMENT: Final = 1
ISB_IFDROP: Final = 5
ISB_OSDROP: Final = 7
EPB_DROPCOUNT: Final = 4
TLS_KEY_LOG: Final = 0x544C534B
ADDRESS_SIZES: Final = {1: 4, 2: 16}
"""Bytes of the address in a record of a name resolution block, by the record's type: IPv4 and IPv6."""
MOST_PROCESSES: Final = 1 << 17
"""Comments about processes that are kept, at most."""
MOST_OPTIONS: Final = 64
"""Options of one packet that are read."""


def options(data: memoryview, at: int, end: int, order: ByteOrder) -> Iterator[tuple[int, bytes]]:
    """Yield code and value of each option from `at` to `end`. Records of names have the same form."""
    while at + 4 <= end:
        code, size = struct.unpack_from(order + "HH", data, at)
        if code == END or at + 4 + size > end:
            return
        yield code, data[at + 4 : at + 4 + size].tobytes()
        at += 4 + (size + 3 & ~3)


class PcapngOptions:
    """Comments, names, counters and secrets of one file, over all its sections."""

    def __init__(self, name: str, limits: Limits) -> None:
        self._name = name
        self.limits = limits
        self.remarks: list[str] = []
        """Comments on sections and interfaces."""
        self.names: dict[str, list[str]] = {}
        """Host names by address."""
        self.processes: list[ProcessNote] = []
        """Which process had an end of a connection, in the order of the file."""
        self._kept = 0
        self._omitted = 0
        self._dropped: dict[tuple[int, int], tuple[str, int]] = {}
        """Name and last count of dropped packets, which only grows, by section and interface."""
        self._dropped_between = 0
        """Packets dropped, by the counts that packets carry."""
        self._secrets: list[bytes] = []
        """Contents of blocks with a TLS key log that nobody has taken yet."""
        self._secret_bytes = 0
        """Of all such blocks, those that were taken included."""
        self._other_secrets = 0
        """Blocks with secrets of other protocols, or past the limit."""

    def text(self, value: bytes) -> str | None:
        """Return a comment to keep, or None if there are enough."""
        if self._kept >= self.limits.notes:
            self._omitted += 1
            return None
        self._kept += 1
        return value[: self.limits.note_bytes].decode(errors="replace")

    def add_comment(self, value: bytes) -> None:
        """Keep a comment on a section or an interface."""
        text = self.text(value)
        if text is not None:
            self.remarks.append(text)

    def add_names(self, data: memoryview, at: int, size: int, order: ByteOrder) -> None:
        """Keep the host names of a name resolution block."""
        for kind, value in options(data, at + 8, at + size - 4, order):
            width = ADDRESS_SIZES.get(kind)
            if width is None or len(value) <= width or len(self.names) >= self.limits.notes:
                continue
            found = value[width : width + self.limits.note_bytes].split(b"\0")
            names = self.names.setdefault(str(ip_address(value[:width])), [])
            names += [name.decode(errors="replace") for name in found if name][: max(0, 8 - len(names))]

    def add_statistics(
        self, data: memoryview, at: int, size: int, order: ByteOrder, section: int, interface_names: list[str]
    ) -> None:
        """Keep the drop counters of an interface statistics block. They count from the start of capturing."""
        which = int(struct.unpack_from(order + "I", data, at + 8)[0])
        found = list(options(data, at + 20, at + size - 4, order))
        notes = (note_of(value.decode(errors="replace")) for code, value in found if code == COMMENT)
        self.processes += [note for note in notes if note][: MOST_PROCESSES - len(self.processes)]
        counts = {
            code: int(struct.unpack(order + "Q", value)[0])
            for code, value in found
            if len(value) == 8 and code != COMMENT
        }
        name = interface_names[which] if which < len(interface_names) else ""
        dropped = counts.get(ISB_IFDROP, 0) + counts.get(ISB_OSDROP, 0)
        if dropped and (len(self._dropped) < self.limits.notes or (section, which) in self._dropped):
            self._dropped[section, which] = (name or f"{which}", dropped)

    def add_secrets(self, data: memoryview, at: int, size: int, order: ByteOrder) -> None:
        """Keep a block of secrets, if it is a TLS key log."""
        kind, length = struct.unpack_from(order + "II", data, at + 8)
        keys = bytes(data[at + 16 : at + min(16 + length, size - 4)])
        self._secret_bytes += len(keys)
        if kind == TLS_KEY_LOG and self._secret_bytes <= self.limits.key_log_bytes:
            self._secrets.append(keys)
        else:
            self._other_secrets += 1

    def take_secrets(self) -> list[bytes]:
        """Return the TLS key logs since the last call."""
        found, self._secrets = self._secrets, []
        return found

    def of_packets(self, data: UInt8, at: Int64, end: Int64, order: ByteOrder) -> dict[int, str]:
        """Return comments by row, of packets with options from `at` to `end`. A step reads one option of every row."""
        comments: dict[int, str] = {}
        rows = np.flatnonzero(at + 4 <= end)
        for _ in range(MOST_OPTIONS):
            if not len(rows):
                break
            code, size = read_unsigned(data, at[rows], 2, order), read_unsigned(data, at[rows] + 2, 2, order)
            good = (code != END) & (at[rows] + 4 + size <= end[rows])
            rows, code, size = rows[good], code[good], size[good]
            for n in np.flatnonzero(code == COMMENT).tolist():
                row, start = int(rows[n]), int(at[rows[n]]) + 4
                text = self.text(data[start : start + int(size[n])].tobytes())
                if text is not None:
                    comments[row] = f"{comments[row]}\n{text}" if row in comments else text
            counters = rows[(code == EPB_DROPCOUNT) & (size == 8)]
            if len(counters):
                high, low = (4, 8) if order == ">" else (8, 4)
                counts = read_unsigned(data, at[counters] + low, 4, order) + (
                    read_unsigned(data, at[counters] + high, 4, order) << 32
                )
                self._dropped_between += int(np.clip(counts, 0, 1 << 40).sum())
            at = at.copy()
            at[rows] += 4 + (size + 3 & ~3)
            rows = rows[at[rows] + 4 <= end[rows]]
        return comments

    @property
    def findings(self) -> list[Finding]:
        """Findings about dropped packets, limits and secrets."""
        by_name: defaultdict[str, int] = defaultdict(int)
        for name, count in self._dropped.values():
            by_name[name] += count
        found = [self._dropping(count, f" (interface {clean(name)})") for name, count in by_name.items()]
        if len(found) > MAX_FINDINGS:
            others = sum(list(by_name.values())[MAX_FINDINGS:])
            more = f" ({counted(len(found) - MAX_FINDINGS, 'more interface')})"
            found[MAX_FINDINGS:] = [self._dropping(others, more)]
        if not found and self._dropped_between:
            found = [self._dropping(self._dropped_between, "")]
        if self._other_secrets:
            words = f"{self._name}: {counted(self._other_secrets, 'block')} of secrets not used: no TLS, or too large"
            found.append(Finding("secrets-omitted", Severity.NOTE, words))
        if self._omitted:
            words = f"{self._name}: {self._omitted:,} more comments are not kept"
            found.append(Finding("comments-omitted", Severity.NOTE, words))
        return found

    def _dropping(self, count: int, where: str) -> Finding:
        words = f"{self._name}: {count:,} packets were dropped by the kernel while capturing{where}"
        return Finding("packets-dropped", Severity.WARNING, words)
