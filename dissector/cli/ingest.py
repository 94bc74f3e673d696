"""`kdissect ingest`: captures to tables, on Spark. What is going on and what came of it on stderr."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

from dissector.cli.outcome import BAD_INPUT, NEGATIVE, complain
from dissector.text import clean

if TYPE_CHECKING:
    from dissector.pipeline.ingest import Outcome
    from dissector.pipeline.progress import Report

MISSING: Final = "ingest needs Spark's Python side: pip install 'kafka-dissector[spark]'"

UNREAD: Final = ("not-a-capture", "file-changed")
"""Codes of what is told of files that are not in the tables."""


def ingest(
    captures: Sequence[str], out: str, master: str | None, remote: str | None, conf: Sequence[str], *,
    frames: bool, hashed: bool, show_secrets: bool, verbose: bool, follow: bool = False, idle: float | None = None,
) -> int:  # fmt: skip
    """Read captures, and folders of them, into the tables of a folder; the exit code."""
    if find_spec("pyspark") is None:
        return complain(MISSING)
    wrong = [each for each in conf if "=" not in each]
    if wrong:
        return complain(f"--conf {wrong[0]}: not NAME=VALUE")
    from dissector.pipeline.folder import Folder, FolderError
    from dissector.pipeline.ingest import ingest as run
    from dissector.pipeline.parts import Keeping
    from dissector.pipeline.spark import JobError, NoSparkError, session

    if follow and (len(captures) != 1 or not Path(captures[0]).is_dir()):
        return complain("--follow takes one folder, that captures are written to")
    if follow and remote is not None:
        return complain("--follow runs where it is started: name a --master, and no Spark Connect server")
    if follow and "://" in out:
        return complain("--follow writes to a folder of this machine: give --out a path")
    if idle is not None and not follow:
        return complain("--idle goes with --follow")
    settings = dict(each.split("=", 1) for each in conf)
    keeping = Keeping(frames=frames, records=not hashed, secrets=show_secrets)
    try:
        Folder(out)  # before anything is started for it
        if follow:
            from dissector.cli.ingest_ring import follow as go_on

            with session(master, remote, settings, verbose=verbose) as spark:
                return go_on(spark, captures[0], out, keeping, idle)
        with _progress(verbose=verbose) as report, session(master, remote, settings, verbose=verbose) as spark:
            outcome = run(spark, _files(captures), out, keeping, report=report)
    except (NoSparkError, JobError, FolderError) as error:
        return complain(str(error))
    return _tell(outcome, out)


def _files(captures: Sequence[str]) -> list[str]:
    """Files as they are, and those of folders."""
    found: list[str] = []
    for each in captures:
        path = Path(each)
        found += sorted(str(file) for file in path.iterdir() if file.is_file()) if path.is_dir() else [each]
    return [str(Path(each).absolute()) for each in found]


@contextmanager
def _progress(*, verbose: bool) -> "Iterator[Report]":
    """A line that says which stage it is, for whoever watches a terminal."""
    if verbose or not sys.stderr.isatty():
        yield lambda stage, done, total: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("starting Spark", total=None)
        yield lambda stage, done, total: bar.update(task, description=stage, completed=done, total=total or None)


def _tell(outcome: "Outcome", out: str) -> int:
    """What came of it, a line each."""
    for problem in outcome.problems:
        complain(problem.message)
    for path in outcome.known:
        print(f"{clean(path)}: in the tables already", file=sys.stderr)
    counts = ", ".join(f"{name} {count:,}" for name, count in outcome.counts.items())
    if outcome.read:
        print(f"{outcome.read:,} captures, {outcome.packets:,} packets -> {clean(out)}: {counts}", file=sys.stderr)
    unread = [problem for problem in outcome.problems if problem.code in UNREAD]
    if unread:
        return BAD_INPUT
    return 0 if outcome.read or outcome.known else NEGATIVE
