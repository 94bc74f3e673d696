"""Partitions of the packets, dissected by processes of this machine, a partition each: without Spark, on all cores.

Each process reads all packets, keeps those of its partition, and gives what it knows about topics and versions; then it
gets what all know, and writes its rows. So packets are read once, and none goes from one process to another.

Invariants:
  * a process that fails, or is killed, ends the job with its error; nothing of the job is committed;
  * the processes end with the one that started them.
"""

import multiprocessing
import pickle
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, Final, NamedTuple, Self

from dissector.capture.errors import CaptureError
from dissector.capture.partition import Block
from dissector.capture_session import Capture
from dissector.core.process_memory import return_freed_memory
from dissector.index.shared_state import SharedState
from dissector.pipeline.origins import FileOrigins
from dissector.pipeline.partition_rows import WriteOptions, rows_with
from dissector.pipeline.splits import InputSplit, route
from dissector.tables.arrow_types import keep_pandas_out
from dissector.tables.data_files import DataFile, Output, write_rows
from dissector.tables.row_batches import TableRow
from dissector.transport.partitions import Partition

ALL_PACKETS: Final = Partition(0, 1)
ROWS_PER_REPORT: Final = 4_096
ENDING_SECONDS: Final = 5.0
"""How long a process may take to end once it is told to."""


Share = Callable[[Capture], SharedState]
"""Gives what all partitions know, for a capture of one of them that is read."""


class WorkerDiedError(CaptureError):
    """A process ended before its work was done."""


@dataclass(frozen=True)
class PartitionJob:
    """What is done with each partition of the packets."""

    splits: Sequence[InputSplit]
    origins: FileOrigins
    options: WriteOptions
    output: Output
    secrets: bytes = field(repr=False)
    """A key log. It goes to the processes through pipes."""

    def rows(self, share: Share, partition: Partition) -> Iterator[TableRow]:
        """Yield the rows of a partition; `share` is asked once all its packets are read."""
        return rows_with(share, self.blocks(partition), partition, self.origins, self.options, self.secrets)

    def blocks(self, partition: Partition) -> Iterator[Block]:
        """Yield the blocks of a partition."""
        for split in self.splits:
            for _, block in route(split, partition.parts, only=partition.number):
                yield block


def known_by_itself(_: Capture) -> SharedState:
    """Share nothing: what a partition with all packets does."""
    return SharedState.merged([])


class Workers:
    """So many processes. They wait for jobs until the context is left."""

    def __init__(self, parts: int) -> None:
        context = multiprocessing.get_context("spawn")
        self._connections: list[Connection] = []
        with ExitStack() as stack:
            for number in range(parts):
                mine, other = context.Pipe()
                process = context.Process(target=_work, args=(other, Partition(number, parts)), daemon=True)
                process.start()
                stack.callback(_end, process, mine)
                other.close()
                self._connections.append(mine)
            self._stack = stack.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """End the processes, whatever they are at."""
        self._stack.close()

    def dissect(self, job: PartitionJob, report: Callable[[int], None] = lambda rows: None) -> list[DataFile]:
        """Return the files that the processes wrote. `report` gets the number of rows now and then. Raises
        `WorkerDiedError`, and whatever a process raised."""
        _send(self._connections, job)
        _send(self._connections, SharedState.merged(_answers(self._connections, lambda number, rows: None)))
        done = [0] * len(self._connections)

        def add(number: int, rows: int) -> None:
            done[number] = rows
            report(sum(done))

        return [file for files in _answers(self._connections, add) for file in files]


def _end(process: BaseProcess, connection: Connection) -> None:
    connection.close()
    process.join(ENDING_SECONDS)
    if process.is_alive():
        process.kill()
        process.join()


def _send(connections: Sequence[Connection], value: object) -> None:
    """Send a value to all processes. It is no argument of theirs: to start one that dies at once would wait for ever,
    as nobody reads a pipe that is full."""
    data = pickle.dumps(value)
    for each in connections:
        with suppress(BrokenPipeError, ConnectionResetError):  # it has died, which its missing answer tells
            each.send_bytes(data)


class _Progress(NamedTuple):
    rows: int


def _answers(connections: Sequence[Connection], add: Callable[[int, int], None]) -> list[Any]:
    """Return the answer of each process, in the order of their numbers; `add` gets the number of a process and of its
    rows. Raises what a process raised."""
    found: dict[int, Any] = {}
    while len(found) < len(connections):
        waiting = {each: number for number, each in enumerate(connections) if number not in found}
        for ready in wait(list(waiting)):
            assert isinstance(ready, Connection)
            number = waiting[ready]
            try:
                answer = pickle.loads(ready.recv_bytes())
            except (EOFError, ConnectionResetError):
                raise WorkerDiedError("a process that dissects packets was killed: nothing was committed") from None
            if isinstance(answer, BaseException):
                raise answer
            if isinstance(answer, _Progress):
                add(number, answer.rows)
            else:
                found[number] = answer
    return [found[number] for number in range(len(connections))]


def _work(connection: Connection, partition: Partition) -> None:
    """Dissect a partition of each job: what a process does."""
    return_freed_memory()
    keep_pandas_out()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that started this one ends it
    with suppress(BrokenPipeError, EOFError):  # that process is gone, or needs this one no longer
        while True:
            job = pickle.loads(connection.recv_bytes())
            try:
                connection.send_bytes(pickle.dumps(list(_files(connection, job, partition))))
            except (BrokenPipeError, EOFError):
                raise
            except Exception as error:  # it is raised again by the process that started this one
                connection.send_bytes(pickle.dumps(error))


def _files(connection: Connection, job: PartitionJob, partition: Partition) -> Iterator[DataFile]:
    def share(capture: Capture) -> SharedState:
        connection.send_bytes(pickle.dumps(capture.connections.shared_state()))
        shared_state: SharedState = pickle.loads(connection.recv_bytes())
        return shared_state

    return write_rows(_reported(connection, job.rows(share, partition)), job.output)


def _reported(connection: Connection, made: Iterator[TableRow]) -> Iterator[TableRow]:
    """Report rows as they pass. A table counts as its rows."""
    count, reported = 0, 0
    for name, row in made:
        if name == "exchanges":
            count += 1 if isinstance(row, dict) else len(row)
        if count - reported >= ROWS_PER_REPORT:
            connection.send_bytes(pickle.dumps(_Progress(count)))
            reported = count
        yield name, row
