"""Partitions of the packets, dissected by processes of this machine, a partition each: without Spark, on all cores.

Each process reads all packets, keeps those of its partition, and gives what it knows about topics and versions; then it
gets what all know, and writes its rows. So packets are read once, and none goes from one process to another.

Invariants:
  * a process that fails, or is killed, ends the ingest with its error; nothing it wrote is committed;
  * the processes end with the one that started them.
"""

import multiprocessing
import pickle
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, Final, NamedTuple

from dissector.capture.errors import CaptureError
from dissector.capture_session import Capture
from dissector.index.shared_state import SharedState
from dissector.pipeline.origins import FileOrigins
from dissector.pipeline.partition_rows import WriteOptions, rows_with
from dissector.pipeline.splits import InputSplit, route
from dissector.tables.data_files import DataFile, Output, write_rows
from dissector.tables.row_batches import TableRow
from dissector.transport.partitions import Partition

ROWS_PER_REPORT: Final = 4_096
ENDING_SECONDS: Final = 5.0
"""How long a process may take to end once it is told to."""


class WorkerDiedError(CaptureError):
    """A process ended before its work was done."""


class PartitionJob(NamedTuple):
    """What all processes do, each for its partition."""

    splits: Sequence[InputSplit]
    origins: FileOrigins
    options: WriteOptions
    output: Output
    secrets: bytes
    """A key log. It goes to the processes through pipes."""

    def __repr__(self) -> str:
        return f"PartitionJob({len(self.splits)} splits)"


def dissect(job: PartitionJob, parts: int, report: Callable[[int], None]) -> list[DataFile]:
    """Return the files that `parts` processes wrote. `report` gets the number of rows now and then. Raises
    `WorkerDiedError`, and whatever a process raised."""
    with _processes(parts) as connections:
        _send(connections, job)
        _send(connections, SharedState.merged(_answers(connections, lambda number, rows: None)))
        done = [0] * parts

        def add(number: int, rows: int) -> None:
            done[number] = rows
            report(sum(done))

        return [file for files in _answers(connections, add) for file in files]


@contextmanager
def _processes(parts: int) -> Iterator[list[Connection]]:
    """Start the processes; end them on the way out, whatever they are at."""
    context = multiprocessing.get_context("spawn")
    with ExitStack() as stack:
        connections = []
        for number in range(parts):
            mine, other = context.Pipe()
            process = context.Process(target=_work, args=(other, Partition(number, parts)), daemon=True)
            process.start()
            stack.callback(_end, process, mine)
            other.close()
            connections.append(mine)
        yield connections


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
    """Dissect a partition: what a process does."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that started this one ends it
    with suppress(BrokenPipeError, EOFError):  # that process is gone
        job = pickle.loads(connection.recv_bytes())
        try:
            connection.send_bytes(pickle.dumps(list(_files(connection, job, partition))))
        except (BrokenPipeError, EOFError):
            raise
        except Exception as error:  # it is raised again by the process that started this one
            connection.send_bytes(pickle.dumps(error))


def _files(connection: Connection, job: PartitionJob, partition: Partition) -> Iterator[DataFile]:
    blocks = (block for split in job.splits for _, block in route(split, partition.parts, only=partition.number))

    def share(capture: Capture) -> SharedState:
        connection.send_bytes(pickle.dumps(capture.connections.shared_state()))
        shared_state: SharedState = pickle.loads(connection.recv_bytes())
        return shared_state

    made = rows_with(share, blocks, partition, job.origins, job.options, job.secrets)
    return write_rows(_reported(connection, made), job.output)


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
