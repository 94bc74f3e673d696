"""What is found in tables as a capture of its own, for the screen and for what compares captures: conversations of the
frames that were kept, or encoded from their fields."""

import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from dissector.analysis.stats.breakdowns import quoted
from dissector.capture import CaptureError
from dissector.cli.cluster import Cluster
from dissector.cli.exit_codes import NEGATIVE, print_error
from dissector.cli.filter_option import parse_filter
from dissector.cli.spark import spark_session
from dissector.cli.tables import NOT_KEPT, is_folder, no_rows_message, open_tables, tables_of
from dissector.conversation import End, Packet, Turn, pcapng
from dissector.conversation.packet_writer import PacketWriter
from dissector.exchange.model import Exchange

if TYPE_CHECKING:
    from dissector.filter import Filter
    from dissector.pipeline.table_reader import Tables

NO_PACKETS: Final = "entries of Kafka's own files alone, which no packets carried: show prints them"


class TableCapture(NamedTuple):
    """A capture of what was found; it is there as long as it is asked for."""

    path: str
    ports: Set[int]
    """Those of Kafka's servers."""
    topics: Mapping[str, str]
    """Names of topic ids, which other rows may have taught."""
    rows: int


Screen = Callable[[TableCapture], int]
"""Shows it; gives the exit code."""


def show_on_screen(folder: str, on: Cluster, text: str | None, screen: Screen) -> int:
    """Show what fits on a screen; the exit code, 1 where nothing does."""
    fitting = parse_filter(text)
    with TemporaryDirectory() as place:
        with open_tables(folder, on) as (tables, bar):
            found = write_capture(tables, fitting, Path(place) / f"{Path(folder).name}.pcapng")
            if not found.rows:
                is_empty = tables.fitting(fitting).isEmpty()
                bar.stop()
                print_error(no_rows_message(folder, tables, fitting) if is_empty else f"{folder}: {NO_PACKETS}")
                return NEGATIVE
            kept = tables.has_frames
        code = screen(found)
    if not kept:
        print_error(f"{folder}: {NOT_KEPT}")
    return code


def write_capture(tables: "Tables", fitting: "Filter | None", path: Path) -> TableCapture:
    """Write the rows that fit as pcapng: connections, times and sizes are those of the rows. A row at a time."""
    ports: set[int] = set()
    topics: dict[str, str] = {}
    rows = 0

    def packets() -> Iterator[Packet]:
        nonlocal rows
        made = PacketWriter()
        for row in _said(tables, fitting):
            rows += 1
            said, names = pickle.loads(row.said)
            server, turns = End.parse(row.server), [Turn(*each) for each in said]
            ports.add(server.port)
            topics.update(names)
            made.begin(row.conn, End.parse(row.client), server)
            yield from made.packets(turns[0].time_ns)
            for turn in turns:
                made.say(row.conn, turn)
        yield from made.packets()

    with path.open("wb") as file:
        file.writelines(pcapng(packets(), "what kdissect found in tables"))
    return TableCapture(str(path), ports, topics, rows)


def _said(tables: "Tables", fitting: "Filter | None") -> Iterator[Any]:
    """What was said in the exchanges that fit, in their order, and names of the topic ids in it."""
    import pyarrow as pa

    schema = pa.schema(
        [("number", pa.int64()), ("conn", pa.int64()), ("client", pa.string()), ("server", pa.string()),
         ("said", pa.binary())]
    )  # fmt: skip
    found: Iterator[Any] = tables.made(fitting, _of_rows, schema).orderBy("number").toLocalIterator()
    return found


def _of_rows(exchanges: Iterator[Exchange]) -> Iterator[tuple[Any, ...]]:
    """What was said in exchanges that have a connection."""
    for exchange in exchanges:
        row = exchange.fields
        sides = ((exchange.request, True), (exchange.response, False))
        said = [(message, of_client) for message, of_client in sides if message is not None]
        turns = [
            (message.time_ns, of_client, message.data, message.size - len(message.data)) for message, of_client in said
        ]
        names = {key: name for message, _ in said for key, name in message.context.topic_names.items()}
        if turns and not exchange.is_stored:
            yield row.number, row.connection, row.client, row.server, pickle.dumps((turns, names))


def side_of_tables(word: str) -> tuple[str, str] | None:
    """Folder and name of ``FOLDER:NAME``; None where it is no such thing."""
    folder, _, name = word.rpartition(":")
    return (folder, name) if folder and name and is_folder(folder) else None


@contextmanager
def open_sides(asked: Sequence[tuple[str, str]], on: Cluster) -> Iterator[list[TableCapture]]:
    """Captures of sides: of each folder what is one capture's, or one client id's. Raises `CaptureError` for a name
    that nothing has."""
    with TemporaryDirectory() as place:
        with spark_session(on, asked[0][0]) as (spark, bar):
            from dissector.pipeline.stage_progress import stage

            found = []
            for number, (folder, name) in enumerate(asked):
                with stage(spark, f"reading {name}", bar):
                    found.append(_side(tables_of(spark, folder), folder, name, Path(place) / f"{number}.pcapng"))
        yield found


def _side(tables: "Tables", folder: str, name: str, path: Path) -> TableCapture:
    """What one capture has, or else one client."""
    captures = tables.called(name)
    if len(captures) > 1:
        raise CaptureError(f"{folder}: {len(captures)} captures are called {name}: say the path of one, or its digest")
    if captures:
        found = write_capture(captures[0], None, path)
        why = f"nothing that was said is in the tables as {name}'s: captures that overlap in time are one, the first"
    else:
        found = write_capture(tables, parse_filter(f"client_id == {quoted(name)}"), path)
        why = f"no capture and no client id is called {name}"
    if not found.rows:
        raise CaptureError(f"{folder}: {why}")
    return found
