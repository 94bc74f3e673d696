"""Rows of tables by columns: those of exchanges that need no `Exchange`, as nearly all do.

Invariant: the rows are those that `partition_rows` makes one by one (a test over all captures).
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from dissector.capture_session import Capture, WholeRows
from dissector.core.arrays import Bool, Int64
from dissector.exchange.record_columns import CarriedColumns
from dissector.exchange.whole_exchanges import Texts
from dissector.pipeline import cell_json
from dissector.pipeline.connection_names import ConnectionNames
from dissector.pipeline.observations import finding_cells
from dissector.pipeline.origins import Origins
from dissector.protocol.records.columns import gathered
from dissector.protocol.records.compression import CODECS
from dissector.protocol.schema.errors import error_name
from dissector.tables.rows import TableRow

Columns = dict[str, pa.Array]
CODEC: Final = 7
SEQUENCES: Final = 1 << 31
"""Sequence numbers wrap around to 0 at this one."""
NO_SEQUENCE: Final = -1
_KEY: Final = ("day", "capture", "epoch", "packet", "start")


class Made(NamedTuple):
    """Rows of tables, and the exchanges that they are of."""

    tables: list[TableRow]
    rows: Int64


class WholeRowBuilder:
    """Builds the rows of the exchanges of one partition."""

    def __init__(self, capture: Capture, origins: Origins, names: ConnectionNames) -> None:
        self._capture = capture
        self._origins = origins
        self._names = names

    def rows(self, chosen: Int64) -> Iterator[Made]:
        """Yield the rows of those exchanges in some rows of the capture that need no careful look, some at a time."""
        for whole in self._capture.whole_exchanges(chosen):
            if not len(whole.rows):
                continue
            info = self._capture.info(whole.rows)
            is_known = np.array([text is not None for text in info], np.bool_)
            is_known &= whole.bodies.requests.sizes <= cell_json.MAX_BYTES
            is_known &= whole.bodies.responses.sizes <= cell_json.MAX_BYTES
            where = self._where(whole.rows)
            records, refused = self._records(whole.rows, where)
            is_known[refused] = False
            yield self._made(whole, where, info, records, is_known)

    def _made(
        self, whole: WholeRows, where: Columns, info: Sequence[str | None], records: list[tuple[Int64, Columns]],
        is_known: Bool,
    ) -> Made:  # fmt: skip
        """Return the rows of the exchanges that are known."""
        tables: list[tuple[str, Columns]] = [
            ("exchanges", self._exchanges(whole, where, info)),
            ("bodies", self._bodies(whole, where)),
        ]
        found: list[TableRow] = [(name, pa.table(_kept(columns, is_known))) for name, columns in tables]
        for at, _, finding in whole.bodies.errors:
            if is_known[at]:
                key = {name: where[name][at].as_py() for name in _KEY}
                found.append(("findings", key | finding_cells(finding) | {"nth": 0, "replaces": None}))
        for row, columns in records:
            found.append(("records", pa.table(_kept(columns, is_known[row]))))
        return Made(found, whole.rows[is_known])

    def _where(self, rows: Int64) -> Columns:
        """The columns that tables share."""
        columns, capture = self._capture.index_columns(rows), self._capture
        packets, starts = (np.array(each, np.int64) for each in zip(*capture.index.positions(rows), strict=True))
        connections, which = np.unique(columns.connection, return_inverse=True)
        ends = [capture.connections.ends(each) for each in connections.tolist()]
        names = [self._names.of(each) for each in connections.tolist()]
        return {
            **self._origins.keys(packets), "start": pa.array(starts), "time_ns": pa.array(columns.request_time_ns),
            "connection": _chosen(names, which), "client": _chosen([client for client, _ in ends], which),
            "server": _chosen([server for _, server in ends], which),
        }  # fmt: skip

    def _exchanges(self, whole: WholeRows, where: Columns, info: Sequence[str | None]) -> Columns:
        columns, count = self._capture.index_columns(whole.rows), len(whole.rows)
        connections, which = np.unique(columns.connection, return_inverse=True)
        software = [self._capture.connections.software(each) for each in connections.tolist()]
        api, correlation_id = self._capture.columns(("api", "correlation_id"), whole.rows)
        return {
            **where,
            "kind": pa.array(["exchange"]).take(np.zeros(count, np.int64)),
            "api_key": pa.array(columns.api_key, pa.int32()), "api": pa.array(api, pa.string()),
            "api_version": pa.array(columns.version, pa.int32()),
            "correlation_id": pa.array(correlation_id, pa.int64()),
            "client_id": self._client_ids(columns.client_id),
            "software_name": _chosen([name or None for name, _ in software], which),
            "software_version": _chosen([version or None for _, version in software], which),
            "latency_ns": pa.array(columns.latency_ns, mask=~columns.has_latency),
            "request_size": pa.array(columns.request_size), "response_size": pa.array(columns.response_size),
            "expected_response": pa.array(columns.expects_response),
            "errors": _errors(whole), "info": pa.array(info, pa.string()),
        }  # fmt: skip

    def _client_ids(self, numbers: Int64) -> pa.Array:
        distinct, which = np.unique(numbers, return_inverse=True)
        return _chosen([self._capture.index.client_id(each) for each in distinct.tolist()], which)

    @staticmethod
    def _bodies(whole: WholeRows, where: Columns) -> Columns:
        key = {name: where[name] for name in _KEY}
        nothing, count = pa.nulls, len(whole.rows)
        return key | {
            "request": _texts(whole.bodies.requests),
            "response": _texts(whole.bodies.responses), "rest": nothing(count, pa.string()),
            "request_bytes": nothing(count, pa.binary()), "response_bytes": nothing(count, pa.binary()),
        }  # fmt: skip

    def _records(self, rows: Int64, where: Columns) -> tuple[list[tuple[Int64, Columns]], Int64]:
        """The records of rows, each with the place of its row; and the places of rows that need a careful look."""
        found: list[tuple[Int64, Columns]] = []
        refused = [np.zeros(0, np.int64)]
        of_row: Columns | None = None
        for carried in self._capture.index.records(rows):
            refused.append(carried.refused)
            if len(carried.records.offset):
                if of_row is None:
                    columns = self._capture.index_columns(rows)
                    api = pa.array(self._capture.columns(("api",), rows)[0], pa.string())
                    of_row = where | {"api": api, "client_id": self._client_ids(columns.client_id)}
                row = carried.row[carried.records.entry]
                try:
                    columns_of = _record_columns(carried)
                except pa.ArrowInvalid:  # the name of a header is no UTF-8
                    refused.append(carried.row)
                else:
                    found.append((row, {name: each.take(row) for name, each in of_row.items()} | columns_of))
        return found, np.concatenate(refused)


def _errors(whole: WholeRows) -> pa.Array:
    """The names of errors."""
    counts = np.zeros(len(whole.rows) + 1, np.int32)
    counts[[at + 1 for at, *_ in whole.bodies.errors]] = 1
    names = [error_name(code) for _, code, _ in whole.bodies.errors]
    return pa.ListArray.from_arrays(np.cumsum(counts, dtype=np.int32), pa.array(names, pa.string()))


def _record_columns(carried: CarriedColumns) -> Columns:
    """The columns of records and of their batches. Raises `ArrowInvalid` if a header's name is not UTF-8."""
    records, entries = carried.records, carried.records.entries
    batch = records.entry

    def of_batch(name: str, kind: pa.DataType) -> pa.Array:
        return pa.array(entries[name][batch], kind)

    first = entries["base_sequence"][batch]
    sequence = (first + records.offset - entries["base_offset"][batch]) % SEQUENCES
    codecs = [CODECS[each].name for each in range(len(CODECS))]
    count = len(records.offset)
    return {
        "topic": pa.array([topic or None for topic in carried.topic], pa.string()).take(batch),
        "partition": pa.array(carried.partition[batch], pa.int32()), "offset": _numbers(records.offset),
        "timestamp_ms": _numbers(records.timestamp), "key": _contents(records.data, records.key, records.key_size),
        "value": _contents(records.data, records.value, records.value_size), "key_size": _sizes(records.key_size),
        "value_size": _sizes(records.value_size), "key_sha256": pa.nulls(count, pa.binary()),
        "value_sha256": pa.nulls(count, pa.binary()), "headers": _headers(carried),
        "producer_id": of_batch("producer_id", pa.int64()), "producer_epoch": of_batch("producer_epoch", pa.int32()),
        "sequence": pa.array(np.where(first < 0, NO_SEQUENCE, sequence), pa.int32()),
        "codec": pa.array(codecs).take(entries["attributes"][batch] & CODEC),
        "control": pa.array(np.zeros(count, np.bool_)),
    }  # fmt: skip


def _headers(carried: CarriedColumns) -> pa.Array:
    records = carried.records
    ends = np.append(0, np.cumsum(records.headers)).astype(np.int32)
    names = _contents(records.data, records.header_key, records.header_key_size).cast(pa.string())
    values = _contents(records.data, records.header_value, records.header_value_size)
    return pa.ListArray.from_arrays(ends, pa.StructArray.from_arrays([names, values], ["key", "value"]))


def _contents(data: Any, starts: Int64, sizes: Int64) -> pa.Array:
    """Contents in a buffer; null where a size is negative."""
    found = gathered(data, starts, sizes)
    there = np.packbits(sizes >= 0, bitorder="little")
    return pa.BinaryArray.from_buffers(
        pa.binary(), len(sizes), [pa.py_buffer(there), pa.py_buffer(found.offsets), pa.py_buffer(found.data)]
    )


def _numbers(values: Int64) -> pa.Array:
    """A copy: what the reader gave is valid until it reads on."""
    return pa.array(values.copy())


def _sizes(sizes: Int64) -> pa.Array:
    return pa.array(sizes.copy(), mask=sizes < 0)


def _texts(texts: Texts) -> pa.Array:
    """Texts that are known to be ASCII."""
    ends = np.append(0, np.cumsum(texts.sizes)).astype(np.int32)
    return pa.StringArray.from_buffers(len(texts.sizes), pa.py_buffer(ends), pa.py_buffer(texts.data))


def _chosen(texts: Sequence[str | None], which: Int64) -> pa.Array:
    """A text for each row, by its number."""
    return pa.array(texts, pa.string()).take(which)


def _kept(columns: Columns, is_kept: Bool) -> Columns:
    """The columns with the rows that are kept."""
    return columns if is_kept.all() else {name: each.filter(is_kept) for name, each in columns.items()}
