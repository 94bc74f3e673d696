"""The job that goes on: files of a ring to tables as they close, by Spark's structured streaming.

A micro-batch is the files that were closed since the last one. Its packets follow those before under one count, each
part is read on from what was left of it (`portion`), and what came of it is moved to the tables together with what is
left now. The law: tables are those of one `ingest` of the same files, once the last request is answered or its
connection over. Findings are among them, and their words: rows of a connection are examined in order (`order`), notes
of several connections are made in order up to the first request that still waits, and what is found then of a row that
is in the tables already is amended there (`amending`).

What may differ, as it comes of what is learned after a row was written:
  * names that only a later message teaches (a topic's behind its id, what a client says it is), and what a lone
    response is by inference: they are as far as was known;
  * `version-not-offered` where a server said which versions it has only afterwards, and `closed-in-flight` with it;
  * findings about a request that is answered when it had been passed (`order`): after so many others behind it, so long
    after its connection was closed, or after it was asked. Bytes that TCP sends again after more than `resending.KEPT`
    other rows of the part are not told;
  * what is wrong with the packets of all files together (`captures.problems`) is said at the end, and not in the table.
A connection's row comes when it is over, and rows that wait for an answer when it comes. Files that overlap in time are
merged where they come in one micro-batch, and else are read one behind the other; one that begins more than `LATE_NS`
before what was read is read by itself, and said so.

Invariants:
  * a micro-batch is in the tables, and what it left in its place, when `committed` says so: renames alone lead there
    from what was staged, and are done again by whoever comes after a crash. So each is there exactly once;
  * of parts, packets and state, nothing grows with what was read but 150 bytes a connection (`capture_session`).
    Of notes those of `order.PATIENCE_NS` are kept at most, in files.
"""

import contextlib
import pickle
import shutil
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.streaming.query import StreamingQuery

from dissector.capture.partition import Block
from dissector.capture_session.tally import CaptureTally
from dissector.core.batches import NEVER
from dissector.core.finding import Finding, Severity
from dissector.findings.notes import Making
from dissector.index.shared_state import SharedState
from dissector.pipeline import closed_files, source
from dissector.pipeline.amending import WHERE, Exchanges, among, place_of, rewrite_findings
from dissector.pipeline.arrow import frame
from dissector.pipeline.cells import Cells
from dissector.pipeline.committing import COMMITTED, COMPLETE, FOLLOWER, STAGE, left_of, put_in_place
from dissector.pipeline.dealt import PLACES, by_part, nowhere
from dissector.pipeline.folder import Folder
from dissector.pipeline.ingest import Run, ingest, known, of_parts
from dissector.pipeline.looking_over import plans_of
from dissector.pipeline.notes import ORDER, anew_of, findings_of, retell
from dissector.pipeline.origins import Origin
from dissector.pipeline.parts import Keeping
from dissector.pipeline.plan import Plan
from dissector.pipeline.portion import Left, lessons, rows
from dissector.pipeline.ring import QUIET, Entry, entry_of
from dissector.pipeline.staging import SHAPE, Staged, staged
from dissector.pipeline.tables import ANEW, BY_NAME, FOUND, NOTES
from dissector.transport.partitions import Partition

LATE_NS: Final = 1_000_000_000
"""Clocks and queues put packets around the end of a file out of order by less."""
WAITING: Final = "Waiting"
"""How a query begins to speak of itself that has looked: for data, or for its next trigger."""
POLL: Final = 0.5
"""Seconds between two looks at the folder."""


@dataclass
class State:
    """As it was when the last micro-batch was committed."""

    parts: int
    batch: int = -1
    packets: int = 0
    latest_ns: int = 0
    origins: list[Origin] = field(default_factory=list)
    lessons: dict[int, SharedState] = field(default_factory=dict)
    """By part."""
    making: Making = field(default_factory=Making)
    """What is remembered of what several connections tell."""
    found: list[Cells] = field(default_factory=list)
    """Of that, findings about exchanges that are not in the tables yet."""
    begins: dict[str, int] = field(default_factory=dict)
    """Time of the first packet of each file that was read, by its path."""


@dataclass
class Told:
    """What a micro-batch did."""

    files: int = 0
    packets: int = 0
    rows: int = 0
    seconds: float = 0.0
    behind: float = 0.0
    """Seconds from the newest packet to when it was in the tables."""
    problems: list[Finding] = field(default_factory=list)


class Follower:
    """Follows one folder into the tables of another."""

    def __init__(
        self, spark: SparkSession, out: str, keeping: Keeping, parts: int, tell: Callable[[Told], None]
    ) -> None:
        self._spark = spark
        self._out = out
        self._tables = Folder(out)
        self._folder = Path(out).absolute() / FOLLOWER
        self._keeping = keeping
        self._tell = tell
        self._spark.dataSource.register(source.PacketSource)
        self._folder.mkdir(parents=True, exist_ok=True)
        put_in_place(self._folder)
        self._state = self._committed() or State(parts)
        self._is_busy = False

    def _committed(self) -> State | None:
        path = self._folder / COMMITTED
        if not path.exists():
            return None
        state = pickle.loads(path.read_bytes())
        assert isinstance(state, State)
        return state

    def run(self, folder: str, idle: float | None, quiet: float = QUIET) -> None:
        """Go on until somebody interrupts, or until nothing has come for `idle` seconds: then what waits is written as
        it is, and the ring is over. Raises what a micro-batch raised."""
        self._spark.dataSource.register(closed_files.ClosedFiles)
        found = self._spark.readStream.format(closed_files.NAME).option("folder", str(Path(folder).absolute()))
        found = found.option("log", str(self._folder / "files")).option("quiet", str(quiet))
        stream = (
            found.load().writeStream.foreachBatch(self._take).trigger(processingTime=f"{int(POLL * 1000)} milliseconds")
        )
        query = stream.option("checkpointLocation", str(self._folder / "checkpoint")).start()
        moved, looked = time.monotonic(), False
        try:
            while not _is_over(query):
                looked = looked or query.status["message"].startswith(WAITING)
                if not looked or self._is_busy or query.status["isDataAvailable"]:
                    moved = time.monotonic()
                elif idle is not None and time.monotonic() - moved >= idle:
                    break
        finally:
            with contextlib.suppress(KeyboardInterrupt):
                query.stop()
        if idle is not None:
            self._end()

    def _take(self, found: DataFrame, batch: int) -> None:
        """A micro-batch: done if it was committed before a crash."""
        if batch <= self._state.batch:
            return
        self._is_busy = True
        try:
            rows = sorted(found.collect(), key=lambda row: int(row.place))
            self._portion([Entry(row.path, row.size, row.changed_ns, row.inode) for row in rows], batch)
        finally:
            self._is_busy = False

    def _portion(self, entries: list[Entry], batch: int) -> None:
        began, told = time.monotonic(), Told()
        plans = self._sorted_out(entries, told)
        late = [plan for plan in plans if plan.first_ns < self._state.latest_ns - LATE_NS]
        new = [plan for plan in plans if plan not in late]
        if late:  # first: whoever comes after a crash does them again, and finds them there
            told.problems += [_late(plan) for plan in late]
            told.problems += ingest(self._spark, [plan.path for plan in late], self._out, self._keeping).problems
        run = Portion(self._spark, self._tables, self._folder, batch, new, self._keeping, self._state)
        counts = run.all(self._state.parts)
        told.problems += run.problems
        self._state = run.state
        told.files, told.packets, told.rows = len(plans), sum(plan.packets for plan in plans), counts["exchanges"]
        told.seconds = time.monotonic() - began
        told.behind = max(0.0, time.time() - self._state.latest_ns / 1e9)
        self._tell(told)

    def _sorted_out(self, entries: list[Entry], told: Told) -> list[Plan]:
        """Captures that are not in the tables yet."""
        there = known(self._spark, self._tables)
        plans = []
        for entry, plan in zip(entries, plans_of(self._spark, [entry.path for entry in entries]), strict=True):
            if entry_of(Path(entry.path)) != entry:  # it is given again once it is closed
                told.problems.append(_changed(entry))
                continue
            told.problems += plan.problems
            if plan.ranges and self._state.begins.get(plan.path) == plan.first_ns and plan.digest not in there:
                told.problems.append(_grown(plan))
            elif plan.ranges and plan.digest not in there:
                there.add(plan.digest)
                plans.append(plan)
        return plans

    def _end(self) -> None:
        """No packet comes any more: all that waits comes to the tables, and nothing is left."""
        began, told = time.monotonic(), Told()
        last = Portion(
            self._spark, self._tables, self._folder, self._state.batch + 1, [], self._keeping, self._state, is_last=True
        )
        told.rows = last.all(self._state.parts)["exchanges"]
        told.problems += last.problems
        shutil.rmtree(self._folder)
        told.seconds = time.monotonic() - began
        self._tell(told)


def _is_over(query: StreamingQuery) -> bool:
    """Whether a query ended; a moment later. Raises what it died of."""
    time.sleep(POLL)
    return not query.isActive and query.awaitTermination(1) is not False


class Portion(Run):
    """One micro-batch: a run of the job that goes on from `state`, which is the next one once it is done."""

    def __init__(
        self, spark: SparkSession, tables: Folder, folder: Path, batch: int, plans: list[Plan], keeping: Keeping,
        state: State, *, is_last: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(spark, tables, f"follow-{batch}", plans, keeping, lambda stage, done, total: None)
        self._stage = f"{FOLLOWER}/{STAGE}"
        self._at = folder / STAGE
        self._before = folder / left_of(state.batch)
        self._after = self._at / left_of(batch)
        self._is_last = is_last
        self._segments = [each._replace(first=each.first + state.packets) for each in self._segments]
        self._origins = [
            *state.origins, *(origin._replace(first=origin.first + state.packets) for origin in self._origins)
        ]  # fmt: skip
        self.state = State(
            state.parts, batch, state.packets + sum(plan.packets for plan in plans),
            max([state.latest_ns, *(plan.latest_ns for plan in plans)]), self._origins, dict(state.lessons),
            pickle.loads(pickle.dumps(state.making)), state.found,
            state.begins | {plan.path: plan.first_ns for plan in plans},
        )  # fmt: skip
        shutil.rmtree(self._at, ignore_errors=True)
        self._after.mkdir(parents=True)

    @property
    def _is_dealt(self) -> bool:
        """What is left of a part goes on in any case."""
        return True

    def _places(self, parts: int) -> DataFrame:
        """And one of no packets for each part."""
        nothing = Block(-1, b"", pickle.dumps(CaptureTally()))
        empty = frame(self._spark, [nowhere(part, nothing) for part in range(parts)], PLACES)
        return empty.union(super()._places(parts)) if self._segments else empty

    def _taught(self, dealt: DataFrame, parts: int) -> SharedState:
        packets_at, before, is_last = self._folder.spark(self._packets), str(self._before), self._is_last

        def learn(some: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for part, blocks in by_part(some, packets_at):
                told = pickle.dumps(lessons(blocks, Partition(part, parts), _left(before, part), is_last=is_last))
                yield pa.RecordBatch.from_pydict({"part": pa.array([part], pa.int32()), "lessons": pa.array([told])})

        for row in dealt.mapInArrow(learn, "part INT, lessons BINARY").collect():
            self.state.lessons[row.part] = pickle.loads(row.lessons)
        return SharedState.together(self.state.lessons.values())

    def _of_parts(self, dealt: DataFrame, parts: int, taught: SharedState) -> DataFrame:
        told, now_ns = pickle.dumps((taught, self._origins, self._keeping)), self.state.latest_ns
        packets_at, rows_at = self._folder.spark(self._packets), self._folder.spark(self._rows)
        before = str(self._before)
        after = None if self._is_last else str(self._after)

        def dissect(some: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for part, blocks in by_part(some, packets_at):
                put = None if after is None else _Place(after, part)
                taught, origins, keeping = pickle.loads(told)
                made = rows(blocks, Partition(part, parts), _left(before, part), taught, origins, keeping, put, now_ns)
                for each in staged(made, rows_at):
                    yield each.batch

        return dealt.mapInArrow(dissect, SHAPE)

    def _find(self, files: list[Staged]) -> list[Staged]:
        """Findings of several connections, as they are remembered here: about exchanges that come to the tables now.
        What is about those that are there already is amended."""
        changes = self._anew(files)
        found = [*map(dict, self.state.found), *findings_of(self._notes(files), self._origins, self.state.making.made)]
        changes += anew_of(self.state.making.told_anew(), self._origins)
        changes = retell(found, changes)
        self._changes = [each for each in changes if each["before"] is not None]
        exchanges = self._staged(BY_NAME["exchanges"], files)
        come = among(exchanges.select(*WHERE), found).collect() if exchanges is not None and found else []
        coming = {tuple(row) for row in come}
        told = [(FOUND.name, each) for each in found if place_of(each) in coming]
        others = [each for each in found if place_of(each) not in coming]
        late = others + [each for each in changes if each["before"] is None]
        self._there = Exchanges(self._spark, self._at.parent.parent, late)
        self.state.found = [each for each in others if place_of(each) not in self._there.places]
        return list(staged(told, self._folder.spark(self._rows)))

    def _anew(self, files: list[Staged]) -> list[Cells]:
        """What parts told of rows that came before."""
        anew = self._staged(ANEW, files)
        return [] if anew is None else [row.asDict() for row in anew.collect()]

    def _notes(self, files: list[Staged]) -> Iterator[Cells]:
        """Notes in order, up to the first request that still waits: those behind it wait, too."""
        notes = self._staged(NOTES, files)
        if (self._before / NOTES.name).exists():
            before = self._read(NOTES, [str(self._before / NOTES.name)])
            notes = before if notes is None else notes.union(before)
        if notes is None:
            return
        upto = min((part.waits_from for part in of_parts(files)), default=NEVER)
        if upto != NEVER:
            notes.where(f.col("packet") >= upto).write.parquet(str(self._after / NOTES.name))
        for row in notes.where(f.col("packet") < upto).orderBy(*ORDER).toLocalIterator():
            yield row.asDict()

    def _commit(self) -> None:
        """What was staged is complete: from here on it can only go on."""
        rewrite_findings(self._at.parent.parent, self._at, self._changes)
        self._there.rewrite(self._at)
        if self._plans:
            self._captures().write.parquet(self._folder.spark(f"{self._stage}/captures"))
        shutil.rmtree(self._at / "rows", ignore_errors=True)
        (self._at / COMMITTED).write_bytes(pickle.dumps(self.state))
        (self._at / COMPLETE).touch()
        put_in_place(self._at.parent)


def _left(folder: str, part: int) -> Left:
    path = Path(folder) / str(part)
    return Left.unpacked(path.read_bytes()) if path.exists() else Left()


class _Place:
    """Where what is left of a part goes: whole, however many try."""

    def __init__(self, folder: str, part: int) -> None:
        self._path = Path(folder) / str(part)

    def __call__(self, left: Left) -> None:
        fresh = self._path.with_suffix(f".{time.monotonic_ns()}")
        fresh.write_bytes(left.packed())
        fresh.replace(self._path)


def _late(plan: Plan) -> Finding:
    words = f"{plan.path}: came late, after files with later packets: read by itself"
    return Finding("late-file", Severity.WARNING, words)


def _grown(plan: Plan) -> Finding:
    words = f"{plan.path}: grew after it was taken for closed; what came later is not in the tables"
    return Finding("file-grew", Severity.WARNING, words)


def _changed(entry: Entry) -> Finding:
    words = f"{entry.path}: was written over before it was read; what it held is not in the tables"
    return Finding("file-overwritten", Severity.WARNING, words)
