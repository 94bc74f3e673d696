"""`kdissect ingest --follow`: a ring of captures to tables, until somebody interrupts. What it does on stderr."""

import sys
from typing import TYPE_CHECKING

from dissector.cli.exit_codes import NEGATIVE, print_error
from dissector.core.text import clean
from dissector.pipeline.ring import QUIET_SECONDS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from dissector.pipeline.partition_rows import WriteOptions
    from dissector.pipeline.ring_follower import MicroBatchReport


def follow(spark: "SparkSession", folder: str, out: str, options: "WriteOptions", idle: float | None) -> int:
    """Follow a folder into tables; the exit code. `idle` seconds without anything end it, and all that waits."""
    from pyspark.errors import StreamingQueryException

    from dissector.pipeline.ring_follower import Follower

    seen = 0

    def report(batch: "MicroBatchReport") -> None:
        nonlocal seen
        seen += batch.files
        _print_report(batch)

    follower = Follower(spark, out, options, 2 * spark.sparkContext.defaultParallelism, report)
    print(f"following {clean(folder)} -> {clean(out)}, Ctrl+C stops", file=sys.stderr)
    try:
        follower.run(folder, idle, QUIET_SECONDS if idle is None else min(QUIET_SECONDS, idle / 2))
    except KeyboardInterrupt:
        print("stopped: pending requests are kept; start again to continue", file=sys.stderr)
        return 0
    except StreamingQueryException as error:
        return print_error(f"stopped; start again to continue: {_cause(error)}")
    return 0 if seen else NEGATIVE


def _cause(error: Exception) -> str:
    """Why a query ended, without what Spark says of itself: one line."""
    words = str(error).partition("terminated with exception: ")[2] or str(error)
    return words.partition("\n")[0]


def _print_report(batch: "MicroBatchReport") -> None:
    """A line a micro-batch: what came, how fast, how far behind."""
    for problem in batch.problems:
        print_error(problem.message)
    rate = batch.packets / batch.seconds if batch.seconds else 0.0
    behind = f"; {batch.behind:.1f} s behind" if batch.files else ""
    print(
        f"{batch.files:,} files, {batch.packets:,} packets -> {batch.rows:,} rows in {batch.seconds:.1f} s: "
        f"{rate:,.0f} packets/s{behind}",
        file=sys.stderr,
    )
