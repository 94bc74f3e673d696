"""One partition of the packets, dissected like a complete capture: first its shared state, then its rows.

Rows have the names of `tables.schemas`. Those of exchanges that need no careful look come as tables of many rows;
others are dicts by column, and their records row groups.
"""

import pickle
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np

from dissector.capture.partition import Block, CapturePartition
from dissector.capture_session import Capture
from dissector.capture_session.tally import CaptureTally, PartitionTally
from dissector.core.arrays import Int64
from dissector.core.finding import Finding, Severity
from dissector.core.object_graph import Nodes
from dissector.detection.decode_as import DecodeAs, parse_decode_as
from dissector.exchange.finding_words import ERROR_RESPONSE
from dissector.exchange.message_subjects import ERROR
from dissector.exchange.model import Exchange
from dissector.exchange.to_json import exchange_object, finding_object, messages_object
from dissector.index.shared_state import SharedState
from dissector.pipeline import cell_json, record_rows
from dissector.pipeline.body_rows import body_rows
from dissector.pipeline.input_files import input_file
from dissector.pipeline.observations import Observed, rows_of
from dissector.pipeline.origins import ConnectionNames, FileOrigins, Origin, Origins, Sources
from dissector.pipeline.packed_rows import PackedRowBuilder
from dissector.pipeline.request_columns import number_cells
from dissector.protocol.schema.errors import error_name
from dissector.tables.carried_records import CarriedRecords, has_records_field, records_of_entry
from dissector.tables.data_files import TALLIES
from dissector.tables.row_batches import Cells, TableRow
from dissector.tables.schemas import NO_BODIES, OF_MESSAGES
from dissector.tls.session import TlsSession
from dissector.transport.partitions import Partition

_OPTIONAL_CELLS: Final[Cells] = dict.fromkeys(("request", "response", "rest", "request_bytes", "response_bytes"))
"""Cells that not every row of `bodies` has."""
_NOT_IN_REST: Final = frozenset(("kind", "number", "connection", "client", "server", "file", "time_ns", "findings"))
"""Fields of rows that are not exchanges, and that have columns here or in `captures`: they are not in `rest`."""

_DECODE_AS: Final = "decode-as "
EXAMINED_TOGETHER: Final = 1 << 14
"""Rows that are examined in a step, which nobody waits for: four times as many as usual take a quarter less CPU."""

RowStart = tuple[int, int]
"""Packet and stream offset of a row's first byte."""


class WriteOptions(NamedTuple):
    """Which contents of the wire go to the tables."""

    frames: bool = False
    """Bytes of requests and responses."""
    records: bool = True
    """Keys and values of records; otherwise their sizes and hashes."""
    secrets: bool = False
    """Secrets, unmasked."""
    key_logs: bool = False
    """What key logs decrypt."""
    decode_as: tuple[DecodeAs, ...] = ()
    """What connections are, whatever their bytes look like."""
    bodies: bool = True
    """Requests and responses as JSON."""

    @property
    def words(self) -> str:
        """The options in which it differs from the default, as the command names them."""
        named = (
            ("frames", self.frames),
            (NO_BODIES, not self.bodies),
            ("hash-records", not self.records),
            ("show-secrets", self.secrets),
            ("keylog", self.key_logs),
            *((f"{_DECODE_AS}{choice}", True) for choice in self.decode_as),
        )
        return ", ".join(name for name, is_set in named if is_set)


def decode_as_in(words: str) -> list[DecodeAs]:
    """Return the choices in the words of options."""
    found = (each for each in words.split(", ") if each.startswith(_DECODE_AS))
    return [parse_decode_as(each.removeprefix(_DECODE_AS)) for each in found]


class _SingleRow(NamedTuple):
    """A row of the capture that is decoded."""

    number: int
    begin: RowStart
    exchange: Exchange
    expected_response: bool | None


class RowBuilder:
    """Builds the rows of one partition."""

    def __init__(self, capture: Capture, origins: Origins, options: WriteOptions) -> None:
        self._capture = capture
        self._origins = origins
        self._options = options
        self.names = ConnectionNames(capture, self._origins)
        self._software = lru_cache(maxsize=1 << 12)(capture.connections.software)
        """Safe to cache: the partition is read completely before the first row is built."""

    def rows(self) -> Iterator[TableRow]:
        """Yield the table and the row of everything."""
        yield from self.rows_of(np.arange(len(self._capture)))

    def rows_of(self, chosen: Int64) -> Iterator[TableRow]:
        """Yield the table and the row of everything in some rows of the capture, ascending."""
        is_left = np.ones(len(chosen), np.bool_)
        builder = PackedRowBuilder(
            self._capture, self._origins, self.names, keeps_records=self._options.records,
            keeps_bodies=self._options.bodies, keeps_frames=self._options.frames,
        )  # fmt: skip
        for made in builder.rows(chosen):
            is_left[np.searchsorted(chosen, made.rows)] = False
            yield from self._connections()
            yield from made.tables
        for single in self._at(chosen[is_left]):
            yield from self._rows_of(single)

    def _at(self, rows: Int64) -> Iterator[_SingleRow]:
        columns = self._capture.index.numbers(rows)
        expected = [
            bool(expects) if known else None
            for expects, known in zip(
                columns.expects_response, columns.is_exchange & (columns.api_key >= 0), strict=True
            )
        ]
        packets, starts = self._capture.frames.positions(rows)
        begins = zip(packets.tolist(), starts.tolist(), strict=True)
        return map(_SingleRow, rows.tolist(), begins, self._capture.at(rows), expected)

    def _rows_of(self, single: _SingleRow) -> Iterator[TableRow]:
        number, begin, exchange, expected_response = single
        capture, row = self._capture, exchange.row
        place = self._origins.of(begin[0])
        key = place.keys | {"start": begin[1]}
        where = key | {"time_ns": row.time_ns, "connection": None, "client": None, "server": None}
        if not exchange.is_stored:
            where |= {"connection": self.names.of(row.connection), "client": row.client, "server": row.server}
            yield from self._connections()
        batches: list[CarriedRecords] = []
        to_object = messages_object if row.kind == "exchange" else exchange_object
        content = to_object(exchange, record_rows.body_packer(batches, kept=self._options.records))
        yield "exchanges", self._exchange(where, exchange) | {
            "merged_packet": place.merged_packet, "expected_response": expected_response,
        } | number_cells(content if row.kind == "exchange" else {})  # fmt: skip
        lost: list[Finding] = []
        if self._options.bodies:
            cells, lost = self._body(key, exchange, content)
            yield "bodies", cells
        of_row = exchange.row_findings if row.severity else []
        of_messages = exchange.findings[len(of_row) :] if row.severity else []
        for nth, finding in (*enumerate(of_row), *enumerate((*of_messages, *lost), OF_MESSAGES)):
            yield "findings", key | finding_object(finding) | {"nth": nth, "replaces": None}
        if row.kind in ("gap", "unparsed"):
            for span in capture.frames.spans(number)[:1]:
                side = "request" if span.of_client else "response"
                yield "gaps", where | {"kind": row.kind, "direction": side, "size": span.size}
        if exchange.is_stored:
            batches.extend(records_of_entry(row.server, content))
        shared = where | {"api": row.api, "client_id": row.client_id}
        if row.kind == "exchange":
            yield from body_rows(exchange.api_key, content, shared)
        for batch in batches:
            if batch.head is not None:
                yield "batches", record_rows.batch_row(batch, batch.head, shared)
            if batch.records:
                yield "records", record_rows.record_rows(batch, shared, kept=self._options.records)

    def _exchange(self, where: Cells, exchange: Exchange) -> Cells:
        """Return the row of `exchanges`."""
        row = exchange.row
        software = self._software(row.connection)
        return {
            **where,
            "kind": row.kind, "api_key": exchange.api_key, "api": row.api, "api_version": row.version,
            "correlation_id": row.correlation_id, "client_id": row.client_id, "software_name": software[0] or None,
            "software_version": software[1] or None, "latency_ns": row.latency_ns,
            "request_transfer_ns": row.request_transfer_ns, "wait_ns": row.wait_ns,
            "response_transfer_ns": row.response_transfer_ns,
            "response_packet": self._in_file(row.response_packet),
            "request_size": row.request_size, "response_size": row.response_size, "errors": _errors(exchange),
            "info": exchange.own_info,
        }  # fmt: skip

    def _in_file(self, packet: int | None) -> int | None:
        """The number of a packet in its file, from 1, for its number in the capture."""
        return None if packet is None else self._origins.of(packet - 1).packet

    def _body(self, key: Cells, exchange: Exchange, content: Cells) -> tuple[Cells, list[Finding]]:
        """Return the row of `bodies`, and findings about what cells could not hold."""
        found: Cells = {**key, **_OPTIONAL_CELLS}
        lost: list[Finding] = []
        for name, cell in self._json(exchange, content):
            found[name] = cell.json.decode()
            if cell.lost:
                words = f"JSON too large for a cell of a table: {cell.lost}"
                lost.append(Finding("cell-too-large", Severity.NOTE, words, "" if name == "rest" else name))
        if self._options.frames:
            for side, message in (("request", exchange.request), ("response", exchange.response)):
                has_records = exchange.is_stored or (message is not None and has_records_field(message.layout))
                if message is not None and (self._options.records or not has_records):
                    found[f"{side}_bytes"] = message.data
        return found, lost

    def _json(self, exchange: Exchange, content: Cells) -> Iterator[tuple[str, cell_json.CellJson]]:
        """Yield the cells with JSON, by column."""
        records = self._options.records
        if exchange.row.kind != "exchange":
            rest = {name: value for name, value in content.items() if name not in _NOT_IN_REST}
            yield "rest", cell_json.entry_cell(rest, records=records)
            return
        for side, message in (("request", exchange.request), ("response", exchange.response)):
            if message is not None:
                yield side, cell_json.message_cell(content[side], message.layout.body, records=records)

    def _connections(self) -> Iterator[TableRow]:
        """Yield the rows of the connections that are new."""
        for connection in self.names.take_new():
            yield "connections", self._connection_row(connection)

    def _connection_row(self, connection: int) -> Cells:
        capture = self._capture
        place = self._origins.of(capture.connections.first_packet(connection))
        client, server = capture.connections.ends(connection)
        software, closed = capture.connections.software(connection), capture.connections.closed(connection)
        offered = capture.connections.advertised_versions(connection)
        return {
            **place.keys, "merged_packet": place.merged_packet, "connection": self.names.of(connection),
            "client": client, "server": server, "begin_ns": capture.connections.first_time_ns(connection),
            "end_ns": capture.connections.last_time_ns(connection), "opened": capture.connections.is_opened(connection),
            "closed_ns": closed[0] if closed else None,
            "closed_by": ("client" if closed[1] else "server") if closed else None,
            "software_name": software[0] or None, "software_version": software[1] or None,
            **_tls_cells(capture.connections.tls(connection)),
            "offered": _offered(tuple(offered.items())),
        }  # fmt: skip


def opened(
    blocks: Iterable[Block], partition: Partition, options: WriteOptions, routing_tallies: list[CaptureTally],
    secrets: bytes, checkpoint: Nodes | None = None,
) -> Capture:  # fmt: skip
    """Return a partition as a capture, from a checkpoint on. Add the tallies of what routing ignored to
    `routing_tallies`."""
    part = CapturePartition(
        "a partition of the packets", packet_blocks(blocks, routing_tallies), partition.number, partition.parts, secrets
    )
    return Capture([part], decode_as=options.decode_as, checkpoint=checkpoint, show_secrets=options.secrets)


def _read(
    blocks: Iterable[Block], partition: Partition, options: WriteOptions, routing_tallies: list[CaptureTally],
    secrets: bytes,
) -> Capture:  # fmt: skip
    """Open a partition and read it."""
    capture = opened(blocks, partition, options, routing_tallies, secrets)
    for _ in capture.read():
        pass
    return capture


def packet_blocks(blocks: Iterable[Block], routing_tallies: list[CaptureTally]) -> Iterator[Block]:
    """Yield the blocks that have packets. Add the tallies of the others to `routing_tallies`."""
    for block in blocks:
        if block.heads:
            yield block
        else:
            routing_tallies.append(pickle.loads(block.data))


def _noted(blocks: Iterable[Block], sources: Sources) -> Iterator[Block]:
    """Yield blocks. Add their sources to `sources`."""
    for block in blocks:
        sources.add(block.sources)
        yield block


def read_shared_state(
    blocks: Iterable[Block], partition: Partition, secrets: bytes = b"", decode_as: tuple[DecodeAs, ...] = ()
) -> SharedState:
    """Return what the other partitions need from this one, decrypted with the `secrets` of a key log."""
    with _read(blocks, partition, WriteOptions(decode_as=decode_as), [], secrets) as capture:
        return capture.connections.shared_state()


def rows(
    blocks: Iterable[Block], partition: Partition, shared_state: SharedState, origins: FileOrigins,
    options: WriteOptions, secrets: bytes = b"",
) -> Iterator[TableRow]:  # fmt: skip
    """Yield the table and the row of everything in a partition, decrypted with the `secrets` of a key log. Rows of
    `OBSERVATIONS` come first, for cross-connection findings; the last row, of `TALLIES`, counts what was ignored."""
    return rows_with(lambda _: shared_state, blocks, partition, origins, options, secrets)


def rows_with(
    shared_state: Callable[[Capture], SharedState], blocks: Iterable[Block], partition: Partition,
    origins: FileOrigins, options: WriteOptions, secrets: bytes = b"", observed: Observed = rows_of,
) -> Iterator[TableRow]:  # fmt: skip
    """Yield the same; `shared_state` is asked once all packets are read, and observations go to `observed`."""
    routing_tallies, sources = list[CaptureTally](), Sources()
    with _read(_noted(blocks, sources), partition, options, routing_tallies, secrets) as capture:
        capture.connections.merge_shared_state(shared_state(capture))
        for _ in capture.findings.examine(part=True, step=EXAMINED_TOGETHER):
            yield from observed(capture.findings.take_observations(), sources)
        builder = RowBuilder(capture, Origins(origins, sources), options)
        yield from builder.rows()
        tally = PartitionTally(routing_tallies, capture.pipeline.tally, others=builder.names.of_others())
        yield TALLIES, {"tally": pickle.dumps(tally)}


def rows_of_kafka_file(path: str, origin: Origin, options: WriteOptions) -> Iterator[TableRow]:
    """Yield table and row of everything in one of Kafka's own files."""
    with Capture([input_file(path)], show_secrets=options.secrets) as capture:
        for _ in capture.read():
            pass
        yield from RowBuilder(capture, Origins(FileOrigins([origin], []), Sources()), options).rows()


@lru_cache(maxsize=256)
def _offered(versions: tuple[tuple[int, tuple[int, int]], ...]) -> list[tuple[int, Cells]]:
    """Return the cell with versions by API key: brokers offer the same on all their connections."""
    return [(key, {"low": low, "high": high}) for key, (low, high) in versions]


def _tls_cells(session: TlsSession | None) -> Cells:
    """Return the cells about the TLS of a connection."""
    if session is None:
        return {}
    return {
        "tls_version": session.version, "tls_cipher": session.cipher, "tls_sni": session.server_name,
        "tls_alpn": session.application_protocol, "tls_principal": session.principal,
        "tls_resumed": session.is_resumed, "tls_state": session.state.value, "tls_ja4": session.ja4,
    }  # fmt: skip


def _errors(exchange: Exchange) -> list[str]:
    """Return the names of the errors in its response, each once."""
    if all(finding.code != ERROR_RESPONSE for finding in exchange.row_findings):
        return []  # in nearly all rows; the body need not be walked again
    codes = dict.fromkeys(code for code in ERROR.of(exchange) if isinstance(code, int) and code)
    return [error_name(code) for code in codes]
