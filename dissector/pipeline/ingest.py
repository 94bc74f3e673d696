"""The job: captures to tables, and what holds of them whatever happens.

Invariants:
  * a capture is in the tables when `captures` has its row, which comes last: of a run that was killed nothing is to be
    seen, and the next one sweeps it away;
  * a capture that is there is not read again, whatever it is called.
"""

import pickle
import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from dissector.capture.parts import Block
from dissector.capture_file.tally import Tally
from dissector.findings import Finding
from dissector.pipeline import source
from dissector.pipeline.arrow import batches, ddl_of_rows
from dissector.pipeline.folder import Folder
from dissector.pipeline.origins import SHORT, origins
from dissector.pipeline.parts import TALLIES, Keeping, lessons, rows
from dissector.pipeline.plan import Plan, plan
from dissector.pipeline.progress import Report, stage
from dissector.pipeline.segments import segments
from dissector.pipeline.tables import BY_NAME, OF_PARTS, ddl
from dissector.pipeline.whole_files import of_file
from dissector.session.lessons import Lessons
from dissector.transport.shares import Share

PART: Final = 256 << 20
"""Bytes of captures for a part, about."""
STAGE: Final = "_runs"
"""Where runs that are not over keep what they make."""


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
    """Bring captures into the tables of a folder. Raises `FolderError` where that can't be written to."""
    spark.dataSource.register(source.PacketSource)
    folder = Folder(out)
    there = _known(spark, folder)
    _sweep(folder, there)
    with stage(spark, "looking over", report):
        plans = _plans(spark, paths)
    outcome, new = Outcome(), []
    for each in plans:
        if each.digest in there:
            outcome.known.append(each.path)
            continue
        outcome.problems += each.problems
        if each.digest:
            there.add(each.digest)
            new.append(each)
    if new:
        run = f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{uuid.uuid4().hex[:8]}"
        made = _Run(spark, folder, run, new, keeping, report)
        try:
            outcome.counts = made.all(parts)
        finally:
            folder.remove(STAGE)
        outcome.problems += made.problems
        read = [each for each in new if not each.unread]
        outcome.read, outcome.packets = len(read), sum(each.packets for each in read)
    return outcome


def _plans(spark: SparkSession, paths: Sequence[str]) -> list[Plan]:
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


def _known(spark: SparkSession, folder: Folder) -> set[str]:
    if not folder.has("captures"):
        return set()
    return {row.digest for row in spark.read.parquet(folder.spark("captures")).select("digest").collect()}


def _sweep(folder: Folder, there: set[str]) -> None:
    """Remove what runs left that were killed: what they staged, and what they moved of captures that have no row."""
    folder.remove(STAGE)
    called = {f"capture={digest[:SHORT]}" for digest in there}
    for name in OF_PARTS:
        for partition in folder.partitions(name):
            if partition.partition("/")[2] not in called:
                folder.remove(f"{name}/{partition}")


def _cores(spark: SparkSession) -> int:
    """How many tasks Spark runs side by side: as many as it makes of a range, whichever way it is talked to."""
    return spark.range(1 << 10).select(f.spark_partition_id()).distinct().count()


class _Run:
    """One run of the job."""

    def __init__(
        self, spark: SparkSession, folder: Folder, run: str, plans: list[Plan], keeping: Keeping, report: Report
    ) -> None:
        self._spark = spark
        self._folder = folder
        self._run = run
        self._stage = f"{STAGE}/{run}"
        self._plans = plans
        self._keeping = keeping
        self._report = report
        self._segments = segments(plans)
        self._origins = origins(plans, self._segments)
        self.problems: list[Finding] = []
        """What is known of none of the files by itself."""

    def all(self, parts: int | None) -> dict[str, int]:
        """Everything; the counts of rows."""
        made = self._of_files()
        dealt = None
        try:
            if self._segments:
                size = sum(each.size for each in self._plans)
                dealt = self._dealt(parts := parts or max(2 * _cores(self._spark), size // PART + 1))
                with stage(self._spark, "learning", self._report):
                    taught = self._taught(dealt, parts)
                made = made.union(self._dissected(dealt, parts, taught))
            with stage(self._spark, "dissecting", self._report):
                self._write(made)
        finally:
            if dealt is not None:
                dealt.unpersist()
        self.problems = self._tally().problems
        with stage(self._spark, "writing", self._report):
            counts = {name: self._table(name) for name in OF_PARTS}
            self._commit()
        return counts

    def _dealt(self, parts: int) -> DataFrame:
        """Blocks of packets, those of a part together and in order."""
        read = self._spark.read.format(source.NAME)
        read = read.option("segments", source.packed(self._segments)).option("parts", str(parts))
        return read.load().repartitionById(parts, f.col("part")).sortWithinPartitions("part", "first").persist()

    def _taught(self, dealt: DataFrame, parts: int) -> Lessons:
        def learn(some: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for number, blocks in _parts(some):
                found = pickle.dumps(lessons(blocks, Share(number, parts)))
                yield pa.RecordBatch.from_pydict({"lessons": pa.array([found], pa.binary())})

        found = dealt.mapInArrow(learn, "lessons BINARY").collect()
        return Lessons.together(pickle.loads(row.lessons) for row in found)

    def _dissected(self, dealt: DataFrame, parts: int, taught: Lessons) -> DataFrame:
        told = pickle.dumps((taught, self._origins, self._keeping))

        def dissect(some: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for number, blocks in _parts(some):
                yield from batches(rows(blocks, Share(number, parts), *pickle.loads(told)))

        return dealt.mapInArrow(dissect, ddl_of_rows())

    def _of_files(self) -> DataFrame:
        """Rows of files that are read one by one: a task each."""
        keeping = self._keeping

        def read(some: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in some:
                for each in batch.column(1).to_pylist():
                    yield from batches(of_file(pickle.loads(each), keeping))

        alone = [each for each in self._plans if each.stands_alone]
        told = [(number, pickle.dumps(each)) for number, each in enumerate(alone)]
        frame = self._spark.createDataFrame(told, "number INT, plan BINARY")
        return frame.repartitionById(max(1, len(told)), f.col("number")).mapInArrow(read, ddl_of_rows())

    def _write(self, made: DataFrame) -> None:
        """Stage all rows."""
        for name in OF_PARTS:
            for column in BY_NAME[name].columns:
                if column.of_json:
                    made = made.withColumn(
                        name, f.col(name).withField(column.name, f.try_parse_json(f.col(name)[column.name]))
                    )
        made.write.partitionBy("table").parquet(self._folder.spark(f"{self._stage}/rows"))

    def _tally(self) -> Tally:
        """What was left out of all that was read."""
        staged = f"{self._stage}/rows/table={TALLIES}"
        if not self._folder.has(staged):
            return Tally()
        found = self._spark.read.parquet(self._folder.spark(staged)).select("tally").collect()
        told: list[tuple[list[Tally], Tally]] = [pickle.loads(row.tally) for row in found]
        return Tally.together([each for dealt, _ in told for each in dealt], [part for _, part in told])

    def _table(self, name: str) -> int:
        """Write one table beside the others; how many rows it has."""
        staged = f"{self._stage}/rows/table={name}"
        if not self._folder.has(staged):
            return 0
        there = self._spark.read.parquet(self._folder.spark(staged)).select("day", "capture", f"{name}.*")
        target = self._folder.spark(f"{self._stage}/{name}")
        there.write.partitionBy("day", "capture").parquet(target)
        return self._spark.read.parquet(target).count()

    def _commit(self) -> None:
        """Move what was made to where it belongs; what says that it is there comes last."""
        for name in OF_PARTS:
            for partition in self._folder.partitions(f"{self._stage}/{name}"):
                self._folder.move(f"{self._stage}/{name}/{partition}", f"{name}/{partition}")
        self._captures()

    def _shared(self, of: Plan) -> list[Finding]:
        """What is wrong with the packets of all files."""
        return self.problems if of.ranges else []

    def _captures(self) -> None:
        told = [
            (
                each.digest, each.path, each.size, each.packets, each.earliest_ns, each.latest_ns, each.link_types,
                self._run, [(p.code, p.severity.value, p.path, p.message) for p in each.problems + self._shared(each)],
            )
            for each in self._plans
        ]  # fmt: skip
        frame = self._spark.createDataFrame(told, ddl(BY_NAME["captures"]))
        frame.coalesce(1).write.mode("append").parquet(self._folder.spark("captures"))


def _parts(some: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, Iterator[Block]]]:
    """The number of each part and its blocks, one part behind the other."""
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
