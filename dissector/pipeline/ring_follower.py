"""Follows a ring of capture files into tables: ingests files as they close, in processes of this machine.

A micro-batch is the files that were closed since the last one. Packet numbers continue over all micro-batches, each
partition continues from its carry-over (`micro_batch`), and the rows are committed together with the new carry-over.
Tables equal those of one `ingest` of the same files, as soon as the last request has its response or its connection has
ended. That includes findings and their messages: rows of a connection are examined in order, observations of all
connections are aggregated in order up to the first pending request, and findings about a row that is in the tables
already, or new words of such findings, are further rows of `findings`.

What may differ, as it depends on what is learned after a row was written:
  * names that only a later message has (of a topic id, of the client's software), and what a response without a request
    is by inference: the row has what was known then;
  * `version-not-offered` if a server advertised its versions only afterwards, and `closed-in-flight` with it;
  * findings about a request whose response comes after the examination has passed it: after too many other requests,
    too long after its connection was closed, or too long after the request itself. Retransmissions are not reported if
    more other rows of the partition lie between than a detector remembers;
  * the cause of a close, where it takes rows of the connection that are written already: `closed-in-flight` is there in
    place of `suspect-version` and the like;
  * what was read before its TLS secrets were in the key log may stay encrypted, and be in no table, until
    `kdissect tables replace --keylog`;
  * problems of all files together (`captures.problems`) are reported at the end, and are not in the table.
A connection's row is written when it has ended, an exchange when its response is there. Files that overlap in time are
merged if they come in one micro-batch, and are otherwise read one after the other. A file that begins more than
`LATE_NS` before packets already read is ingested by itself, with a finding.

Invariants:
  * each row is in the tables exactly once, whenever the process dies (`micro_batch_run`);
  * memory and state do not grow with the packets read, but for 150 bytes a connection (`capture_session`). Observations
    are kept in files, for as long as the examination waits for a response.
"""

import os
import shutil
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Self

from dissector.capture_session.tls_problems import KEY_LOG
from dissector.core.finding import Finding, Severity
from dissector.pipeline.file_scan import FileScan, scan_file
from dissector.pipeline.follow_state import FOLLOWER, FollowState, read_state, write_state
from dissector.pipeline.ingest import known_captures, name_among
from dissector.pipeline.ingest_here import ingest_here
from dissector.pipeline.micro_batch_run import MicroBatchRun
from dissector.pipeline.partition_rows import WriteOptions
from dissector.pipeline.ring import QUIET_SECONDS, Ring, RingFile, ring_file
from dissector.pipeline.splits import FilesChangedError
from dissector.pipeline.tls_secrets import TlsSecrets
from dissector.pipeline.worker_processes import Workers
from dissector.tables.delta_log import create_tables, live_captures
from dissector.tables.file_systems import is_url
from dissector.tables.new_rows import of_files, of_run
from dissector.tables.run import Run
from dissector.tables.storage import Storage

LATE_NS: Final = 1_000_000_000
"""Maximum disorder of packets around the end of a file, which clocks and queues cause."""
POLL: Final = 0.1
"""Seconds between two looks at a folder of this machine."""
POLL_STORE: Final = 0.5
"""Seconds between two lists of an object store, each of which costs something."""
MOST_PARTS_HERE: Final = 4
"""Partitions of a new ring, each with a process of 100 MB while it is followed."""
FILES: Final = "closed-files"
"""The log of the ring."""
_WARNINGS: Final = {
    "late-file": "came after files with later packets: read by itself",
    "file-grew": "grew after it seemed closed: later packets are not in the tables",
    "file-overwritten": "overwritten before it was read: its packets are not in the tables",
}


@dataclass
class MicroBatchReport:
    """Report about one micro-batch."""

    files: int = 0
    packets: int = 0
    rows: int = 0
    seconds: float = 0.0
    behind: float = 0.0
    """Seconds from the newest packet until it was in the tables."""
    problems: list[Finding] = field(default_factory=list)
    written: list[str] = field(default_factory=list)
    """Conditions in SQL, one of which each row meets that was written, or that got its first finding of a kind."""
    known_as: dict[str, str] = field(default_factory=dict)
    """By paths of files with the contents of others that are in the tables, those of these; empty if not known."""


class Follower:
    """Follows one folder of capture files into the tables of another folder, in `parts` partitions if it is a new
    ring."""

    def __init__(
        self, out: str, options: WriteOptions, report: Callable[[MicroBatchReport], None],
        key_logs: Sequence[str] = (), parts: int | None = None,
    ) -> None:  # fmt: skip
        self._out = out
        self._storage = Storage(out)
        create_tables(self._storage.uri)
        self._folder = Path(out).absolute() / FOLLOWER
        self._options = options
        self._key_logs = key_logs
        self._secrets = TlsSecrets(key_logs)
        """Those of captures are those of this process's micro-batches."""
        self._report = report
        self._folder.mkdir(parents=True, exist_ok=True)
        self._state = read_state(self._folder) or FollowState(parts or _useful_parts(), Run.new().epoch)
        write_state(self._folder, self._state)
        self._workers: Workers | None = None
        self._stack = ExitStack()
        self._has_advised = False
        """Whether it was said what to do about secrets that come late."""

    def __enter__(self) -> Self:
        if self._state.parts > 1:
            self._workers = self._stack.enter_context(Workers(self._state.parts))
        return self

    def __exit__(self, *_: object) -> None:
        """End the processes."""
        self._stack.close()

    def run(self, folder: str, idle: float | None, quiet: float = QUIET_SECONDS) -> None:
        """Run until interrupted, or until no file has come for `idle` seconds: the ring has then ended, and pending
        rows are written as they are. Raises `OSError`, `StorageError` and `CaptureError`; whatever ends it, another
        follower continues."""
        poll, path = (POLL_STORE, folder) if is_url(folder) else (POLL, str(Path(folder).absolute()))
        ring = Ring(path, self._folder / FILES, quiet)
        active_at = time.monotonic()
        while True:
            batch = self._state.batch + 1
            if files := ring.take(batch):
                self.micro_batch(files)
                active_at = time.monotonic()
            elif idle is not None and time.monotonic() - active_at >= idle:
                self.end()
                return
            else:
                time.sleep(poll)

    def micro_batch(self, entries: Sequence[RingFile]) -> None:
        """Ingest the files of the next micro-batch. Raises `StorageError` and `CaptureError`."""
        began, report = time.monotonic(), MicroBatchReport()
        scans = self._new_captures(entries, report)
        late = [scan for scan in scans if scan.first_ns < self._state.latest_ns - LATE_NS]
        new = [scan for scan in scans if scan not in late]
        if late:  # before the others: after a crash they come again, and are in the tables already
            report.problems += [_warning("late-file", scan.path) for scan in late]
            paths = [scan.path for scan in late]
            result = ingest_here(paths, self._out, self._options, key_logs=self._key_logs)
            report.problems += result.problems
            report.written.append(of_run(result.epoch))
        report.rows = self._run(new, report)
        if not self._has_advised and any(problem.code == KEY_LOG for problem in report.problems):
            report.problems.append(_decrypted_later(self._out))
            self._has_advised = True
        report.files, report.packets = len(scans), sum(scan.packets for scan in scans)
        report.seconds = time.monotonic() - began
        report.behind = max(0.0, time.time() - self._state.latest_ns / 1e9)
        self._report(report)

    def end(self) -> None:
        """End the ring: write all pending rows and remove the follower's folder."""
        began, report = time.monotonic(), MicroBatchReport()
        report.rows = self._run([], report, is_last=True)
        shutil.rmtree(self._folder)
        report.seconds = time.monotonic() - began
        self._report(report)

    def _run(self, scans: list[FileScan], report: MicroBatchReport, *, is_last: bool = False) -> int:
        """Run the next micro-batch, without files that the ring overwrites meanwhile. Return how many exchanges it has
        written."""
        while True:
            run = MicroBatchRun(
                self._storage, self._folder, self._state.batch + 1, scans, self._options, self._state, self._secrets,
                self._workers, is_last=is_last,
            )  # fmt: skip
            try:
                counts = run.execute()
            except FilesChangedError as changed:
                report.problems += changed.findings
                paths = {finding.path for finding in changed.findings}
                scans = [scan for scan in scans if scan.path not in paths]
                continue
            report.problems += run.problems
            self._state = run.state
            report.written.append(of_files(self._storage.uri, run.files))
            return counts["exchanges"]

    def _new_captures(self, entries: Sequence[RingFile], report: MicroBatchReport) -> list[FileScan]:
        """Return the captures that are not in the tables yet."""
        # What this follower has committed without its state, before a crash, has to be read again for the state.
        captures = live_captures(self._storage.uri)
        others = known_captures((row for row in captures if row["epoch"] != self._state.epoch), self._options)
        known = dict.fromkeys(self._state.digests, "") | others
        scans = []
        for entry in entries:
            scan = scan_file(entry.path)
            if ring_file(entry.path) != entry:  # it is taken again once it is closed
                report.problems.append(_warning("file-overwritten", entry.path))
                continue
            report.problems += scan.problems
            if not scan.ranges or scan.digest in known:
                continue
            if (name := name_among(known, scan)) is not None:
                report.known_as[scan.path] = name
            elif self._state.begins.get(scan.path) == scan.first_ns:
                report.problems.append(_warning("file-grew", scan.path))
            else:
                known |= dict.fromkeys(scan.digests, scan.path)
                scans.append(scan)
        return scans


def _useful_parts() -> int:
    """Return how many partitions a new ring gets: as many as there are cores, up to a few."""
    return min(len(os.sched_getaffinity(0)), MOST_PARTS_HERE)


def _decrypted_later(out: str) -> Finding:
    words = (
        "what is read before its secrets are in the key log stays encrypted; once the ring has ended, kdissect tables"
    )
    return Finding(KEY_LOG, Severity.NOTE, f"{words} replace {out} FILES --keylog FILE decrypts it")


def _warning(code: str, path: str) -> Finding:
    return Finding(code, Severity.WARNING, f"{path}: {_WARNINGS[code]}")
