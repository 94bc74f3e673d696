"""Rows of tables as a temporary capture, for the screen and for comparisons.

Its connections carry the frames that were kept, or frames encoded from the rows' fields.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final, NamedTuple

from dissector.capture import CaptureError
from dissector.cli.errors import NEGATIVE, print_error
from dissector.cli.options import parse_filter
from dissector.cli.tables import NO_FRAMES, is_folder, no_rows_message, open_tables
from dissector.conversation import End, Packet, Turn, pcapng
from dissector.conversation.packets import Lifetime, PacketWriter
from dissector.core.text import counted

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


def show_on_screen(folder: str, text: str | None, screen: Screen) -> int:
    """Show the matching rows on the screen; return the exit code, 1 if there are none."""
    row_filter = parse_filter(text)
    with TemporaryDirectory() as directory:
        with open_tables(folder) as tables:
            found = write_capture(tables, row_filter, Path(directory) / (Path(folder).resolve().name or "tables"))
            if not found.rows:
                is_empty = not tables.counted(row_filter)
                print_error(no_rows_message(folder, tables, row_filter) if is_empty else f"{folder}: {NO_MESSAGE}")
                return NEGATIVE
            kept, left = tables.has_frames, tables.counted(row_filter) - found.rows
        code = screen(found)
    if left:
        print_error(f"{folder}: {counted(left, 'row')} without a message left out: show prints them")
    if not kept:
        print_error(f"{folder}: {NO_FRAMES}")
    return code


def write_capture(tables: "Tables", row_filter: "Filter | None", path: Path) -> TableCapture:
    """Write the matching rows as pcapng, row by row, with the rows' times and sizes, and their connections, which begin
    and end as they did: a reset is a FIN, as the tables do not tell one from the other."""
    ports: set[int] = set()
    topics: dict[str, str] = {}
    rows = 0

    def packets() -> Iterator[Packet]:
        nonlocal rows
        writer = PacketWriter()
        for each in tables.connections(row_filter):
            lifetime = Lifetime(each.opened_ns, each.closed_ns, each.closed_by == "client")
            writer.begin(each.number, End.parse(each.client), End.parse(each.server), lifetime)
        for row in tables.exchanges(row_filter):
            if row.is_stored or (row.request is None and row.response is None):
                continue
            rows += 1
            ports.add(End.parse(row.fields.server).port)
            sides = [
                (message, at == 0) for at, message in enumerate((row.request, row.response)) if message is not None
            ]
            yield from writer.packets(sides[0][0].time_ns)
            for message, from_client in sides:
                topics.update(message.context.topic_names)
                missing = message.size - len(message.data)
                writer.say(row.fields.connection, Turn(message.time_ns, from_client, message.data, missing))
        yield from writer.packets()

    with path.open("wb") as file:
        file.writelines(pcapng(packets(), "what kdissect found in tables"))
    return TableCapture(str(path), ports, topics, rows)


def side_of_tables(word: str) -> tuple[str, str] | None:
    """Return folder and name of ``FOLDER:NAME``; None if the word is not of that form."""
    folder, _, name = word.rpartition(":")
    return (folder, name) if folder and name and is_folder(folder) else None


@contextmanager
def open_sides(named: Sequence[tuple[str, str]]) -> Iterator[list[TableCapture]]:
    """Open sides of a comparison, each given as a folder and the name of a capture or a client id in it. Raises
    `CaptureError` for an unknown name."""
    with TemporaryDirectory() as directory:
        found = []
        for number, (folder, name) in enumerate(named):
            with open_tables(folder) as tables:
                found.append(_side(tables, folder, name, Path(directory) / f"{number}.pcapng"))
        yield found


def _side(tables: "Tables", folder: str, name: str, path: Path) -> TableCapture:
    """Write the rows of one capture, or else of one client id."""
    captures = tables.captures_named(name)
    if len(captures) > 1:
        raise CaptureError(f"{folder}: {len(captures)} captures are called {name}: give the path or the digest of one")
    if captures:
        found = write_capture(captures[0], None, path)
        why = f"no message in the tables is {name}'s: captures that overlap in time count as one, the first"
    else:
        from dissector.analysis.stats.breakdowns import quoted  # with all statistics, which comparisons don't need

        found = write_capture(tables, parse_filter(f"client_id == {quoted(name)}"), path)
        why = f"no capture and no client id is called {name}"
    if not found.rows:
        raise CaptureError(f"{folder}: {why}")
    return found
