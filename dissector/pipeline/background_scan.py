"""What this process can do while Spark starts: import the pipeline, and scan files, in a thread.

So this module imports nothing that takes long.
"""

import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dissector.pipeline.file_scan import FileScan


class _CancelledError(Exception):
    """The result of the scan is no longer needed."""


class BackgroundScan:
    """Imports the pipeline, and then scans files one after the other in a thread, until the results are needed. The
    thread has ended when the context is left: one that runs while Python exits would crash it."""

    def __init__(self, paths: Sequence[str]) -> None:
        self._paths = paths
        self._scans: list[FileScan] = []
        self._requested = threading.Event()
        self._cancelled = threading.Event()
        self._thread = threading.Thread(target=self._scan, daemon=True)
        self._thread.start()

    def __enter__(self) -> "BackgroundScan":
        return self

    def __exit__(self, *_: object) -> None:
        self._requested.set()
        self._cancelled.set()
        self._thread.join()

    def _scan(self) -> None:
        # Nothing of pyspark: another thread imports it meanwhile, and its modules import each other.
        from dissector.pipeline import file_scan, ingest  # noqa: F401  # for the run that follows

        with suppress(Exception):  # a Spark task scans the file again and reports it
            for path in self._paths:
                if self._requested.is_set():
                    return
                self._scans.append(file_scan.scan_file(path, on_progress=self._check_cancelled))

    def _check_cancelled(self) -> None:
        if self._cancelled.is_set():
            raise _CancelledError

    def scans(self) -> "list[FileScan]":
        """Return the scans of the first files. The current file is scanned to its end."""
        self._requested.set()
        self._thread.join()
        return self._scans
