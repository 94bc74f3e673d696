"""Errors of captures that can't be read at all, and findings about captures that are damaged."""

from typing import Final, NamedTuple

from dissector.core.finding import Finding, Severity

MAX_RANGES: Final = 10_000
"""Damaged ranges of a file that are kept."""
MAX_FINDINGS: Final = 20
"""Damaged ranges that get a finding each; the others are counted in one."""


_WEB: Final = ("http", "https", "ftp")
_BROKERS: Final = ("kafka", "plaintext", "ssl", "sasl_plaintext", "sasl_ssl")


class CaptureError(Exception):
    """A file that can't be opened or is not a capture. Its text is one plain line with the file and the reason.

    >>> try:
    ...     dissector.open("nothing.pcapng")[0]
    ... except dissector.CaptureError as error:
    ...     print(error)
    nothing.pcapng: no such file or directory
    """


class MissingFileError(CaptureError):
    """A file that is not there."""

    def __init__(self, path: str) -> None:
        super().__init__(f"{path or repr(path)}: no such file or directory")
        self.path = path


class NoRoomError(CaptureError):
    """The file may be good, but this machine has no room for its contents."""


def url_advice(name: str) -> str:
    """Return what to do with a URL that is no object store's where a file is needed; an empty string for any other
    name."""
    scheme, _, rest = name.partition("://")
    if rest and scheme.lower() in _WEB:
        return f"a web address: download the file first, curl -O {name}"
    if rest and scheme.lower() in _BROKERS:
        return f"a broker, not a file: kdissect probe {rest} asks it"
    return ""


class DamagedRange(NamedTuple):
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
        self.ranges: list[DamagedRange] = []
        """Damaged ranges, at most `MAX_RANGES`."""

    @property
    def findings(self) -> list[Finding]:
        """A finding for each of the first ranges, and one that counts the others."""
        if not self._more:
            return self._findings
        words = f"{self._name}: {self._more:,} more places are damaged: {self._more_bytes:,} bytes skipped"
        return [*self._findings, _finding("file-damaged", words)]

    def add_truncation(self, packet: int, at: int, needed: int, remaining: int) -> None:
        """Add the end of a file inside a packet or block."""
        reason = f"length {needed:,}, the file ends after {remaining:,} bytes"
        self._findings.append(_finding("file-truncated", f"{self._name}: packet {packet:,} at byte {at:,}: {reason}"))
        self._keep(DamagedRange(at, remaining, packet, reason))

    def add_end(self, packet: int, at: int, reason: str, remaining: int) -> None:
        """Add bytes that can't be a packet or block, with no others after them."""
        words = (
            f"{self._name}: packet {packet:,} at byte {at:,}: {reason}; {packet - 1:,} packets read, the rest is not"
        )
        self._findings.append(_finding("file-damaged", words))
        self._keep(DamagedRange(at, remaining, packet, reason))

    def add_skipped(self, packet: int, at: int, size: int, reason: str) -> None:
        """Add bytes that can't be a packet or block, before others that are."""
        self._keep(DamagedRange(at, size, packet, reason))
        if len(self._findings) >= MAX_FINDINGS:
            self._more += 1
            self._more_bytes += size
            return
        words = f"{self._name}: packet {packet:,} at byte {at:,}: {reason}; {size:,} bytes skipped"
        self._findings.append(_finding("file-damaged", words))

    def _keep(self, damaged: DamagedRange) -> None:
        if len(self.ranges) < MAX_RANGES:
            self.ranges.append(damaged)


def length_mismatch(name: str, count: int, packet: int) -> Finding:
    """Return the finding about blocks whose two lengths differ."""
    words = f"{name}: {count:,} blocks have two different lengths; the first is packet {packet:,}"
    return _finding("block-length", words)


def _finding(code: str, words: str) -> Finding:
    return Finding(code, Severity.WARNING, words)
