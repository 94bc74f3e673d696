"""Rows of a capture as columns. No frame is decoded, except for responses whose API has to be inferred."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Final, NamedTuple, cast

import numpy as np

from dissector.capture_session.row_space import RowSpace
from dissector.capture_session.stage_pipeline import StagePipeline
from dissector.core.arrays import Bool, Int64
from dissector.core.finding import Finding
from dissector.exchange.body_columns import BodyColumns
from dissector.exchange.decoder import ExchangeDecoder
from dissector.exchange.field_keys import Choose, FieldKeys, Visit, no_column
from dissector.exchange.listing import Cells, Listing
from dissector.exchange.row_field import Value
from dissector.exchange.row_fields import ROW_FIELDS
from dissector.index.exchange_table import NO_FRAME
from dissector.index.index_columns import ENTRY, IndexColumns, index_columns
from dissector.index.raw_frames import raw_frames
from dissector.index.shared_state import SharedState
from dissector.tls.record_parts import TlsRecord

if TYPE_CHECKING:  # imported on use: a command needs few of them
    from dissector.core.columns import ValueNumbers
    from dissector.exchange.body_numbers import BodyNumbers, OfBodies
    from dissector.exchange.body_partitions import BodyPartitions, Lists, OfPartitions
    from dissector.exchange.equal_exchanges import SharedRow, Shown
    from dissector.exchange.index_rows import IndexRows, Summaries
    from dissector.exchange.info_texts import InfoTexts
    from dissector.exchange.json_lines import JsonLines, JsonText
    from dissector.exchange.message_answers import MessageAnswers
    from dissector.exchange.message_shapes import Traced
    from dissector.exchange.model import Exchange
    from dissector.exchange.record_columns import CarriedColumns, RecordsFields, RecordsOfRows
    from dissector.exchange.whole_exchanges import WholeBodies, WholeExchanges
    from dissector.protocol.message import MessageLayout

ROWS_PER_STEP: Final = 1 << 16
"""Rows whose messages are read together."""


class FrameSpan(NamedTuple):
    """Where a frame, or what is between frames, is in its stream."""

    direction: int
    start: int
    """Stream offset of its first byte."""
    size: int
    packet: int
    """With its first byte."""
    of_client: bool


class WholeRows(NamedTuple):
    """Rows that need no `Exchange`, and what they have."""

    rows: Int64
    bodies: "WholeBodies"


class ExchangeIndex:
    """Columns of rows. Rows are numbered as `RowSpace` says; those given in arrays are ascending."""

    def __init__(self, pipeline: StagePipeline, rows: RowSpace, decoder: ExchangeDecoder) -> None:
        self._pipeline = pipeline
        self._files = pipeline.files
        self._indexer = pipeline.indexer
        self._rows = rows
        self._decoder = decoder
        self._listing = Listing(pipeline.indexer, decoder)
        self._bodies = BodyColumns(pipeline.indexer, pipeline.store, show_secrets=decoder.shows_secrets)

    @cached_property
    def _json(self) -> "JsonLines":
        from dissector.exchange.json_lines import JsonLines

        return JsonLines(self._indexer, self._pipeline.store, self._decoder, self._is_ended)

    @cached_property
    def _whole(self) -> "WholeExchanges":
        from dissector.exchange.whole_exchanges import WholeExchanges

        return WholeExchanges(self._indexer, self._pipeline.store, self._decoder)

    @cached_property
    def _info(self) -> "InfoTexts":
        from dissector.exchange.info_texts import InfoTexts

        return InfoTexts(self._indexer, self._pipeline.store, self._decoder, self._is_ended)

    def _is_ended(self, connection: int) -> bool:
        """Whether a connection was closed."""
        return any(self._pipeline.transport.connections.ended(connection))

    @cached_property
    def _answers(self) -> "MessageAnswers":
        from dissector.exchange.message_answers import MessageAnswers

        return MessageAnswers(self._bodies, self._decoder, self._indexer.conversation_state.topic_names)

    @cached_property
    def _records(self) -> "RecordsOfRows":
        from dissector.exchange.record_columns import RecordsOfRows

        return RecordsOfRows(self._bodies)

    @cached_property
    def _numbers(self) -> "BodyNumbers":
        from dissector.exchange.body_numbers import BodyNumbers

        return BodyNumbers(self._bodies)

    @cached_property
    def _partitions(self) -> "BodyPartitions":
        from dissector.exchange.body_partitions import BodyPartitions

        return BodyPartitions(self._bodies)

    def is_complete(self, rows: Int64) -> Bool:
        """Which rows get nothing added any more, `(n,)`: they can be shown before reading ends."""
        complete = self._rows.is_entry(rows)
        complete[~complete] = self._indexer.is_complete(self._rows.index_rows(rows))
        return complete

    def columns(self, names: Sequence[str], rows: range | Int64) -> list[list[Value]]:
        """Values of row fields, a list for each name."""
        entries, indexed = self._rows.split(rows)
        exchanges = [self._files.exchange(int(row)) for row in entries]
        fields = [ROW_FIELDS[name] for name in names]
        columns: list[list[Value]] = [[field.from_exchange(exchange) for exchange in exchanges] for field in fields]
        if len(indexed):
            found = self._listing.columns(names, indexed)
            added = {"number": self._rows.entries, "connection": self._rows.files}
            for field, column, more in zip(fields, columns, found, strict=True):
                add = added.get(field.name, 0)
                column += [cast(int, value) + add for value in more] if add else more
        return columns

    def cells(self, names: Sequence[str], rows: range | Int64) -> list[Cells] | None:
        """The same without a Python object for each row; None where entries of files are among the rows."""
        return None if self._rows.entries else self._listing.cells(names, rows)

    def info(self, rows: range | Int64, findings: "Summaries") -> list[str | None]:
        """The info column of rows; None for entries of files, and where a row has to be decoded for it."""
        entries, indexed = self._rows.split(rows)
        found: list[str | None] = [None] * len(entries)
        numbers = np.asarray(indexed, np.int64)
        for first in range(0, len(numbers), ROWS_PER_STEP):
            some = numbers[first : first + ROWS_PER_STEP]
            found += self._info.texts(some, _cross_message(findings, some))
        return found

    def json_lines(self, rows: range | Int64, findings: "Summaries") -> "Iterator[JsonText]":
        """The JSON lines of rows, some at a time; empty for entries of files, and where a row has to be decoded."""
        from dissector.exchange.json_lines import JsonText

        entries, indexed = self._rows.split(rows)
        if len(entries):
            yield JsonText([], np.zeros(len(entries), np.int64))
        for some in self._json.steps(np.asarray(indexed, np.int64)):
            yield self._json.lines(some, self._rows.entries, self._rows.files, _cross_message(findings, some))

    def whole_exchanges(self, rows: range | Int64, findings: "Summaries") -> Iterator[WholeRows]:
        """Rows for tables, some at a time; entries of files, and rows that have to be decoded, are in none."""
        _, indexed = self._rows.split(rows)
        for some in self._whole.steps(np.asarray(indexed, np.int64)):
            marked, _ = findings.cross_message_summaries(some)
            some = some[marked == 0]
            found = self._whole.bodies(some)
            yield WholeRows(some[found.at] + self._rows.entries, found)

    def may_read_records(self, rows: Int64) -> Bool:
        """Which rows that are exchanges with a request may be read by `records`; others have to be decoded."""
        return self._whole.may_read_records(self._rows.index_rows(rows))

    def records(
        self, rows: Int64, read: Callable[[Int64], object] = lambda _: None, *, are_whole: bool = False
    ) -> "Iterator[CarriedColumns]":
        """The records of rows that are exchanges: valid until the next. A row may be refused. `read` gets the places of
        rows that are read so; `are_whole` says that all are those of `whole_exchanges`."""
        return self._whole.records(self._rows.index_rows(rows), read, are_whole=are_whole)

    def produced_records(self, rows: Int64, read: Callable[[Int64], object]) -> "Iterator[RecordsFields]":
        """The `records` fields of the requests of rows that are Produce exchanges. `read` gets the places of rows that
        are read so; others have to be decoded."""
        return self._records.fields(self._rows.index_rows(rows), self._indexer.conversation_state.topic_names, read)

    def field_keys(
        self,
        keys: Choose,
        values: Choose = no_column,
        nonzero: Choose = no_column,
        *,
        is_request: bool,
        outlines: Choose = no_column,
    ) -> Callable[[Int64, Visit | None], Int64]:
        """What numbers rows of connections by fields of their messages: see `FieldKeys`."""
        found = FieldKeys(self._bodies, keys, nonzero, values, is_request=is_request, outlines=outlines)
        return lambda rows, visit: found.numbers(self._rows.index_rows(rows), visit)

    def equal_exchanges(
        self, show: "Callable[[Exchange], SharedRow[Shown]]"
    ) -> "Callable[[Int64], list[Shown | None]]":
        """What shows rows of connections, ascending, of equal ones one for all: see `EqualExchanges`."""
        from dissector.exchange.equal_exchanges import EqualExchanges
        from dissector.exchange.missing_responses import MissingResponses

        found = EqualExchanges(self._indexer, self._decoder, MissingResponses(self._indexer, self._is_ended), show)
        return lambda rows: found.of(self._rows.index_rows(rows))

    def message_shapes(
        self, trace: "Callable[[MessageLayout, bytes], Traced]"
    ) -> "Callable[[Int64, bool], list[Traced | None]]":
        """What traces messages of rows of connections, of one shape one: see `MessageShapes`."""
        from dissector.exchange.message_shapes import MessageShapes

        shapes = MessageShapes(self._bodies, trace)
        return lambda rows, is_request: shapes.traced(self._rows.index_rows(rows), is_request=is_request)

    def body_numbers(self, rows: Int64, names: Sequence[str], *, is_request: bool) -> "dict[str, OfBodies]":
        """Numbers that stand alone in the bodies of rows of connections, by name: see `BodyNumbers`."""
        return self._numbers.of(self._rows.index_rows(rows), names, is_request=is_request)

    def body_partitions(
        self, rows: Int64, lists: "Mapping[int, Lists]", fields: Sequence[str], alone: Sequence[str],
        texts: "ValueNumbers[str]", *, is_request: bool,
    ) -> "OfPartitions":  # fmt: skip
        """The partitions of topics in the bodies of rows of connections: see `BodyPartitions`."""
        names = self._indexer.conversation_state.topic_names
        return self._partitions.of(
            self._rows.index_rows(rows), lists, fields, alone, names, texts, is_request=is_request
        )

    def fetch_session(self, row: int) -> dict[str, list[int]] | None:
        """The partitions of a row that is an incremental Fetch, by topic; None where they are unknown."""
        return self._decoder.fetch_session(self._rows.index_row(row))

    def index_columns(self, rows: Int64) -> IndexColumns:
        """What the index has of rows, as numbers. The size of an entry is in the column of requests."""
        is_entry = self._rows.is_entry(rows)
        indexed = index_columns(self._indexer.table, self._indexer.frames, self._rows.index_rows(rows))
        indexed = indexed._replace(connection=indexed.connection + self._rows.files)
        if not is_entry.any():
            return indexed
        columns = []
        for name, column in zip(IndexColumns._fields, indexed, strict=True):
            none = -1 if name in ("api_key", "version", "response_size") else ENTRY if name == "kind" else 0
            whole = np.full(len(rows), none)
            whole[~is_entry] = column
            columns.append(whole)
        merged = IndexColumns(*columns)
        merged.request_size[is_entry] = self._files.sizes()[rows[is_entry]]
        merged.connection[is_entry] = [self._files.file_of(row) for row in rows[is_entry].tolist()]
        return merged

    def index_rows(
        self, rows: range | Int64, findings: "Summaries", start_ns: int, *, reads_messages: bool
    ) -> "tuple[int, IndexRows]":
        """How many of these rows, which come first, are entries of files; and the others, as filters read them."""
        from dissector.exchange.index_rows import IndexRows

        entries, indexed = self._rows.split(rows)
        columns = IndexRows(
            self._indexer, self._decoder, indexed, findings, start_ns, self._rows.entries, self._rows.files,
            self._answers if reads_messages else None,
        )  # fmt: skip
        return len(entries), columns

    def client_id(self, number: int) -> str | None:
        """The client id of that number in `IndexColumns`."""
        return self._indexer.client_ids.texts[number]

    def sizes(self, start: int, stop: int) -> Int64:
        """Bytes of each row from `start` to before `stop`, `(n,)`: of its two frames, or of its entry."""
        entries = self._rows.entries
        frames = self._decoder.costs(np.arange(max(0, start - entries), max(0, stop - entries)))
        return np.concatenate((self._files.sizes()[start:stop], frames))

    def spans(self, row: int) -> list[FrameSpan]:
        """Where the frames of a row are in their streams; empty for an entry of a file."""
        at = self._rows.index_row(row)
        if at < 0:
            return []
        table, frames = self._indexer.table, self._indexer.frames
        sides = ((int(table.request.values[at]), True), (int(table.response.values[at]), False))
        columns = (frames.direction.values, frames.start.values, frames.size.values, frames.packet.values)
        spans = []
        for frame, of_client in sides:
            if frame != NO_FRAME:
                direction, start, size, packet = (int(column[frame]) for column in columns)
                spans.append(FrameSpan(direction, start, size, packet, of_client))
        return spans

    def packet_spans(self, row: int) -> list[FrameSpan]:
        """Where the frames of a row are in the streams of TCP: of a connection that was decrypted the records that they
        are in. `control_stretches` has what else these need."""
        found, plaintext = [], self._pipeline.tls.plaintext
        for span in self.spans(row):
            direction, start, size = (np.array([each], np.int64) for each in span[:3])
            [begin], [width] = plaintext.in_tcp(direction, start, size)
            found.append(span._replace(start=int(begin), size=int(width)))
        return found

    def control_stretches(self, connections: Iterable[int]) -> list[tuple[int, int, int]]:
        """Direction, offset and size in TCP of what decrypted connections have besides application data: no key opens
        that without the handshake, and connections end with an alert."""
        return [
            (direction, start, size)
            for connection in sorted(connections)
            for direction in (2 * connection, 2 * connection + 1)
            for start, size in self._pipeline.tls.plaintext.without_plaintext(direction)
        ]

    def tls_records(self, row: int, *, of_client: bool) -> list[TlsRecord]:
        """The encrypted records that the request of a row came in, or its response. Their plaintext begins where it is
        in the frame. None where the connection was not decrypted."""
        if not len(self._pipeline.tls.plaintext.records):
            return []
        spans = (span for span in self.spans(row) if span.of_client == of_client)
        return [record for span in spans for record in self._pipeline.tls.records_of(*span[:3])]

    def decrypted_connections(self, rows: Sequence[int]) -> set[int]:
        """The connections of rows whose TLS records were decrypted, by number."""
        indexed = self._rows.index_rows(np.asarray(rows, np.int64))
        connections = self._indexer.table.connection.values[indexed]
        return set(filter(self.is_decrypted, np.unique(connections).tolist()))

    def is_decrypted(self, connection: int) -> bool:
        """Whether TLS records of a connection were decrypted."""
        return self._pipeline.tls.is_decrypted(connection)

    def tls_secrets(self, connections: Iterable[int]) -> bytes:
        """A key log with the secrets of these connections alone."""
        return self._pipeline.tls.key_log_of(connections)

    def positions(self, rows: range | Int64) -> list[tuple[int, int]]:
        """The packet with which each row begins, and the stream offset of its first byte: -1 where it is in no stream.
        An entry of a file counts as a packet of its own."""
        packets, starts = self.position_columns(rows)
        return list(zip(packets.tolist(), starts.tolist(), strict=True))

    def position_columns(self, rows: range | Int64) -> tuple[Int64, Int64]:
        """The same as columns."""
        entries, indexed = self._rows.split(rows)
        table, at = self._indexer.table, np.asarray(indexed, np.int64)
        frame = np.where(table.request.values[at] == NO_FRAME, table.response.values[at], table.request.values[at])
        start, is_framed = np.full(len(entries) + len(at), -1), frame != NO_FRAME
        start[len(entries) :][is_framed] = self._indexer.frames.start.values[frame[is_framed]]
        return np.concatenate([np.asarray(entries, np.int64), table.packet.values[at].astype(np.int64)]), start

    def raw_frames(self, rows: Int64) -> Iterator[tuple[bytes, bytes]]:
        """The bytes of request and response of rows, to be searched. They contain secrets: never show them."""
        for row in rows[self._rows.is_entry(rows)].tolist():
            entry = self._files.exchange(row).request
            yield entry.data if entry is not None else b"", b""
        table, frames = self._indexer.table, self._indexer.frames
        yield from raw_frames(table, frames, self._rows.index_rows(rows))

    def learn_conversations(self) -> None:
        """Update the conversation state now, not when the first exchange is decoded."""
        self._decoder.update_conversation_state()

    def shared_state(self) -> SharedState:
        """What other partitions of the capture can learn from this one, which is read to its end."""
        return self._decoder.shared_state()

    def merge_shared_state(self, state: SharedState) -> None:
        """Add what all partitions have learned, after reading and before rows are decoded."""
        self._decoder.merge_shared_state(state)
        if unreachable := self._pipeline.tally.unreachable:
            unreachable.advertised.update(self._indexer.conversation_state.nodes.values())


def _cross_message(findings: "Summaries", rows: Int64) -> dict[int, list[Finding]]:
    """The cross-message findings of rows of the index, by the places of those that have some."""
    marked, _ = findings.cross_message_summaries(rows)
    return {at: findings.of_index_row(int(rows[at])) for at in np.flatnonzero(marked).tolist()}
