"""Rows of tables as a temporary capture, for the screen and for comparisons.

Its connections carry the frames that were kept, or frames encoded from the rows' fields.
"""

import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from dissector.analysis.stats.breakdowns import quoted
from dissector.capture import CaptureError
from dissector.cli.errors import NEGATIVE, print_error
from dissector.cli.options import Cluster, parse_filter
from dissector.cli.tables import NO_FRAMES, is_folder, no_rows_message, open_tables
from dissector.conversation import End, Packet, Turn, pcapng
from dissector.conversation.packets import PacketWriter
from dissector.core.text import counted
from dissector.exchange.model import Exchange

if TYPE_CHECKING:
    from dissector.filter import Filter
    from dissector.tables.reader import Tables

NO_MESSAGE: Final = "no row that matches has a message: show prints them"


class TableCapture(NamedTuple):
    """A temporary capture of rows from tables."""

    path: str
    ports: Set[int]
    """Ports of Kafka's servers."""
    topics: Mapping[str, str]
    """Topic names by id, also from rows that are not in the capture."""
    rows: int


Screen = Callable[[TableCapture], int]
"""Shows a capture and returns the exit code."""


def show_on_screen(folder: str, cluster: Cluster, text: str | None, screen: Screen) -> int:
    """Show the matching rows on the screen; return the exit code, 1 if there are none."""
    row_filter = parse_filter(text)
    with TemporaryDirectory() as directory:
        with open_tables(folder, cluster) as (tables, bar):
            found = write_capture(tables, row_filter, Path(directory) / (Path(folder).resolve().name or "tables"))
            if not found.rows:
                is_empty = not tables.counted(row_filter)
                bar.stop()
                print_error(no_rows_message(folder, tables, row_filter) if is_empty else f"{folder}: {NO_MESSAGE}")
                return NEGATIVE
            kept, left = tables.has_frames, tables.counted(row_filter) - found.rows
        code = screen(found)
    if left:
        print_error(f"{folder}: {counted(left, 'row')} without a message: show prints them")
    if not kept:
        print_error(f"{folder}: {NO_FRAMES}")
    return code


def write_capture(tables: "Tables", row_filter: "Filter | None", path: Path) -> TableCapture:
    """Write the matching rows as pcapng, row by row, with the rows' connections, times and sizes."""
    ports: set[int] = set()
    topics: dict[str, str] = {}
    rows = 0

    def packets() -> Iterator[Packet]:
        nonlocal rows
        writer = PacketWriter()
        for row in _conversation_rows(tables, row_filter):
            rows += 1
            messages, topic_names = pickle.loads(row.messages)
            server, turns = End.parse(row.server), [Turn(*each) for each in messages]
            ports.add(server.port)
            topics.update(topic_names)
            writer.begin(row.conn, End.parse(row.client), server)
            yield from writer.packets(turns[0].time_ns)
            for turn in turns:
                writer.say(row.conn, turn)
        yield from writer.packets()

    with path.open("wb") as file:
        file.writelines(pcapng(packets(), "what kdissect found in tables"))
    return TableCapture(str(path), ports, topics, rows)


class _ConversationRow(NamedTuple):
    """The connection of an exchange, and its messages, pickled."""

    number: int
    conn: int
    client: str
    server: str
    messages: bytes


def _conversation_rows(tables: "Tables", row_filter: "Filter | None") -> Iterator[_ConversationRow]:
    """Yield the connections and messages of matching exchanges in order."""
    import pyarrow as pa

    schema = pa.schema(
        [("number", pa.int64()), ("conn", pa.int64()), ("client", pa.string()), ("server", pa.string()),
         ("messages", pa.binary())]
    )  # fmt: skip
    return map(_ConversationRow._make, tables.converted(row_filter, _pickled_messages, schema))


def _pickled_messages(exchanges: Iterator[Exchange]) -> Iterator[tuple[Any, ...]]:
    """Yield the messages, and the names of the topic ids in them, of exchanges that have a connection."""
    for exchange in exchanges:
        row = exchange.fields
        sides = ((exchange.request, True), (exchange.response, False))
        messages = [(message, from_client) for message, from_client in sides if message is not None]
        turns = [
            (message.time_ns, from_client, message.data, message.size - len(message.data))
            for message, from_client in messages
        ]
        topic_names = {key: name for message, _ in messages for key, name in message.context.topic_names.items()}
        if turns and not exchange.is_stored:
            yield row.number, row.connection, row.client, row.server, pickle.dumps((turns, topic_names))


def side_of_tables(word: str) -> tuple[str, str] | None:
    """Return folder and name of ``FOLDER:NAME``; None if the word is not of that form."""
    folder, _, name = word.rpartition(":")
    return (folder, name) if folder and name and is_folder(folder) else None


@contextmanager
def open_sides(named: Sequence[tuple[str, str]], cluster: Cluster) -> Iterator[list[TableCapture]]:
    """Open sides of a comparison, each given as a folder and the name of a capture or a client id in it. Raises
    `CaptureError` for an unknown name."""
    with TemporaryDirectory() as directory:
        found = []
        for number, (folder, name) in enumerate(named):
            with open_tables(folder, cluster) as (tables, _):
                found.append(_side(tables, folder, name, Path(directory) / f"{number}.pcapng"))
        yield found


def _side(tables: "Tables", folder: str, name: str, path: Path) -> TableCapture:
    """Write the rows of one capture, or else of one client id."""
    captures = tables.captures_named(name)
    if len(captures) > 1:
        raise CaptureError(f"{folder}: {len(captures)} captures are called {name}: say the path of one, or its digest")
    if captures:
        found = write_capture(captures[0], None, path)
        why = f"no message in the tables is {name}'s: captures that overlap in time count as one, the first"
    else:
        found = write_capture(tables, parse_filter(f"client_id == {quoted(name)}"), path)
        why = f"no capture and no client id is called {name}"
    if not found.rows:
        raise CaptureError(f"{folder}: {why}")
    return found
