"""What a filter finds in tables as a capture of its own, for the screen: conversations of the frames that were kept, or
were written anew."""

import pickle
from collections.abc import Callable, Iterator, Set
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from dissector.cli.filtering import wanted
from dissector.cli.outcome import NEGATIVE, complain
from dissector.cli.tables import NOT_KEPT, opened, told_empty
from dissector.conversation import Conversation, End, Turn, packets, pcapng
from dissector.session.exchange import Exchange

if TYPE_CHECKING:
    from dissector.pipeline.reading import Tables

MOST: Final = 100_000
"""Rows that are put on a screen: their frames are held at once."""
Screen = Callable[[list[str], Set[int]], int]
"""Shows captures, of which some ports are Kafka's; gives the exit code."""


class Found(NamedTuple):
    """What was found, as a capture."""

    data: Iterator[bytes]
    rows: int
    ports: Set[int]


def show_found(folder: str, text: str | None, screen: Screen) -> int:
    """Show what fits on a screen; the exit code, 1 where nothing does."""
    fitting = wanted(text)
    with TemporaryDirectory() as place:
        path = Path(place) / f"{Path(folder).name}.pcapng"
        with opened(folder) as tables:
            found = capture_of(tables, text)
            if not found.rows:
                complain(told_empty(folder, tables, fitting))
                return NEGATIVE
            with path.open("wb") as file:
                file.writelines(found.data)
            kept = tables.has_frames
        code = screen([str(path)], found.ports)
    if found.rows == MOST:
        complain(f"{folder}: the first {MOST:,} rows that fit were shown")
    if not kept:
        complain(f"{folder}: {NOT_KEPT}")
    return code


def capture_of(tables: "Tables", text: str | None) -> Found:
    """The rows that fit, as a pcapng: connections, times and sizes are those of the rows."""
    import pyarrow as pa

    schema = pa.schema(
        [("number", pa.int64()), ("conn", pa.int64()), ("client", pa.string()), ("server", pa.string()),
         ("turns", pa.binary())]
    )  # fmt: skip
    conversations: dict[int, Conversation] = {}
    ports, rows = set(), 0
    for row in tables.made(wanted(text), _turns, schema, most=MOST).collect():
        rows += 1
        if row.conn not in conversations:
            client, server = End.parse(row.client), End.parse(row.server)
            ports.add(server.port)
            conversations[row.conn] = Conversation(client, server, [], closed=False)
        conversations[row.conn].turns.extend(Turn(*each) for each in pickle.loads(row.turns))
    words = f"kdissect open: {rows:,} rows of tables"
    return Found(pcapng(packets(conversations.values()), words), rows, ports)


def _turns(exchanges: Iterator[Exchange]) -> Iterator[tuple[Any, ...]]:
    """What was said in exchanges that have a connection."""
    for exchange in exchanges:
        facts = exchange.facts
        sides = ((exchange.request, True), (exchange.response, False))
        turns = [
            (message.time_ns, of_client, message.data, message.size - len(message.data))
            for message, of_client in sides if message is not None
        ]  # fmt: skip
        if turns and not exchange.is_stored:
            yield facts.number, facts.connection, facts.client, facts.server, pickle.dumps(turns)
