"""The commands of `kdissect tables`."""

import json
import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from dissector.capture import CaptureError
from dissector.cli.cut_connections import print_cut_connections
from dissector.cli.errors import NEGATIVE, UsageError, print_error
from dissector.cli.formats import StatsFormat
from dissector.cli.tables import require_tables
from dissector.core.extras import is_installed, missing
from dissector.core.text import clean, counted
from dissector.core.text import size as size_words

if TYPE_CHECKING:
    from datetime import datetime

    from dissector.tables.snapshot import Snapshot
    from dissector.tables.view_engine import ViewEngine

Row = dict[str, Any]
_SECONDS: Final = {"d": 86_400.0, "h": 3_600.0}
_DIGITS: Final = 5
"""Of a number of days: more would be before 1970."""


def list_captures(folder: str, form: StatsFormat) -> int:
    """Print the captures in the tables; return the exit code, 1 if there are none."""
    rows = _seen(folder).captures
    of_runs = _problems_of_runs(rows)
    for row in sorted(rows, key=lambda each: (each["begin_ns"], each["path"])):
        if form is StatsFormat.JSON:
            print(json.dumps(row, default=str))
        else:
            when = _time(row["begin_ns"])
            own = [each for each in row["problems"] or () if each not in of_runs.get(row["epoch"], ())]
            count = f"  {counted(len(own), 'problem')}" if own else ""
            with_options = f"  ({row['options']})" if row["options"] else ""
            size = size_words(row["bytes"])
            print(
                f"{row['capture']}  {when}  {size:>7}  {row['packets']:>11,}  {clean(row['path'])}{with_options}{count}"
            )
    for epoch, problems in of_runs.items() if form is not StatsFormat.JSON else ():
        captures = counted(sum(row["epoch"] == epoch for row in rows), "capture")
        for each in problems:
            print(f"of {captures} that were read together: {clean(each['message'])}", file=sys.stderr)
    return 0 if rows else NEGATIVE


def _problems_of_runs(captures: Sequence[Row]) -> dict[int, list[Row]]:
    """Return, by epoch, the problems that all captures of a run have, if there are several."""
    found: dict[int, list[Row]] = {}
    for epoch in sorted({row["epoch"] for row in captures}):
        first, *others = [row["problems"] or [] for row in captures if row["epoch"] == epoch]
        shared = [each for each in first if others and all(each in problems for problems in others)]
        if shared:
            found[epoch] = shared
    return found


def forget(folder: str, names: Sequence[str], before: "datetime | None") -> int:
    """Remove captures, and those that end before a day (UTC); return the exit code, 1 if there are none."""
    if not names and before is None:
        raise UsageError("name captures, or give --before a day")
    seen = _seen(folder)
    from dissector.tables.delta_log import remove_captures
    from dissector.tables.file_systems import normal_uri

    found = {row["capture"]: row for row in (_named(seen, folder, name) for name in names)}
    if before is not None:
        found |= {row["capture"]: row for row in seen.captures if _is_older(row, before)}
    if found:
        remove_captures(normal_uri(folder), found)
    for row in found.values():
        print(f"{clean(row['path'])}: forgotten", file=sys.stderr)
    if not found:
        print(f"{clean(folder)}: no capture ends before that day", file=sys.stderr)
    return 0 if found else NEGATIVE


def _is_older(capture: Row, day: "datetime") -> bool:
    """Whether a capture ends before a day. One without times stays."""
    from datetime import UTC

    return 0 < int(capture["end_ns"]) < day.replace(tzinfo=UTC).timestamp() * 1e9


def replace(folder: str, names: Sequence[str], key_logs: Sequence[str] = ()) -> int:
    """Ingest captures again, as they were ingested, or with key logs; return the exit code."""
    found = [_named(_seen(folder), folder, name) for name in names]
    from dissector.cli.ingest import ingest
    from dissector.cli.options import THIS_MACHINE
    from dissector.pipeline.partition_rows import decode_as_in
    from dissector.tables.snapshot import has_bodies

    options = {row["options"] for row in found}
    if len(options) > 1:
        raise UsageError(f"{folder}: these captures were ingested with different options: replace them one by one")
    [words] = options
    if "keylog" in words and not key_logs:
        raise UsageError(f"{folder}: these captures were ingested with a key log, which was not kept: give --keylog")
    return ingest(
        [row["path"] for row in found], folder, THIS_MACHINE, frames="frames" in words, bodies=has_bodies(found[0]),
        hashed="hash-records" in words, show_secrets="show-secrets" in words, decode_as=decode_as_in(words),
        follow=False, idle=None, key_logs=key_logs, again=True,
    )  # fmt: skip


def compact(folder: str) -> int:
    """Rewrite small files as large ones; return the exit code."""
    _seen(folder)
    from dissector.tables import maintenance
    from dissector.tables.file_systems import normal_uri

    counts = maintenance.compact(normal_uri(folder))
    before, after = (sum(each[at] for each in counts.values()) for at in (0, 1))
    print(f"{clean(folder)}: {counted(after, 'file')} instead of {before:,}", file=sys.stderr)
    return 0


def upgrade(folder: str) -> int:
    """Add the tables and columns that tables of an earlier version lack, and print them; return the exit code."""
    _seen(folder)
    from dissector.tables.delta_log import create_tables
    from dissector.tables.file_systems import normal_uri
    from dissector.tables.schemas import KEYS

    added = {name: columns for name, columns in create_tables(normal_uri(folder)).items() if columns}
    for name, columns in added.items():
        change = "created" if columns[: len(KEYS)] == [each.name for each in KEYS] else f"{', '.join(columns)} added"
        print(f"{clean(folder)}: {name}: {change}", file=sys.stderr)
    if not added:
        print(f"{clean(folder)}: no column is missing", file=sys.stderr)
    return 0


def vacuum(folder: str, hours: int) -> int:
    """Remove files that no table has; return the exit code.

    Raises `CaptureError` while an ingest is at work, as its files are in no table yet.
    """
    _seen(folder)
    from dissector.tables import maintenance
    from dissector.tables.file_systems import normal_uri

    if who := _at_work(folder):
        raise CaptureError(f"{folder}: {who} is ingesting into it, and its files are in no table yet: try again later")
    removed = maintenance.vacuum(normal_uri(folder), hours)
    print(f"{clean(folder)}: {counted(removed, 'file')} removed", file=sys.stderr)
    return 0


def _at_work(folder: str) -> str:
    """Return which process is ingesting into tables; nothing if there is none."""
    from dissector.pipeline.runs import runs_of
    from dissector.tables.storage import Storage

    found = (run for run in runs_of(Storage(folder)) if not run.is_abandoned)
    return next((f"process {run.process} of {run.host}" for run in found), "")


def upkeep(
    folder: str, keep: str | None, hours: int, catalog: str | None = None, namespace: str = "kafka", *, dry_run: bool
) -> int:
    """Forget old captures, compact, bring metadata of Iceberg up to date, and vacuum, or say what would be done, one
    line a step; return the exit code, 1 if an ingest is at work, so that files were left where they are. A `catalog`
    gets the metadata, too.

    Others may ingest and read meanwhile. If a step fails, those behind it are left out, and the next time does them."""
    longest = None if keep is None else _seconds(keep)
    seen = _seen(folder)
    if catalog is not None:
        _require_pyiceberg()
    from dissector.tables import maintenance
    from dissector.tables.delta_log import remove_captures
    from dissector.tables.file_systems import is_there, normal_uri

    uri, would = normal_uri(folder), "would be " if dry_run else ""

    def tell(step: str, words: str) -> None:
        print(f"{clean(folder)}: {step}: {words}", file=sys.stderr, flush=True)

    if longest is not None:
        end_ns = int((time.time() - longest) * 1e9)
        old = [row["capture"] for row in seen.captures if 0 < row["end_ns"] < end_ns]
        if old and not dry_run:
            remove_captures(uri, old)
        tell("forget", f"{counted(len(old), 'capture')} that ended before {_time(end_ns)} UTC {would}removed")
    before = sum(map(len, seen.files.values()))
    if dry_run:
        tell("compact", f"the small ones of {counted(before, 'file')} would be merged")
    else:
        counts = maintenance.compact(uri).values()
        tell("compact", f"{counted(sum(at[1] for at in counts), 'file')} instead of {sum(at[0] for at in counts):,}")
    if catalog is not None or (is_there(f"{uri}/_iceberg") and is_installed("pyiceberg")):
        changed = 0
        if not dry_run:
            from dissector.tables.iceberg import write_iceberg

            written = write_iceberg(uri, _seen(folder), catalog, namespace)
            changed = sum(bool(each.added or each.removed) for each in written)
        tell("iceberg", "metadata would be written" if dry_run else f"{counted(changed, 'table')} written")
    if who := _at_work(folder):
        tell("vacuum", f"left to the next time: {who} is ingesting, and its files are in no table yet")
        return NEGATIVE
    removed = maintenance.vacuum(uri, hours, dry_run=dry_run)
    tell("vacuum", f"{counted(removed, 'file')} older than {counted(hours, 'hour')} {would}removed")
    return 0


def _seconds(duration: str) -> float:
    """Return the seconds of a number of days or hours, such as ``30d``. Raises `UsageError` for anything else."""
    number, unit = duration[:-1], duration[-1:]
    if unit not in _SECONDS or not (number.isascii() and number.isdecimal()) or len(number) > _DIGITS:
        raise UsageError(f"--keep {duration}: a number of days or hours is needed, such as 30d or 12h")
    return int(number) * _SECONDS[unit]


def verify(folder: str) -> int:
    """Check tables; return the exit code, 1 if something is wrong. Connections that are cut between captures are named,
    and are not wrong."""
    seen = _seen(folder)
    from dissector.tables.file_systems import normal_uri
    from dissector.tables.verification import problems

    found = list(problems(normal_uri(folder), seen))
    for words in found:
        print_error(f"{folder}: {words}")
    if not found:
        print(f"{clean(folder)}: {counted(len(seen.captures), 'capture')}, nothing is missing", file=sys.stderr)
    print_cut_connections(folder)
    return NEGATIVE if found else 0


def views(folder: str, engine: "ViewEngine", *, of_now: bool) -> int:
    """Print statements that define views of the tables, or of the files that are there now; return the exit code."""
    seen = _seen(folder)
    from dissector.tables.file_systems import normal_uri
    from dissector.tables.views import statements

    print(";\n\n".join(statements(seen, engine, by_log=None if of_now else normal_uri(folder))) + ";")
    return 0


def iceberg(folder: str, catalog: str | None, namespace: str) -> int:
    """Write metadata of Iceberg over the tables, and print where it is; return the exit code."""
    seen = _seen(folder)
    _require_pyiceberg()
    from dissector.tables.file_systems import normal_uri
    from dissector.tables.iceberg import write_iceberg

    added = removed = 0
    for table in write_iceberg(normal_uri(folder), seen, catalog, namespace):
        print(f"{table.name}\t{table.metadata}")
        added, removed = added + table.added, removed + table.removed
    print(f"{clean(folder)}: {counted(added, 'file')} added, {removed:,} removed", file=sys.stderr)
    return 0


def _require_pyiceberg() -> None:
    """Raise `CaptureError` if pyiceberg is not installed."""
    if not is_installed("pyiceberg"):
        raise CaptureError(missing("this needs pyiceberg", "iceberg"))


def _seen(folder: str) -> "Snapshot":
    """Return what is to be seen of the tables. Raises `CaptureError` if there are none, or no libraries for them: what
    needs those is imported behind this."""
    require_tables()
    from dissector.tables.snapshot import seen_tables

    return seen_tables(folder)


def _named(seen: "Snapshot", folder: str, name: str) -> Row:
    """Return the capture with a name. Raises `CaptureError` if it is not exactly one."""
    from dissector.tables.reader import has_name

    found = [row for row in seen.captures if has_name(row["path"], row["digest"], name)]
    if len(found) != 1:
        many = f"{len(found)} captures are called {name}: give the path or the digest of one"
        raise CaptureError(f"{folder}: {many if found else f'no capture is called {name}'}")
    return found[0]


def _time(time_ns: int) -> str:
    from datetime import UTC, datetime

    return f"{datetime.fromtimestamp(time_ns / 1e9, UTC):%Y-%m-%d %H:%M:%S}" if time_ns else " " * 19
