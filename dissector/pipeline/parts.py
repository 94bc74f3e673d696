"""One part of the packets, read as the whole capture would be: its lessons, then its rows.

Rows are plain dicts by column, as `tables` names them; bodies are JSON still.
"""

import hashlib
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime
from typing import Any, Final, NamedTuple

from dissector.capture.parts import Block, Part
from dissector.capture_file import Capture
from dissector.json_lines import exchange_object
from dissector.json_text import dumps
from dissector.session.exchange import Exchange
from dissector.session.lessons import Lessons

SHORT: Final = 16
"""Digits of a digest that a capture is called by."""
Cells = dict[str, Any]


class Origin(NamedTuple):
    """Where packets come from: a file, or several that were merged."""

    first: int
    """The number of its first packet in the capture of all."""
    digest: str
    begin_ns: int

    @property
    def capture(self) -> str:
        return self.digest[:SHORT]

    @property
    def day(self) -> date:
        return datetime.fromtimestamp(self.begin_ns / 1e9, UTC).date()


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
        self._origins = origins
        self._firsts = [origin.first for origin in origins]
        self._keeping = keeping
        self._names: dict[int, str] = {}
        """Of connections that have their row."""

    def all(self) -> Iterator[tuple[str, Cells]]:
        """Table and row of all that there is."""
        for number, exchange in enumerate(self._capture.exchanges()):
            yield from self._of(number, exchange)

    def _of(self, number: int, exchange: Exchange) -> Iterator[tuple[str, Cells]]:
        capture, row = self._capture, exchange.row
        origin, packet = self._origin(capture.packet_of(number))
        is_new = row.connection not in self._names
        where = {
            "day": origin.day, "capture": origin.capture, "packet": packet, "start": capture.start_of(number),
            "time_ns": row.time_ns, "connection": self._connection(row.connection), "client": row.client,
            "server": row.server,
        }  # fmt: skip
        if is_new:
            yield "connections", self._of_connection(row.connection)
        yield "exchanges", where | self._exchange(exchange)
        for finding in exchange.findings if row.severity else ():
            yield "findings", where | {
                "api": row.api, "code": finding.code, "severity": finding.severity.value, "path": finding.path,
                "message": finding.message,
            }  # fmt: skip
        if row.kind in ("gap", "unparsed"):
            for span in capture.spans(number)[:1]:
                side = "request" if span.of_client else "response"
                yield "gaps", where | {"kind": row.kind, "direction": side, "size": span.size}

    def _exchange(self, exchange: Exchange) -> Cells:
        row, made = exchange.row, exchange_object(exchange)
        is_exchange = row.kind == "exchange"
        software = self._capture.software(row.connection)
        cells: Cells = {
            "kind": row.kind, "api_key": exchange.api_key, "api": row.api, "api_version": row.version,
            "correlation_id": row.correlation_id, "client_id": row.client_id, "software_name": software[0] or None,
            "software_version": software[1] or None, "latency_ns": row.latency_ns, "request_size": row.request_size,
            "response_size": row.response_size, "severity": row.severity.value if row.severity else None,
            "info": row.info,
        }  # fmt: skip
        if is_exchange:
            for side in ("request", "response"):
                cells[side] = dumps(made[side]) if made[side] is not None else None
        else:
            known = ("kind", "number", "connection", "client", "server", "time_ns", "findings")
            cells["rest"] = dumps({name: value for name, value in made.items() if name not in known})
        if self._keeping.frames:
            for side, message in (("request", exchange.request), ("response", exchange.response)):
                cells[f"{side}_bytes"] = message.data if message is not None else None
        return cells

    def _of_connection(self, connection: int) -> Cells:
        capture = self._capture
        origin, packet = self._origin(capture.first_packet(connection))
        client, server = capture.ends(connection)
        software, closed = capture.software(connection), capture.closed(connection)
        return {
            "day": origin.day, "capture": origin.capture, "connection": self._connection(connection), "packet": packet,
            "begin_ns": capture.begin_ns(connection), "client": client, "server": server,
            "closed_ns": closed[0] if closed else None,
            "closed_by": ("client" if closed[1] else "server") if closed else None,
            "software_name": software[0] or None, "software_version": software[1] or None,
            "offered": [(key, {"low": low, "high": high}) for key, (low, high) in capture.offered(connection).items()],
        }  # fmt: skip

    def _connection(self, connection: int) -> str:
        name = self._names.get(connection)
        if name is None:
            origin, packet = self._origin(self._capture.first_packet(connection))
            name = self._names[connection] = f"{origin.capture}:{packet}"
        return name

    def _origin(self, packet: int) -> tuple[Origin, int]:
        """Where a packet comes from, and its number there, from 1."""
        origin = self._origins[max(0, bisect_right(self._firsts, packet) - 1)]
        return origin, packet - origin.first + 1


def _read(blocks: Iterable[Block], keeping: Keeping) -> Capture:
    capture = Capture([Part("a part of the packets", blocks)], show_secrets=keeping.secrets)
    for _ in capture.read():
        pass
    return capture


def lessons(blocks: Iterable[Block]) -> Lessons:
    """What a part teaches the others."""
    with _read(blocks, Keeping()) as capture:
        return capture.lessons()


def rows(
    blocks: Iterable[Block], taught: Lessons, origins: list[Origin], keeping: Keeping
) -> Iterator[tuple[str, Cells]]:
    """Table and row of all that a part holds."""
    with _read(blocks, keeping) as capture:
        capture.take(taught)
        for _ in capture.examine():
            pass
        yield from Rows(capture, origins, keeping).all()


def sha256(data: bytes | None) -> bytes | None:
    """A digest of what is not kept."""
    return None if data is None else hashlib.sha256(data).digest()
