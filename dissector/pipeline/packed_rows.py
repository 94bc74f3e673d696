"""Rows of tables by columns: those of exchanges that need no `Exchange`, as nearly all do.

Invariant: the rows are those that `partition_rows` makes one by one (a test over all captures).
"""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa

from dissector.bulk.record_columns import CarriedColumns
from dissector.capture_session import Capture, PackedRows
from dissector.core.arrays import Bool, Int64, UInt8
from dissector.core.finding import Finding
from dissector.exchange.silence_causes import without_repetition
from dissector.exchange.to_json import finding_object
from dissector.pipeline import cell_json
from dissector.pipeline.body_rows import body_columns
from dissector.pipeline.carried_columns import Columns, batch_columns, joined, kept, record_columns
from dissector.pipeline.origins import ConnectionNames, Origins
from dissector.pipeline.partition_columns import PARTITIONS, partition_rows
from dissector.pipeline.request_columns import number_columns
from dissector.protocol.message_layout import MessageLayout
from dissector.protocol.schema.errors import error_name
from dissector.tables.arrow_types import chosen
from dissector.tables.carried_records import has_records_field
from dissector.tables.row_batches import TableRow

_KEY: Final = ("day", "capture", "epoch", "packet", "start")
RECORDS_TOGETHER: Final = 1 << 14
"""Records of which columns are made together, ..."""
BYTES_TOGETHER: Final = 4 << 20
"""... and the decompressed bytes of their batches from which they are not joined by more."""


_NONE: Final = np.zeros(0, np.int64)
CarriedRows = tuple[str, Int64, Columns]
"""Rows of a table, each with the place of the exchange that carried it."""


class Made(NamedTuple):
    """Rows of tables, and the exchanges of which all rows are there now."""

    tables: list[TableRow]
    rows: Int64


class PackedRowBuilder:
    """Builds the rows of the exchanges of one partition; `keeps_records` says whether contents of records are kept, or
    their digests, `keeps_bodies` whether bodies are, and `keeps_frames` whether their bytes are, too."""

    def __init__(
        self, capture: Capture, origins: Origins, names: ConnectionNames, *, keeps_records: bool,
        keeps_bodies: bool, keeps_frames: bool,
    ) -> None:  # fmt: skip
        self._capture = capture
        self._origins = origins
        self._names = names
        self._keeps_records = keeps_records
        self._keeps_bodies = keeps_bodies
        self._keeps_frames = keeps_frames

    def rows(self, rows: Int64) -> Iterator[Made]:
        """Yield the rows of those exchanges in some rows of the capture that need no careful look, some at a time."""
        for whole in self._capture.messages.packed_exchanges(rows, kept=self._keeps_records):
            if not len(whole.rows):
                continue
            info = whole.messages.info(whole.rows, with_marks=False)
            is_known = np.array([text is not None for text in info], np.bool_)
            is_known &= whole.bodies.requests.sizes <= cell_json.MAX_BYTES
            is_known &= whole.bodies.responses.sizes <= cell_json.MAX_BYTES
            where = self._where(whole.rows)
            for carried in self._carried(whole, where, is_known):
                yield Made([(table, pa.table(_kept(cells, is_known[row]))) for table, row, cells in carried], _NONE)
            yield self._made(whole, where, info, is_known)

    def _made(self, whole: PackedRows, where: Columns, info: Sequence[str | None], is_known: Bool) -> Made:
        """Return the rows of the exchanges that are known, but those of what they carry."""
        exchanges = self._exchanges(whole, where, info)
        tables = [("exchanges", exchanges)]
        if self._keeps_bodies:
            tables.append(("bodies", self._bodies(whole, where)))
        found: list[TableRow] = [(name, pa.table(_kept(columns, is_known))) for name, columns in tables]
        findings = [each for each in _findings(whole) if is_known[each[0]]]
        if findings:
            found.append(("findings", pa.table(_finding_columns(findings, where))))
        api_keys = self._capture.index.numbers(whole.rows).api_key
        partitions = partition_rows(self._capture, whole, exchanges)
        is_kept = is_known[partitions.row]
        if is_kept.any():
            columns = {name: each.take(partitions.row) for name, each in where.items()} | partitions.columns
            found.append((PARTITIONS, pa.table(_kept(columns, is_kept))))
        is_left = is_known & ~partitions.is_known
        found += body_columns(api_keys, whole.bodies.requests, whole.bodies.responses, is_left, where)
        return Made(found, whole.rows[is_known])

    def _where(self, rows: Int64) -> Columns:
        """The columns that tables share."""
        columns, capture = self._capture.index.numbers(rows), self._capture
        packets, starts = capture.frames.positions(rows)
        connections, which = np.unique(columns.connection, return_inverse=True)
        ends = [capture.connections.ends(each) for each in connections.tolist()]
        names = [self._names.of(each) for each in connections.tolist()]
        (api,) = capture.index.columns(("api",), rows)
        client_ids, of_client = np.unique(columns.client_id, return_inverse=True)
        return {
            **self._origins.keys(packets), "start": pa.array(starts), "time_ns": pa.array(columns.request_time_ns),
            "connection": chosen(names, which), "client": chosen([client for client, _ in ends], which),
            "server": chosen([server for _, server in ends], which),
            "api": pa.array(api, pa.string()).dictionary_encode(),
            "client_id": chosen([capture.index.client_id(each) for each in client_ids.tolist()], of_client),
        }  # fmt: skip

    def _exchanges(self, whole: PackedRows, where: Columns, info: Sequence[str | None]) -> Columns:
        columns, count = self._capture.index.numbers(whole.rows), len(whole.rows)
        packets, _ = self._capture.frames.positions(whole.rows)
        connections, which = np.unique(columns.connection, return_inverse=True)
        software = [self._capture.connections.software(each) for each in connections.tolist()]
        (correlation_id,) = self._capture.index.columns(("correlation_id",), whole.rows)
        return {
            **where, "merged_packet": pa.array(self._origins.merged_packets(packets)),
            "kind": chosen(["exchange"], np.zeros(count, np.int64)),
            "api_key": pa.array(columns.api_key, pa.int32()), "api_version": pa.array(columns.version, pa.int32()),
            "correlation_id": pa.array(correlation_id, pa.int64()),
            "software_name": chosen([name or None for name, _ in software], which),
            "software_version": chosen([version or None for _, version in software], which),
            "latency_ns": pa.array(columns.latency_ns, mask=~columns.has_latency),
            "request_transfer_ns": pa.array(columns.request_transfer_ns, mask=columns.request_size < 0),
            "wait_ns": pa.array(columns.wait_ns, mask=~columns.has_latency),
            "response_transfer_ns": pa.array(columns.response_transfer_ns, mask=columns.response_size < 0),
            "response_packet": self._response_packets(whole.rows, columns.response_size < 0),
            "request_size": pa.array(columns.request_size),
            "response_size": pa.array(columns.response_size, mask=columns.response_size < 0),
            "expected_response": pa.array(columns.expects_response),
            **number_columns(partial(whole.messages.numbers, whole.rows)),
            "errors": _errors(whole), "info": pa.array(info, pa.string()),
        }  # fmt: skip

    def _response_packets(self, rows: Int64, is_missing: Bool) -> pa.Array:
        """The numbers of the packets with which responses begin, in their files."""
        (packets,) = self._capture.index.columns(("response.packet",), rows)
        numbers = np.array([each or 1 for each in packets], np.int64) - 1
        return pa.array(self._origins.packets_in_files(numbers), mask=is_missing)

    def _bodies(self, whole: PackedRows, where: Columns) -> Columns:
        key = {name: where[name] for name in _KEY}
        return key | {
            "request": _cells(pa.string(), *whole.bodies.requests),
            "response": _cells(pa.string(), *whole.bodies.responses), "rest": pa.nulls(len(whole.rows), pa.string()),
            "request_bytes": self._frames(whole, is_request=True),
            "response_bytes": self._frames(whole, is_request=False),
        }  # fmt: skip

    def _frames(self, whole: PackedRows, *, is_request: bool) -> pa.Array:
        if not self._keeps_frames:
            return pa.nulls(len(whole.rows), pa.binary())
        data, sizes = whole.messages.frame_bytes(whole.rows, is_request=is_request, takes=self._keeps_bytes)
        return _cells(pa.binary(), data, sizes)

    def _keeps_bytes(self, layout: MessageLayout) -> bool:
        return self._keeps_records or not has_records_field(layout)

    def _carried(self, whole: PackedRows, where: Columns, is_known: Bool) -> Iterator[list[CarriedRows]]:
        """Yield the batches and records of rows, some at a time: all of a row together, once it is no more known if it
        needs a careful look. No more is held than of a few rows, as batches may become a thousand times as large."""
        pieces: list[CarriedColumns] = []
        count = size = 0
        for carried in whole.messages.records(whole.rows):
            is_full = count >= RECORDS_TOGETHER or size >= BYTES_TOGETHER
            if is_full and carried.row[:1].tolist() != pieces[-1].row[-1:].tolist():
                found, pieces, count, size = self._together(pieces, where, is_known), [], 0, 0
                yield found
            is_known[carried.refused] = False
            if carried.is_batch.any():
                pieces.append(kept(carried))
                count += len(carried.records.offset)
                size += len(pieces[-1].records.data)
        if pieces:
            yield self._together(pieces, where, is_known)

    def _together(self, pieces: Sequence[CarriedColumns], where: Columns, is_known: Bool) -> list[CarriedRows]:
        """Return the rows of pieces. What needs a careful look is no more known."""
        carried = joined(pieces)
        is_batch = carried.is_batch
        try:
            of_batches = batch_columns(carried, is_batch)
            of_records = record_columns(carried, keeps_contents=self._keeps_records)
        except pa.ArrowInvalid:  # the name of a header is no UTF-8
            if len(pieces) == 1:
                is_known[carried.row] = False
                return []
            return [row for piece in pieces for row in self._together([piece], where, is_known)]
        return [
            (table, row, {name: each.take(row) for name, each in where.items()} | columns)
            for table, row, columns in (
                ("batches", carried.row[is_batch], of_batches),
                ("records", carried.row[carried.records.entry], of_records),
            )
        ]


def _findings(whole: PackedRows) -> list[tuple[int, int, Finding]]:
    """The findings of exchanges: the place of each one's exchange, and its number among the findings of that."""
    found: dict[int, list[Finding]] = {at: [error] for at, _, error in whole.bodies.errors}
    found |= {at: without_repetition([finding], whole.marks.get(at, ())) for at, finding in whole.bodies.lone}
    for at, marks in whole.marks.items():
        found[at] = found.get(at, []) + marks
    return [(at, nth, finding) for at in sorted(found) for nth, finding in enumerate(found[at])]


def _finding_columns(findings: Sequence[tuple[int, int, Finding]], where: Columns) -> Columns:
    """The rows of findings, each with the place of its exchange and its number there."""
    places = pa.array([at for at, *_ in findings])
    cells = [finding_object(finding) for *_, finding in findings]
    return {name: where[name].take(places) for name in _KEY} | {
        "nth": pa.array([nth for _, nth, _ in findings], pa.int32()), "replaces": pa.nulls(len(cells), pa.string()),
        **{name: pa.array([each[name] for each in cells], pa.string()) for name in cells[0]},
    }  # fmt: skip


def _errors(whole: PackedRows) -> pa.Array:
    """The names of errors."""
    counts = np.zeros(len(whole.rows) + 1, np.int32)
    counts[[at + 1 for at, *_ in whole.bodies.errors]] = 1
    names = [error_name(code) for _, code, _ in whole.bodies.errors]
    return pa.ListArray.from_arrays(np.cumsum(counts, dtype=np.int32), pa.array(names, pa.string()))


def _cells(kind: pa.DataType, data: memoryview | UInt8, sizes: Int64) -> pa.Array:
    """Bytes, or texts that are known to be ASCII, which lie one behind the other; null for empty ones."""
    ends = np.append(0, np.cumsum(sizes)).astype(np.int32)
    there = np.packbits(sizes > 0, bitorder="little")
    return pa.Array.from_buffers(kind, len(sizes), [pa.py_buffer(there), pa.py_buffer(ends), pa.py_buffer(data)])


def _kept(columns: Columns, is_kept: Bool) -> Columns:
    """The columns with the rows that are kept."""
    return columns if is_kept.all() else {name: each.filter(is_kept) for name, each in columns.items()}
