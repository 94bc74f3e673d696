"""What stops a capture from being read at all, and what is told of one that is damaged further on."""

from dissector.findings import Finding, Severity


class CaptureError(Exception):
    """A file that can't be opened or is no capture. Its text is one plain line that names the file and the reason."""


class DamagedError(Exception):
    """Reading can't go on from here: `finding` says where and why. What came before stays good."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(finding.message)
        self.finding = finding


def truncated(name: str, packet: int, at: int, needed: int, left: int) -> DamagedError:
    """The file ends inside a packet or block."""
    words = f"{name}: packet {packet:,} at byte {at:,}: length {needed:,}, the file ends after {left:,} bytes"
    return DamagedError(Finding("file-truncated", Severity.WARNING, f"{words}; {packet - 1:,} packets read"))


def damaged(name: str, packet: int, at: int, reason: str) -> DamagedError:
    """Bytes that can't be a packet or block."""
    words = f"{name}: packet {packet:,} at byte {at:,}: {reason}; {packet - 1:,} packets read, the rest is left"
    return DamagedError(Finding("file-damaged", Severity.WARNING, words))
