"""What the index has of a capture's rows, as columns: nothing is decoded, but for responses whose API is inferred.

Rows are numbered from 0: first the entries of Kafka's own files, then the rows of the index.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, cast

import numpy as np

from dissector.capture_session.reading import Reading
from dissector.core.arrays import Bool, Int64
from dissector.exchange.row_fields import ROW_FIELDS, Value
from dissector.index.exchange_table import NO_FRAME
from dissector.index.index_columns import ENTRY, IndexColumns, index_columns
from dissector.index.raw_frames import raw_frames
from dissector.index.shared_state import SharedState


class Span(NamedTuple):
    """Where a frame, or what stands between frames, is in its stream."""

    direction: int
    start: int
    """Stream offset of its first byte."""
    size: int
    packet: int
    """With its first byte."""
    of_client: bool


class Indexed(Reading):
    """Columns of rows, of connections and of what the conversations teach."""

    def _parted(self, rows: range | Int64) -> tuple[range | Int64, range | Int64]:
        """The entries of files among rows; and the others, as rows of the index."""
        entries = len(self._files)
        if isinstance(rows, range):
            indexed = range(max(0, rows.start - entries), max(0, rows.stop - entries))
            return range(rows.start, min(rows.stop, entries)), indexed
        return rows[rows < entries], rows[rows >= entries] - entries

    def is_complete(self, rows: Int64) -> Bool:
        """Which rows nothing is added to any more, `(n,)`: they can be shown as they are before reading ends."""
        entries = len(self._files)
        complete: Bool = rows < entries
        complete[~complete] = self._session.is_complete(rows[~complete] - entries)
        return complete

    def connection_of(self, number: int) -> int:
        """The connection of a row, as `Row.connection` counts them; decodes nothing."""
        entries = len(self._files)
        if number < entries:
            return self._files.file_of(number)
        return int(self._session.table.connection.values[number - entries]) + 1 + self._files.count

    def spans(self, number: int) -> list[Span]:
        """Where what a row holds stands in the streams: nowhere for an entry of a file of Kafka's."""
        at = number - len(self._files)
        if at < 0:
            return []
        table, frames = self._session.table, self._session.frames
        sides = ((int(table.request.values[at]), True), (int(table.response.values[at]), False))
        columns = (frames.direction.values, frames.start.values, frames.size.values, frames.packet.values)
        spans = []
        for frame, of_client in sides:
            if frame != NO_FRAME:
                direction, start, size, packet = (int(column[frame]) for column in columns)
                spans.append(Span(direction, start, size, packet, of_client))
        return spans

    def begins(self, rows: range | Int64) -> list[tuple[int, int]]:
        """With which packet each of these rows begins, from 0, and at which offset in its direction's stream, -1 for
        what is in no stream; rows are from 0 and ascending. An entry of a file of Kafka's is a packet of its own."""
        stored, indexed = self._parted(rows)
        table, at = self._session.table, np.asarray(indexed, np.int64)
        frame = np.where(table.request.values[at] == NO_FRAME, table.response.values[at], table.request.values[at])
        start, is_framed = np.full(len(at), -1), frame != NO_FRAME
        start[is_framed] = self._session.frames.start.values[frame[is_framed]]
        packets = table.packet.values[at].tolist()
        return [*((int(number), -1) for number in stored), *zip(packets, start.tolist(), strict=True)]

    def first_packet(self, connection: int) -> int:
        """The number of a connection's first packet, from 0; of a file of Kafka's, 0."""
        at = connection - 1 - self._files.count
        return self._transport.flows.first_packet(at) if at >= 0 else 0

    def begin_ns(self, connection: int) -> int | None:
        """The time of a connection's first packet; None for a file of Kafka's."""
        at = connection - 1 - self._files.count
        return self._transport.flows.first_time_ns(at) if at >= 0 else None

    def closed(self, connection: int) -> tuple[int, bool] | None:
        """When a connection was closed, and whether the client did so first; None where that was not seen."""
        at = connection - 1 - self._files.count
        return self._lookup.closed(at) if at >= 0 else None

    def raw(self, rows: Int64) -> Iterator[tuple[bytes, bytes]]:
        """The bytes of these rows, from 0: of the request and of the response. Secrets are in them: they are to be
        looked through, and not for anybody's eyes."""
        entries = len(self._files)
        for number in rows[rows < entries].tolist():
            stored = self._files.exchange(number).request
            yield stored.data if stored is not None else b"", b""
        yield from raw_frames(self._session.table, self._session.frames, self._store, rows[rows >= entries] - entries)

    def learn(self) -> None:
        """Learn now what the conversations teach, and not when the first exchange is decoded."""
        self._lookup.learn()

    def lessons(self) -> SharedState:
        """What this capture, a part of a larger one that was read to its end, teaches those who read other parts."""
        return self._lookup.lessons()

    def take(self, lessons: SharedState) -> None:
        """What all parts together teach: for a part that was read to its end, before it is looked at."""
        self._lookup.take(lessons)

    def columns(self, names: Sequence[str], start: int, stop: int) -> list[list[Value]]:
        """Columns of the index by name (`ROW_FIELDS`), with the rows from `start` to before `stop`."""
        return self.columns_at(names, range(start, stop))

    def columns_at(self, names: Sequence[str], rows: range | Int64) -> list[list[Value]]:
        """Columns of the index by name, with these rows, from 0 and ascending."""
        entries = len(self._files)
        stored, indexed = self._parted(rows)
        exchanges = [self._files.exchange(int(number)) for number in stored]
        fields = [ROW_FIELDS[name] for name in names]
        columns: list[list[Value]] = [[field.from_exchange(exchange) for exchange in exchanges] for field in fields]
        if len(indexed):
            found = self._listing.columns(names, indexed)
            added = {"number": entries, "connection": self._files.count}
            for field, column, more in zip(fields, columns, found, strict=True):
                add = added.get(field.name, 0)
                column += [cast(int, value) + add for value in more] if add else more
        return columns

    def index_columns(self, rows: Int64) -> IndexColumns:
        """What the index has of these rows, from 0, as numbers; an entry's size stands where a request's does."""
        entries = len(self._files)
        is_entry = rows < entries
        if not is_entry.any():
            found = index_columns(self._session.table, self._session.frames, rows - entries)
            return found._replace(connection=found.connection + self._files.count)
        others = self.index_columns(rows[~is_entry])
        columns = []
        for name, column in zip(IndexColumns._fields, others, strict=True):
            whole = np.full(
                len(rows), -1 if name in ("api_key", "version", "answered_size") else ENTRY if name == "kind" else 0
            )
            whole[~is_entry] = column
            columns.append(whole)
        made = IndexColumns(*columns)
        made.asked_size[is_entry] = self._files.sizes()[rows[is_entry]]
        made.connection[is_entry] = [self._files.file_of(number) for number in rows[is_entry].tolist()]
        return made

    @property
    def nodes(self) -> Mapping[int, str]:
        """The addresses (`host:port`) of nodes, by their ids, as far as the conversations teach them."""
        self.learn()
        return self._session.knowledge.nodes

    def client_id(self, number: int) -> str | None:
        """The client id of that number in `IndexColumns`."""
        return self._session.client_ids.texts[number]

    def ends(self, connection: int) -> tuple[str, str]:
        """The client's end of a connection and the server's, as `host:port`; of a file of Kafka's, its name."""
        at = connection - 1 - self._files.count
        return self._lookup.ends(at) if at >= 0 else ("", self._files.name_of(connection))

    def offered(self, connection: int) -> Mapping[int, tuple[int, int]]:
        """The versions that the server of a connection said it has, by API key; empty where it was not asked."""
        self.learn()
        return self._session.knowledge.offered(connection - 1 - self._files.count)

    def software(self, connection: int) -> tuple[str, str]:
        """Name and version of the software that the client of a connection said it is (KIP-511); else empty."""
        self.learn()
        return self._session.knowledge.software(connection - 1 - self._files.count)

    def sizes(self, start: int, stop: int) -> Int64:
        """Bytes of each row from `start` to before `stop`, `(n,)`: of its two frames, or of its entry."""
        entries = len(self._files)
        frames = self._lookup.sizes(max(0, start - entries), max(0, stop - entries))
        return np.concatenate((self._files.sizes()[start:stop], frames))
