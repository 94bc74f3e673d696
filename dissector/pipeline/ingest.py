"""The job: captures to tables, and what holds of them whatever happens.

Invariants:
  * a capture is in the tables when `captures` has its row, which comes last: of a run that was killed nothing is to be
    seen, and the next one sweeps it away;
  * a capture that is there is not read again, whatever it is called.
"""

import pickle
import shutil
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from dissector.capture.parts import Block
from dissector.findings import Finding
from dissector.pipeline import source
from dissector.pipeline.arrow import batches, ddl_of_rows
from dissector.pipeline.parts import Keeping, Origin, lessons, rows
from dissector.pipeline.plan import Plan, plan
from dissector.pipeline.segments import Segment, segments
from dissector.pipeline.tables import BY_NAME, OF_PARTS, TABLES, ddl
from dissector.session.lessons import Lessons

PART: Final = 256 << 20
"""Bytes of captures for a part, about."""
STAGE: Final = "_runs"
"""Where runs that are not over keep what they make."""
KEPT_OF_DAMAGE: Final = 64 << 10
Report = Callable[[str, int, int], None]
"""Told how far a stage is: its name, done, of how many; 0 where nobody knows."""


@dataclass
class Outcome:
    """What a run did."""

    read: int = 0
    """Captures."""
    known: list[str] = field(default_factory=list)
    """Paths of captures that were in the tables already."""
    packets: int = 0
    counts: dict[str, int] = field(default_factory=dict)
    """Rows by table."""
    problems: list[Finding] = field(default_factory=list)


def ingest(
    spark: SparkSession, paths: Sequence[str], out: str, keeping: Keeping, *, parts: int | None = None,
    report: Report = lambda stage, done, total: None,
) -> Outcome:  # fmt: skip
    """Bring captures into the tables of a folder."""
    spark.dataSource.register(source.PacketSource)
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    _sweep(folder)
    report("looking over", 0, len(paths))
    plans = plans_of(spark, paths)
    outcome = Outcome(problems=[problem for each in plans for problem in each.problems])
    there, new = known(spark, folder), []
    for each in plans:
        if each.digest and each.digest in there:
            outcome.known.append(each.path)
        elif each.ranges:
            there.add(each.digest)
            new.append(each)
    if new:
        run = f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{uuid.uuid4().hex[:8]}"
        made = Run(spark, folder, run, new, keeping, report)
        outcome.counts = made.all(parts)
        outcome.read, outcome.packets = len(new), sum(each.packets for each in new)
    return outcome


def plans_of(spark: SparkSession, paths: Sequence[str]) -> list[Plan]:
    """Files looked over, in their order."""
    frame = spark.createDataFrame([(n, path) for n, path in enumerate(paths)], "number INT, path STRING")
    planned = frame.repartitionById(max(1, len(paths)), f.col("number")).mapInArrow(
        _plan_all, "number INT, plan BINARY"
    )
    return [pickle.loads(row.plan) for row in sorted(planned.collect(), key=lambda row: row.number)]


def _plan_all(some: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in some:
        for number, path in zip(batch.column(0).to_pylist(), batch.column(1).to_pylist(), strict=True):
            yield pa.RecordBatch.from_pydict(
                {"number": pa.array([number], pa.int32()), "plan": pa.array([pickle.dumps(plan(path))], pa.binary())}
            )


def known(spark: SparkSession, folder: Path) -> set[str]:
    """Digests of the captures that are in the tables."""
    if not (folder / "captures").exists():
        return set()
    return {row.digest for row in spark.read.parquet(str(folder / "captures")).select("digest").collect()}


def _sweep(folder: Path) -> None:
    """What runs left that were killed."""
    shutil.rmtree(folder / STAGE, ignore_errors=True)


def origins(plans: Sequence[Plan], found: Sequence[Segment]) -> list[Origin]:
    """Where the packets of each file begin in the capture of all."""
    by_path = {each.path: each for each in plans}
    first: dict[str, Origin] = {}
    for segment in found:
        begins = min((by_path[path] for path in segment.paths), key=lambda each: each.first_ns)
        if begins.path not in first:
            first[begins.path] = Origin(segment.first, begins.digest, begins.earliest_ns)
    return sorted(first.values())


class Run:
    """One run of the job."""

    def __init__(
        self, spark: SparkSession, folder: Path, run: str, plans: list[Plan], keeping: Keeping, report: Report
    ) -> None:
        self._spark = spark
        self._folder = folder
        self._run = run
        self._stage = folder / STAGE / run
        self._plans = plans
        self._keeping = keeping
        self._report = report
        self._segments = segments(plans)
        self._origins = origins(plans, self._segments)

    def all(self, parts: int | None) -> dict[str, int]:
        """Everything; the counts of rows."""
        size = sum(each.size for each in self._plans)
        parts = parts or max(2 * self._spark_cores(), size // PART + 1)
        dealt = self._dealt(parts)
        self._report("learning", 0, parts)
        taught = self._taught(dealt)
        self._report("dissecting", 0, parts)
        self._dissect(dealt, taught)
        dealt.unpersist()
        self._report("writing", 0, len(TABLES))
        counts = {name: self._table(name) for name in OF_PARTS}
        self._commit()
        return counts

    def _spark_cores(self) -> int:
        return int(self._spark.conf.get("spark.default.parallelism", "0") or 0) or 2

    def _dealt(self, parts: int) -> DataFrame:
        return self._together(self._read(parts), parts)

    def _read(self, parts: int) -> DataFrame:
        """Blocks of packets."""
        read = self._spark.read.format(source.NAME)
        return read.option("segments", source.packed(self._segments)).option("parts", str(parts)).load()

    def _together(self, blocks: DataFrame, parts: int) -> DataFrame:
        """Blocks of a part together and in order."""
        return blocks.repartitionById(parts, f.col("part")).sortWithinPartitions("part", "first").persist()

    def _taught(self, dealt: DataFrame) -> Lessons:
        found = dealt.mapInArrow(_lessons, "lessons BINARY").collect()
        return Lessons.together(pickle.loads(row.lessons) for row in found)

    def _dissect(self, dealt: DataFrame, taught: Lessons) -> None:
        told = pickle.dumps((taught, self._origins, self._keeping))

        def dissect(some: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            lessons, origins, keeping = pickle.loads(told)
            for _, blocks in parts_of(some):
                yield from batches(rows(blocks, lessons, origins, keeping))

        self._stage_rows(dealt.mapInArrow(dissect, ddl_of_rows()))

    def _stage_rows(self, made: DataFrame) -> None:
        """Write the rows of all tables, JSON read."""
        for name in OF_PARTS:
            for column in BY_NAME[name].columns:
                if column.of_json:
                    made = made.withColumn(
                        name, f.col(name).withField(column.name, f.try_parse_json(f.col(name)[column.name]))
                    )
        made.write.partitionBy("table").parquet(str(self._stage / "rows"))

    def _table(self, name: str) -> int:
        """Write one table beside the others; how many rows it has."""
        made = self._spark.read.parquet(str(self._stage / "rows" / f"table={name}")) if self._has(name) else None
        if made is None:
            return 0
        there = made.select("day", "capture", f"{name}.*")
        target = str(self._stage / name)
        there.write.partitionBy("day", "capture").parquet(target)
        return self._spark.read.parquet(target).count()

    def _has(self, name: str) -> bool:
        return (self._stage / "rows" / f"table={name}").exists()

    def _commit(self) -> None:
        """Move what was made to where it belongs; what says that it is there comes last."""
        for name in OF_PARTS:
            made = self._stage / name
            for partition in made.glob("day=*/capture=*"):
                target = self._folder / partition.relative_to(self._stage)
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.rmtree(target, ignore_errors=True)
                partition.rename(target)
        self._captures().write.mode("append").parquet(str(self._folder / "captures"))
        shutil.rmtree(self._stage, ignore_errors=True)

    def _captures(self) -> DataFrame:
        told = [
            (
                each.digest, each.path, each.size, each.packets, each.earliest_ns, each.latest_ns, each.link_types,
                self._run, [(p.code, p.severity.value, p.path, p.message) for p in each.problems],
            )
            for each in self._plans
        ]  # fmt: skip
        return self._spark.createDataFrame(told, ddl(BY_NAME["captures"])).coalesce(1)


def parts_of(some: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, Iterator[Block]]]:
    """Each part's number and its blocks, one part behind the other."""
    ahead = _blocks(some)
    first = next(ahead, None)
    while first is not None:
        rest: list[tuple[int, Block]] = []

        def blocks(begin: tuple[int, Block], rest: list[tuple[int, Block]] = rest) -> Iterator[Block]:
            yield begin[1]
            for part, each in ahead:
                if part != begin[0]:
                    rest.append((part, each))
                    return
                yield each

        yield first[0], blocks(first)
        first = rest[0] if rest else None


def _blocks(some: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, Block]]:
    for batch in some:
        part, *columns = batch.columns
        for row in range(batch.num_rows):
            first, heads, data = (column[row] for column in columns)
            yield part[row].as_py(), Block(first.as_py(), heads.as_py(), data.as_py())


def _lessons(some: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for _, blocks in parts_of(some):
        yield pa.RecordBatch.from_pydict({"lessons": pa.array([pickle.dumps(lessons(blocks))], pa.binary())})
