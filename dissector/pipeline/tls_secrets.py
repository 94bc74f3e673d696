"""The TLS secrets of an ingest: those of key logs and of captures themselves.

Invariant: they leave this object as `text` alone, which goes to tasks in memory; no text of this object shows one.
"""

from collections.abc import Iterable, Sequence

from dissector.capture.errors import CaptureError
from dissector.capture_session.tally import CaptureTally
from dissector.capture_session.tls_problems import problems_of_key_logs
from dissector.core.finding import Finding
from dissector.core.limits import DEFAULT
from dissector.core.text import clean
from dissector.pipeline.file_scan import FileScan
from dissector.tls import KeyLogFile
from dissector.tls.key_log import KeyLog, KeyLogError


class TlsSecrets:
    """Secrets of key logs, which are read again whenever they are asked for, and of scanned captures.

    Raises `CaptureError` if a key log can't be opened."""

    def __init__(self, key_logs: Sequence[str] = ()) -> None:
        self._keys = KeyLog()
        try:
            self._key_logs = [KeyLogFile(path, self._keys, DEFAULT.key_log_bytes) for path in key_logs]
        except KeyLogError as error:
            raise CaptureError(str(error)) from None

    def add_scans(self, scans: Iterable[FileScan]) -> None:
        """Take the secrets of captures: their scans keep none."""
        for scan in scans:
            self._keys.add(scan.secrets)
            scan.secrets = b""

    @property
    def text(self) -> bytes:
        """A key log with all secrets; empty if there are none."""
        for each in self._key_logs:
            each.read()
            each.text.finish()
        return self._keys.text

    def problems(self, tally: CaptureTally, scans: Sequence[FileScan]) -> list[Finding]:
        """Return the problems of a capture of all scanned files whose partitions were counted."""
        tally.file_problems += problems_of_key_logs(self._key_logs)
        tally.tls.key_logs = tuple(clean(each.path) for each in self._key_logs if each.text.secrets)
        tally.tls.captured_ns = min((scan.first_ns for scan in scans if scan.ranges), default=0)
        return tally.problems

    def __repr__(self) -> str:
        return f"TlsSecrets({len(self._keys)} secrets)"

    def __reduce__(self) -> str:
        raise TypeError("secrets are in no pickle")
