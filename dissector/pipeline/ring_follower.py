"""Follows a ring of capture files into tables: a job of Spark's structured streaming that ingests files as they close.

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

import contextlib
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from dissector.capture_session.tls_problems import KEY_LOG
from dissector.core.finding import Finding, Severity
from dissector.pipeline import closed_files
from dissector.pipeline.file_scan import FileScan
from dissector.pipeline.follow_state import FOLLOWER, FollowState, read_state, write_state
from dissector.pipeline.ingest import known_captures, name_among
from dissector.pipeline.ingest_on_spark import ingest_on_spark
from dissector.pipeline.micro_batch_run import MicroBatchRun
from dissector.pipeline.partition_rows import WriteOptions
from dissector.pipeline.ring import QUIET_SECONDS, RingFile, ring_file
from dissector.pipeline.scan import scan_files
from dissector.pipeline.tls_secrets import TlsSecrets
from dissector.tables.delta_log import create_tables, live_captures
from dissector.tables.run import Run
from dissector.tables.storage import Storage

LATE_NS: Final = 1_000_000_000
"""Maximum disorder of packets around the end of a file, which clocks and queues cause."""
WAITING: Final = "Waiting"
"""Prefix of a query's status message once it has looked for data: it waits for data, or for its next trigger."""
POLL: Final = 0.5
"""Seconds between two scans of the folder."""


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
    known_as: dict[str, str] = field(default_factory=dict)
    """By paths of files with the contents of others that are in the tables, those of these; empty if not known."""


class Follower:
    """Follows one folder of capture files into the tables of another folder."""

    def __init__(
        self, spark: SparkSession, out: str, options: WriteOptions, parts: int,
        report: Callable[[MicroBatchReport], None], key_logs: Sequence[str] = (),
    ) -> None:  # fmt: skip
        self._spark = spark
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
        self._state = read_state(self._folder) or FollowState(parts, Run.new().epoch)
        write_state(self._folder, self._state)
        self._is_busy = False
        self._has_advised = False
        """Whether it was said what to do about secrets that come late."""

    def run(self, folder: str, idle: float | None, quiet: float = QUIET_SECONDS) -> None:
        """Run until interrupted, or until no file has come for `idle` seconds: the ring has then ended, and pending
        rows are written as they are. Raises the exception of a micro-batch."""
        self._spark.dataSource.register(closed_files.ClosedFilesSource)
        files = self._spark.readStream.format(closed_files.NAME).option("folder", str(Path(folder).absolute()))
        files = files.option("log", str(self._folder / "files")).option("quiet", str(quiet))
        stream = files.load().writeStream.foreachBatch(self._process)
        stream = stream.trigger(processingTime=f"{int(POLL * 1000)} milliseconds")
        query = stream.option("checkpointLocation", str(self._folder / "checkpoint")).start()
        active_at, has_looked = time.monotonic(), False
        try:
            while not _has_ended(query):
                has_looked = has_looked or query.status["message"].startswith(WAITING)
                if not has_looked or self._is_busy or query.status["isDataAvailable"]:
                    active_at = time.monotonic()
                elif idle is not None and time.monotonic() - active_at >= idle:
                    break
        finally:
            with contextlib.suppress(KeyboardInterrupt):
                query.stop()
        if idle is not None:
            self._end()

    def _process(self, files: DataFrame, batch: int) -> None:
        """Process a micro-batch, unless it was committed before a crash."""
        if batch <= self._state.batch:
            return
        self._is_busy = True
        try:
            rows = sorted(files.collect(), key=lambda row: int(row.position))
            self._micro_batch([RingFile(row.path, row.size, row.changed_ns, row.inode) for row in rows], batch)
        finally:
            self._is_busy = False

    def _micro_batch(self, entries: list[RingFile], batch: int) -> None:
        began, report = time.monotonic(), MicroBatchReport()
        scans = self._new_captures(entries, report)
        late = [scan for scan in scans if scan.first_ns < self._state.latest_ns - LATE_NS]
        new = [scan for scan in scans if scan not in late]
        if late:  # before the others: after a crash they come again, and are in the tables already
            report.problems += [_late(scan) for scan in late]
            report.problems += ingest_on_spark(
                self._spark, [scan.path for scan in late], self._out, self._options, key_logs=self._key_logs
            ).problems
        run = MicroBatchRun(
            self._spark, self._storage, self._folder, batch, new, self._options, self._state, self._secrets
        )
        counts = run.execute()
        report.problems += run.problems
        if not self._has_advised and any(problem.code == KEY_LOG for problem in run.problems):
            report.problems.append(_decrypted_later(self._out))
            self._has_advised = True
        self._state = run.state
        report.files, report.packets, report.rows = len(scans), sum(scan.packets for scan in scans), counts["exchanges"]
        report.seconds = time.monotonic() - began
        report.behind = max(0.0, time.time() - self._state.latest_ns / 1e9)
        self._report(report)

    def _new_captures(self, entries: list[RingFile], report: MicroBatchReport) -> list[FileScan]:
        """Return the captures that are not in the tables yet."""
        # What this follower has committed without its state, before a crash, has to be read again for the state.
        captures = live_captures(self._storage.uri)
        others = known_captures((row for row in captures if row["epoch"] != self._state.epoch), self._options)
        known = dict.fromkeys(self._state.digests, "") | others
        scans = []
        for entry, scan in zip(entries, scan_files(self._spark, [entry.path for entry in entries]), strict=True):
            if ring_file(Path(entry.path)) != entry:  # it is reported again once it is closed
                report.problems.append(_changed(entry))
                continue
            report.problems += scan.problems
            if not scan.ranges or scan.digest in known:
                continue
            if (name := name_among(known, scan)) is not None:
                report.known_as[scan.path] = name
            elif self._state.begins.get(scan.path) == scan.first_ns:
                report.problems.append(_grown(scan))
            else:
                known |= dict.fromkeys(scan.digests, scan.path)
                scans.append(scan)
        return scans

    def _end(self) -> None:
        """End the ring: write all pending rows and remove the follower's folder."""
        began, report = time.monotonic(), MicroBatchReport()
        last = MicroBatchRun(
            self._spark,
            self._storage,
            self._folder,
            self._state.batch + 1,
            [],
            self._options,
            self._state,
            self._secrets,
            is_last=True,
        )
        report.rows = last.execute()["exchanges"]
        report.problems += last.problems
        shutil.rmtree(self._folder)
        report.seconds = time.monotonic() - began
        self._report(report)


def _has_ended(query: StreamingQuery) -> bool:
    """Whether a query has ended, `POLL` seconds later. Raises its error."""
    time.sleep(POLL)
    return not query.isActive and query.awaitTermination(1) is not False


def _decrypted_later(out: str) -> Finding:
    words = (
        "what is read before its secrets are in the key log stays encrypted; once the ring has ended, kdissect tables"
    )
    return Finding(KEY_LOG, Severity.NOTE, f"{words} replace {out} FILES --keylog FILE decrypts it")


def _late(scan: FileScan) -> Finding:
    words = f"{scan.path}: came after files with later packets: read by itself"
    return Finding("late-file", Severity.WARNING, words)


def _grown(scan: FileScan) -> Finding:
    words = f"{scan.path}: grew after it seemed closed: later packets are not in the tables"
    return Finding("file-grew", Severity.WARNING, words)


def _changed(entry: RingFile) -> Finding:
    words = f"{entry.path}: overwritten before it was read: its packets are not in the tables"
    return Finding("file-overwritten", Severity.WARNING, words)
