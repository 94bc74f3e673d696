"""`kdissect ingest`: convert captures to tables, once or, with `--follow`, as files appear in a folder.

Spark does it, unless they are small and no cluster is named. What is followed comes in small pieces, and goes without.

Progress and results go to stderr.
"""

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Final

from dissector.capture import CaptureError
from dissector.cli.cut_connections import forget_spare, print_cut_connections, reporting
from dissector.cli.errors import BAD_INPUT, NEGATIVE, UsageError, print_error
from dissector.cli.options import Cluster
from dissector.cli.spark import progress_bar, require_spark, spark_session
from dissector.cli.tables import require_tables
from dissector.core.files import is_directory
from dissector.core.process_memory import prepare_arrow
from dissector.core.text import clean, counted, os_reason

if TYPE_CHECKING:
    from dissector.cli.alerts import Alerts
    from dissector.detection.decode_as import DecodeAs
    from dissector.pipeline.ingest import IngestResult
    from dissector.pipeline.partition_rows import WriteOptions
    from dissector.pipeline.ring_follower import MicroBatchReport

SMALL: Final = 1 << 30
"""Bytes of captures that processes of this machine ingest in less time than Spark, which takes a while to start."""
UNREAD: Final = ("not-a-capture", "file-changed")
"""Codes of findings about files that are not in the tables."""


def ingest(
    captures: Sequence[str], out: str, cluster: Cluster, *, frames: bool, bodies: bool, hashed: bool,
    show_secrets: bool, decode_as: Sequence["DecodeAs"], follow: bool, idle: float | None,
    key_logs: Sequence[str] = (), again: bool = False, skip_known: bool = False, fail_on: str | None = None,
    notify: str | None = None,
) -> int:  # fmt: skip
    """Convert captures, and folders of them, to tables in the folder `out`; return the exit code. Those that
    are in the tables are left as they are, unless they are to be ingested `again`. With `skip_known`, those of which
    other captures in the tables have everything are left out. The exit code tells whether new rows match the filter
    `fail_on`, and counts go to the address `notify`."""
    require_tables()
    if frames and not bodies:
        raise UsageError("--frames keeps bytes beside bodies: leave out --no-bodies")
    if follow:
        _check_follow(captures, out, cluster)
    elif idle is not None:
        raise UsageError("--idle needs --follow")
    if follow and skip_known:
        raise UsageError("--skip-known can't be used with --follow, which ingests connections before they end")
    prepare_arrow()
    alerts = _alerts(out, fail_on, notify, bodies=bodies)
    from dissector.pipeline.runs import remove_runs_afterwards
    from dissector.tables.storage import Storage, StorageError

    def options() -> "WriteOptions":  # to import what they are of takes a while, in which Spark can start
        from dissector.pipeline.partition_rows import WriteOptions

        return WriteOptions(frames, not hashed, show_secrets, bool(key_logs), tuple(decode_as), bodies)

    try:
        Storage(out)  # raises before anything is started
        with remove_runs_afterwards(out):
            if follow:
                from dissector.pipeline.follow_state import FOLLOWER, read_state

                read_state(Path(out) / FOLLOWER)  # it, too
                return _follow(captures[0], out, options(), idle, key_logs, alerts)
            result = _ingest(_files(captures), out, options, cluster, key_logs, again=again)
    except StorageError as error:
        return print_error(str(error))
    code = _print_result(result, out, skip_known=skip_known)
    return code if alerts is None else max(code, _tell(alerts, result))


def _alerts(out: str, fail_on: str | None, notify: str | None, *, bodies: bool) -> "Alerts | None":
    if fail_on is None and notify is None:
        return None
    from dissector.cli.alerts import Alerts

    return Alerts(out, fail_on, notify, bodies=bodies)


def _tell(alerts: "Alerts", result: "IngestResult") -> int:
    """Tell of a run that has ended; return the exit code."""
    from dissector.tables.new_rows import of_run

    counts = {"captures": result.read, "packets": result.packets, "problems": len(result.problems)}
    counts |= {"exchanges": result.counts.get("exchanges", 0)}
    return alerts.tell([of_run(result.epoch)] if result.read else [], counts)


def _ingest(
    files: list[str], out: str, options: "Callable[[], WriteOptions]", cluster: Cluster, key_logs: Sequence[str], *,
    again: bool,
) -> "IngestResult":  # fmt: skip
    """Ingest files in processes of our own if they are small, or else by Spark."""
    if not cluster.is_set and _size(files) <= SMALL:
        from dissector.pipeline.ingest_here import ingest_here

        with progress_bar(cluster, "reading") as bar:
            return ingest_here(files, out, options(), bar, key_logs=key_logs, again=again)
    require_spark()
    from dissector.pipeline.background_scan import BackgroundScan
    from dissector.pipeline.spark_session import is_local

    scan = BackgroundScan(files) if is_local(cluster.remote or cluster.master) else nullcontext()
    with scan as ahead, spark_session(cluster, is_for_python=True) as (spark, bar):
        from dissector.pipeline.ingest_on_spark import ingest_on_spark

        return ingest_on_spark(spark, files, out, options(), report=bar, ahead=ahead, key_logs=key_logs, again=again)


def _size(files: Sequence[str]) -> int:
    """Return the bytes of files; those that can't be read count as empty."""
    from dissector.pipeline.input_files import size_of

    return sum(max(0, size_of(each)) for each in files)


def _check_follow(captures: Sequence[str], out: str, cluster: Cluster) -> None:
    """Raise `UsageError` for arguments that `--follow` can't have."""
    from dissector.tables.file_systems import is_url

    if len(captures) != 1 or not (is_url(captures[0]) or is_directory(captures[0])):
        raise UsageError("--follow needs a single folder, to which captures are written")
    if cluster.is_set:
        raise UsageError("--follow runs on this machine without Spark: leave out the options for Spark")
    if "://" in out:
        raise UsageError("--follow writes to a folder on this machine: give --out a path")


def _files(captures: Sequence[str]) -> list[str]:
    """Return the paths of files and of those in folders. Raises `CaptureError` for a folder that can't be read."""
    from dissector.pipeline.input_files import listed
    from dissector.tables.file_systems import is_url

    found: list[str] = []
    for each in captures:
        if is_url(each):
            found += listed(each)
            continue
        try:
            found += sorted(file.path for file in os.scandir(each) if file.is_file()) if is_directory(each) else [each]
        except OSError as error:
            raise CaptureError(f"{each}: {os_reason(error)}") from None
    return [each if is_url(each) else str(Path(each).absolute()) for each in found]


def _print_result(result: "IngestResult", out: str, *, skip_known: bool) -> int:
    """Print problems, captures that were in the tables before, counts, and connections that other captures continue or
    have, too, after captures with nothing else were left out; return the exit code."""
    for problem in result.problems:
        print_error(problem.message)
    _print_known(result.known_as)
    for path, other in result.replaced.items():
        print(f"{clean(path)}: replaces {clean(other)}, which has the same content", file=sys.stderr)
    counts = ", ".join(f"{name} {count:,}" for name, count in result.counts.items())
    if result.read:
        print(
            f"{counted(result.read, 'capture')}, {counted(result.packets, 'packet')} -> {clean(out)}: {counts}",
            file=sys.stderr,
        )
        if skip_known:
            _leave_out_spare(out, result.epoch)
        print_cut_connections(out, result.epoch)
    if any(problem.code in UNREAD for problem in result.problems):
        return BAD_INPUT
    return 0 if result.read or result.already_ingested else NEGATIVE


def _print_known(names: Mapping[str, str]) -> None:
    """Print which captures were left out, given the paths under which they are in the tables."""
    for path, other in names.items():
        under = f" as {clean(other)}" if other not in ("", path) else ""
        print(f"{clean(path)}: already in the tables{under}", file=sys.stderr)


def _leave_out_spare(out: str, epoch: int) -> None:
    """Remove the captures of a run of which other captures have everything, and print them. If that fails, they are in
    the tables, which is reported."""
    with reporting(f"{out}: cannot tell which captures are known"):
        for path in forget_spare(out, epoch):
            print(f"{clean(path)}: left out: other captures in the tables contain everything in it", file=sys.stderr)


def _follow(
    folder: str, out: str, options: "WriteOptions", idle: float | None, key_logs: Sequence[str], alerts: "Alerts | None"
) -> int:  # fmt: skip
    """Convert the files of a folder as they are closed, until interrupted; return the exit code. Raises `StorageError`
    and `CaptureError`.

    After `idle` seconds without a file, whatever is pending is written and the command ends.
    """
    from dissector.pipeline.ring import QUIET_SECONDS
    from dissector.pipeline.ring_follower import Follower
    from dissector.tables.storage import StorageError

    files = code = 0

    def report(batch: "MicroBatchReport") -> None:
        nonlocal files, code
        files += batch.files
        _print_report(batch)
        if alerts is not None:
            counts = {"captures": batch.files, "packets": batch.packets, "problems": len(batch.problems)}
            code = max(code, alerts.tell(batch.written, counts | {"exchanges": batch.rows}))

    print(f"following {clean(folder)} -> {clean(out)}, Ctrl+C stops", file=sys.stderr)
    try:
        with Follower(out, options, report, key_logs) as follower:
            follower.run(folder, idle, QUIET_SECONDS if idle is None else min(QUIET_SECONDS, idle / 2))
    except KeyboardInterrupt:
        print("stopped: pending requests are saved; start again to continue", file=sys.stderr)
        return code
    except (StorageError, CaptureError):
        raise
    except Exception as error:  # of a state that somebody has changed, too, anything can be raised
        words = os_reason(error) if isinstance(error, OSError) else f"{type(error).__name__}: {clean(str(error))}"
        return print_error(f"stopped; start again to continue: {words}")
    return max(code, 0 if files else NEGATIVE)


def _print_report(batch: "MicroBatchReport") -> None:
    """Print problems, and one line for a micro-batch: its size, speed and delay."""
    for problem in batch.problems:
        print_error(problem.message)
    _print_known(batch.known_as)
    rate = batch.packets / batch.seconds if batch.seconds else 0.0
    behind = f"; {batch.behind:.1f} s behind" if batch.files else ""
    print(
        f"{counted(batch.files, 'file')}, {counted(batch.packets, 'packet')} -> {counted(batch.rows, 'row')} "
        f"in {batch.seconds:.1f} s: "
        f"{rate:,.0f} packets/s{behind}",
        file=sys.stderr,
    )
