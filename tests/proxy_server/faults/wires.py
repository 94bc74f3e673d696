"""A broker of few words, and a client of its messages, with a proxy between them that has rules for faults."""

import contextlib
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import dissector
from dissector.capture.fault_counts import FaultCount
from dissector.protocol.frame import frame_bytes, request_header
from dissector.protocol.message import Values, read
from dissector.protocol.message_layout import key_and_version, request_layout, response_layout
from dissector.protocol.records.from_json import records_bytes
from dissector.protocol.schema.loader import api_named
from tests.probe.servers import frame, serving
from tests.proxy_server.proxies import RunningProxy, proxy

TOPIC_ID = "AAAAAAAAAAAAAAAAAAAAaw"
RECORDS = records_bytes({"batches": [{"records": [{"value": b"one"}, {"value": b"two"}]}]})
VERSIONS = [{"api_key": key, "min_version": 0, "max_version": 12} for key in (0, 1, 3, 12, 18)]
ANSWERS: Final[dict[str, Values]] = {
    "Produce": {"responses": [{"name": "orders", "partition_responses": [{"index": 0, "base_offset": 70}]}]},
    "Fetch": {"responses": [{"topic": "orders", "partitions": [{"partition_index": 0, "records": RECORDS}]}]},
    "Metadata": {"topics": [{"name": "orders", "topic_id": TOPIC_ID}]},
    "ApiVersions": {"api_keys": VERSIONS},
    "Heartbeat": {},
}
REQUESTS: dict[str, tuple[int, Values]] = {
    "Produce": (
        8, {"acks": -1, "topic_data": [{"name": "orders", "partition_data": [{"index": 0, "records": RECORDS}]}]},
    ),
    "Fetch": (11, {"session_epoch": -1, "topics": [{"topic": "orders", "partitions": [{"partition": 0}]}]}),
    "Metadata": (12, {"topics": None}),
    "ApiVersions": (3, {}),
    "Heartbeat": (3, {"group_id": "readers", "member_id": "m"}),
}  # fmt: skip
"""Of each API a version and a body."""


class Client:
    """A connection through a proxy."""

    def __init__(self, connection: socket.socket, between: RunningProxy, came: list[bytes]) -> None:
        self.connection, self.between = connection, between
        self.came = came
        """Frames that came to the broker, without their sizes."""
        self._next = 0

    def another(self, first: int = 0) -> "Client":
        """A client of the same proxy, whose correlation ids begin behind `first`."""
        connection = socket.create_connection(self.between.address, 10)
        connection.settimeout(10)
        found = Client(connection, self.between, self.came)
        found._next = first
        return found

    def close(self) -> None:
        self.connection.close()

    def answered(self) -> int:
        """The correlation id of the next response."""
        return int.from_bytes(frame(self.connection)[:4], "big")

    def send(self, name: str, body: Values | None = None, version: int | None = None, client_id: str = "me") -> int:
        """Send a request, of the body of `REQUESTS` by default; return its correlation id."""
        known = api_named(name)
        assert known is not None
        usual, usual_body = REQUESTS[name]
        version = usual if version is None else version
        self._next += 1
        layout = request_layout(known.key, version)
        header = request_header(layout, known.key, version, {"correlation_id": self._next, "client_id": client_id})
        self.connection.sendall(frame_bytes(layout, header, usual_body if body is None else body))
        self._asked = known.key, version
        return self._next

    def answer(self) -> Values:
        """The body of the next response, to a request like the last one."""
        data = frame(self.connection)
        raw = len(data).to_bytes(4, "big") + data
        found = read(raw, response_layout(*self._asked, raw))
        assert not found.rest
        assert [each for each in found.findings if each.code != "version-fallback"] == []
        return found.body

    def ask(self, name: str, body: Values | None = None, version: int | None = None, client_id: str = "me") -> Values:
        """Send a request, and return the body of its response."""
        self.send(name, body, version, client_id)
        return self.answer()

    def took(self, name: str) -> float:
        """How many seconds a request takes."""
        begun = time.monotonic()
        self.ask(name)
        return time.monotonic() - begun

    def is_closed(self) -> bool:
        """Whether the proxy closes the connection before anything comes."""
        return self.connection.recv(1) == b""

    @property
    def ids(self) -> list[int]:
        """Correlation ids of what came to the broker."""
        return [int.from_bytes(each[4:8], "big") for each in self.came]

    def counts(self) -> list[FaultCount]:
        """What became of the rules; the proxy is stopped."""
        self.between.stop()
        return self.between.recording.faults

    def findings(self) -> dict[int, dict[str, str]]:
        """The findings of all rows that have some, by correlation id: their codes, and what they say; the proxy is
        stopped."""
        self.between.stop()
        found: dict[int, dict[str, str]] = {}
        with dissector.open(str(self.between.path)) as capture:
            for exchange, finding in capture.findings():
                found.setdefault(exchange.correlation_id or 0, {})[finding.code] = finding.message
            by_filter = {each.correlation_id for each in capture.exchanges('finding == "injected"')}
        assert by_filter == {number for number, codes in found.items() if "injected" in codes}
        return found


@contextlib.contextmanager
def faulty(folder: Path, *rules: str, answers: Mapping[str, Values] = ANSWERS, **settings: object) -> Iterator[Client]:
    """A client of the broker, through a proxy with rules; `answers` of some APIs, if they are others."""
    came: list[bytes] = []

    def begin(connection: socket.socket) -> None:
        threading.Thread(target=broker, args=(connection.dup(),), daemon=True).start()

    def broker(connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            while True:
                data = frame(connection)
                came.append(data)
                key, version = key_and_version(bytes(4) + data)
                name = {0: "Produce", 1: "Fetch", 3: "Metadata", 12: "Heartbeat", 18: "ApiVersions"}[key]
                request = read(len(data).to_bytes(4, "big") + data, request_layout(key, version)).body
                if name == "Produce" and request["acks"] == 0:
                    continue
                number = int.from_bytes(data[4:8], "big")
                body = (ANSWERS | answers)[name]
                if key == 0 and version >= 13:
                    body = {"responses": []}
                if key == 1 and (version >= 13 or request.get("session_epoch", 0) > 0):
                    body = {"responses": []}
                connection.sendall(frame_bytes(response_layout(key, version, b""), {"correlation_id": number}, body))

    with (
        serving(begin) as address,
        proxy(folder, address, faults=tuple(("", each) for each in rules), **settings) as between,
        socket.create_connection(between.address, 10) as connection,
    ):
        connection.settimeout(10)
        yield Client(connection, between, came)
