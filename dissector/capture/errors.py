"""Errors of captures that can't be read at all, and findings about captures that are damaged."""

from typing import Final, NamedTuple

from dissector.core.finding import Finding, Severity

MAX_POSITIONS: Final = 10_000
"""Damaged positions of a file that are kept."""
MAX_FINDINGS: Final = 20
"""Damaged positions that get a finding each; the others are counted in one."""


class CaptureError(Exception):
    """A file that can't be opened or is no capture. Its text is one plain line that names the file and the reason."""


class NoRoomError(CaptureError):
    """The file may be good, but this machine has no room for its contents."""


class FilePosition(NamedTuple):
    """Bytes of a file that could not be read."""

    at: int
    size: int
    packet: int
    """Number of the packet expected there, from 1, in the file."""
    reason: str


class Damage:
    """Damage of one file, as it is found. Packets are numbered from 1, in the file."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._findings: list[Finding] = []
        self._more = 0
        self._more_bytes = 0
        self.places: list[FilePosition] = []
        """Damaged positions, at most `MAX_POSITIONS`."""

    @property
    def findings(self) -> list[Finding]:
        """One finding for each position, and one that counts the others."""
        if not self._more:
            return self._findings
        words = f"{self._name}: {self._more:,} more places are damaged: {self._more_bytes:,} bytes skipped"
        return [*self._findings, _finding("file-damaged", words)]

    def truncated(self, packet: int, at: int, needed: int, left: int) -> None:
        """The file ends inside a packet or block."""
        words = f"{self._name}: packet {packet:,} at byte {at:,}: length {needed:,}, the file ends after {left:,} bytes"
        self._findings.append(_finding("file-truncated", words))
        self._keep(FilePosition(at, left, packet, f"length {needed:,}, the file ends after {left:,} bytes"))

    def ended(self, packet: int, at: int, reason: str, left: int) -> None:
        """Bytes that can't be a packet or block, with no others after them."""
        words = (
            f"{self._name}: packet {packet:,} at byte {at:,}: {reason}; {packet - 1:,} packets read, the rest is not"
        )
        self._findings.append(_finding("file-damaged", words))
        self._keep(FilePosition(at, left, packet, reason))

    def skipped(self, packet: int, at: int, size: int, reason: str) -> None:
        """Bytes that can't be a packet or block, before others that are."""
        self._keep(FilePosition(at, size, packet, reason))
        if len(self._findings) >= MAX_FINDINGS:
            self._more += 1
            self._more_bytes += size
            return
        words = f"{self._name}: packet {packet:,} at byte {at:,}: {reason}; {size:,} bytes skipped"
        self._findings.append(_finding("file-damaged", words))

    def _keep(self, place: FilePosition) -> None:
        if len(self.places) < MAX_POSITIONS:
            self.places.append(place)


def length_mismatch(name: str, count: int, packet: int) -> Finding:
    """Return the finding about blocks whose two lengths differ."""
    words = f"{name}: {count:,} blocks have two different lengths; the first is packet {packet:,}"
    return _finding("block-length", words)


def _finding(code: str, words: str) -> Finding:
    return Finding(code, Severity.WARNING, words)
