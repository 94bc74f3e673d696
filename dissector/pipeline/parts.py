"""One part of the packets, read as the whole capture would be: its lessons, then its rows.

Rows are plain dicts by column, as `tables` names them, those of records many at a time; bodies are JSON still.
"""

import pickle
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dissector.analysis.records import CarriedRecords, has_records_field, records_of_entry
from dissector.capture.partition import Block, CapturePartition
from dissector.capture_session import Capture
from dissector.capture_session.tally import CaptureTally, PartitionTally
from dissector.core.finding import Finding, Severity
from dissector.exchange.info_column import ERROR_RESPONSE
from dissector.exchange.message_subjects import ERROR
from dissector.exchange.model import Exchange
from dissector.exchange.to_json import exchange_object, messages_object
from dissector.index.shared_state import SharedState
from dissector.pipeline import bodies, carried
from dissector.pipeline.cells import Cells, Made
from dissector.pipeline.notes import NOTES, row_of
from dissector.pipeline.origins import Origin, Origins
from dissector.protocol.schema.errors import error_name
from dissector.transport.partitions import Partition

TALLIES: Final = "tallies"
"""What stands where a table's name does with what parts left out."""
_EMPTY: Final[Cells] = dict.fromkeys(("request", "response", "rest", "request_bytes", "response_bytes"))
"""What not every row of exchanges has."""
_ELSEWHERE: Final = frozenset(("kind", "number", "connection", "client", "server", "file", "time_ns", "findings"))
"""What rows that are no exchanges have in columns, or in the table of captures."""

Begin = tuple[int, int]
"""Packet and offset with which a row begins."""


class Keeping(NamedTuple):
    """What of the wire goes to the tables."""

    frames: bool = False
    """The bytes of requests and responses."""
    records: bool = True
    """Keys and values; else their sizes and hashes."""
    secrets: bool = False


class Rows:
    """Rows of the tables of one part."""

    def __init__(self, capture: Capture, origins: list[Origin], keeping: Keeping) -> None:
        self._capture = capture
        self._origin = Origins(origins).of
        self._keeping = keeping
        self._names: dict[int, str] = {}
        """Of connections that have their row."""
        self._software = lru_cache(maxsize=1 << 12)(capture.connections.software)
        """All is read before there is the first row."""

    def all(self) -> Iterator[Made]:
        """Table and row of all that there is."""
        for number, begin, exchange in self._at(range(len(self._capture))):
            yield from self._of(number, begin, exchange)

    def _at(self, rows: range | NDArray[np.int64]) -> Iterator[tuple[int, Begin, Exchange]]:
        return zip(np.asarray(rows).tolist(), self._capture.index.positions(rows), self._capture.at(rows), strict=True)

    def _of(self, number: int, begin: Begin, exchange: Exchange) -> Iterator[Made]:
        capture, row = self._capture, exchange.row
        origin, packet = self._origin(begin[0])
        is_new = row.connection not in self._names
        where = {
            "day": origin.day, "capture": origin.capture, "packet": packet, "start": begin[1], "time_ns": row.time_ns,
            "connection": self._connection(row.connection), "client": row.client,
            "server": row.server,
        }  # fmt: skip
        if exchange.is_stored:
            where |= {"connection": None, "client": None, "server": None}
        elif is_new:
            yield "connections", self._of_connection(row.connection)
        batches: list[CarriedRecords] = []
        to_object = messages_object if row.kind == "exchange" else exchange_object
        made = to_object(exchange, carried.packing(batches, kept=self._keeping.records))
        cells, lost = self._exchange(where, exchange, made)
        yield "exchanges", cells
        for finding in (*(exchange.findings if row.severity else ()), *lost):
            yield "findings", where | {
                "api": row.api, "code": finding.code, "severity": finding.severity.value, "path": finding.path,
                "message": finding.message,
            }  # fmt: skip
        if row.kind in ("gap", "unparsed"):
            for span in capture.index.spans(number)[:1]:
                side = "request" if span.of_client else "response"
                yield "gaps", where | {"kind": row.kind, "direction": side, "size": span.size}
        if exchange.is_stored:
            batches.extend(records_of_entry(row.server, made))
        said = where | {"api": row.api, "client_id": row.client_id}
        for batch in batches:
            yield "records", carried.rows(batch, said, kept=self._keeping.records)

    def _exchange(self, where: Cells, exchange: Exchange, made: Cells) -> tuple[Cells, list[Finding]]:
        """Its row, and what cells could not hold."""
        row = exchange.row
        software = self._software(row.connection)
        found: Cells = {
            **where, **_EMPTY,
            "kind": row.kind, "api_key": exchange.api_key, "api": row.api, "api_version": row.version,
            "correlation_id": row.correlation_id, "client_id": row.client_id, "software_name": software[0] or None,
            "software_version": software[1] or None, "latency_ns": row.latency_ns, "request_size": row.request_size,
            "response_size": row.response_size, "errors": _errors(exchange),
            "severity": row.severity.value if row.severity else None, "info": row.info,
        }  # fmt: skip
        lost: list[Finding] = []
        for name, cell in self._json(exchange, made):
            found[name] = cell.json
            if cell.lost:
                words = f"its JSON is larger than a cell of a table may be: {cell.lost}"
                lost.append(Finding("cell-too-large", Severity.NOTE, words, "" if name == "rest" else name))
        if self._keeping.frames:
            for side, message in (("request", exchange.request), ("response", exchange.response)):
                has_records = exchange.is_stored or (message is not None and has_records_field(message))
                if message is not None and (self._keeping.records or not has_records):
                    found[f"{side}_bytes"] = message.data
        return found, lost

    def _json(self, exchange: Exchange, made: Cells) -> Iterator[tuple[str, bodies.Cell]]:
        """What cells have as JSON, by column."""
        records = self._keeping.records
        if exchange.row.kind != "exchange":
            rest = {name: value for name, value in made.items() if name not in _ELSEWHERE}
            yield "rest", bodies.of_entry(rest, records=records)
            return
        for side, message in (("request", exchange.request), ("response", exchange.response)):
            if message is not None:
                yield side, bodies.of_message(made[side], message.shape.body, records=records)

    def _of_connection(self, connection: int) -> Cells:
        capture = self._capture
        origin, packet = self._origin(capture.connections.first_packet(connection))
        client, server = capture.connections.ends(connection)
        software, closed = capture.connections.software(connection), capture.connections.closed(connection)
        offered = capture.connections.advertised_versions(connection)
        return {
            "day": origin.day, "capture": origin.capture, "connection": self._connection(connection), "packet": packet,
            "begin_ns": capture.connections.first_time_ns(connection), "client": client, "server": server,
            "closed_ns": closed[0] if closed else None,
            "closed_by": ("client" if closed[1] else "server") if closed else None,
            "software_name": software[0] or None, "software_version": software[1] or None,
            "offered": [(key, {"low": low, "high": high}) for key, (low, high) in offered.items()],
        }  # fmt: skip

    def _connection(self, connection: int) -> str:
        name = self._names.get(connection)
        if name is None:
            origin, packet = self._origin(self._capture.connections.first_packet(connection))
            name = self._names[connection] = f"{origin.capture}:{packet}"
        return name


def _read(blocks: Iterable[Block], share: Partition, keeping: Keeping, dealt: list[CaptureTally]) -> Capture:
    """Read a part; `dealt` gets what was left out as it was dealt."""
    part = CapturePartition("a part of the packets", packets(blocks, dealt), share.number, share.parts)
    capture = Capture([part], show_secrets=keeping.secrets)
    for _ in capture.read():
        pass
    return capture


def packets(blocks: Iterable[Block], dealt: list[CaptureTally]) -> Iterator[Block]:
    """Blocks that have packets; `dealt` gets what the others say."""
    for block in blocks:
        if block.heads:
            yield block
        else:
            dealt.append(pickle.loads(block.data))


def lessons(blocks: Iterable[Block], share: Partition) -> SharedState:
    """What a part teaches the others."""
    with _read(blocks, share, Keeping(), []) as capture:
        return capture.index.shared_state()


def rows(
    blocks: Iterable[Block], share: Partition, taught: SharedState, origins: list[Origin], keeping: Keeping
) -> Iterator[Made]:
    """Table and row of all that a part holds; first of `NOTES`, what it takes other parts to tell; the last one, of
    `TALLIES`, is what it left out."""
    dealt: list[CaptureTally] = []
    with _read(blocks, share, keeping, dealt) as capture:
        capture.index.merge_shared_state(taught)
        for _ in capture.findings.examine(part=True):
            yield from ((NOTES, row_of(noted)) for noted in capture.findings.take_observations())
        yield from Rows(capture, origins, keeping).all()
        yield (
            TALLIES,
            {"day": None, "capture": None, "tally": pickle.dumps(PartitionTally(dealt, capture.pipeline.tally))},
        )


def of_stored(path: str, origin: Origin, keeping: Keeping) -> Iterator[Made]:
    """Table and row of all that a file of Kafka's own holds."""
    with Capture([path], show_secrets=keeping.secrets) as capture:
        for _ in capture.read():
            pass
        yield from Rows(capture, [origin], keeping).all()


def _errors(exchange: Exchange) -> list[str]:
    """The errors of its response, each once."""
    if all(finding.code != ERROR_RESPONSE for finding in exchange.own_findings):
        return []  # as nearly all: so its body is not walked once more
    codes = dict.fromkeys(code for code in ERROR.of(exchange) if isinstance(code, int) and code)
    return [error_name(code) for code in codes]
