"""The client and the broker of `network`: plain sockets that send Metadata requests and responses, with any faults.

Frames are written with this program's writer.
"""

import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from dissector.protocol.codec.writer import write
from dissector.protocol.message_layout import PREFIX
from dissector.protocol.schema.api_keys import ApiKey

BROKER_ADDRESS: Final = "10.2.0.2"
SERVICE_ADDRESS: Final = "10.96.0.1"
PORT: Final = 9092
VERSION: Final = 1
"""Of Metadata."""


def frame(content: bytes) -> bytes:
    """A frame with its size."""
    return len(content).to_bytes(PREFIX, "big") + content


def request(number: int, topics: int) -> bytes:
    """A Metadata request about so many topics."""
    head = {"request_api_key": ApiKey.METADATA, "request_api_version": VERSION, "correlation_id": number}
    names = [{"name": f"measurements-{n:05}"} for n in range(topics)]
    content = write("RequestHeader", 1, head | {"client_id": "kd-lab"})
    return frame(content + write("MetadataRequest", VERSION, {"topics": names}))


def response(number: int, topics: int) -> bytes:
    """Its response."""
    brokers = [{"node_id": 1, "host": BROKER_ADDRESS, "port": PORT, "rack": None}]
    names = [
        {"error_code": 0, "name": f"measurements-{n:05}", "is_internal": False, "partitions": []} for n in range(topics)
    ]
    content = write("ResponseHeader", 0, {"correlation_id": number})
    body = {"brokers": brokers, "controller_id": 1, "topics": names}
    return frame(content + write("MetadataResponse", VERSION, body))


def received(connection: socket.socket) -> bytes:
    """The next frame, without its size; empty at the end."""
    size = int.from_bytes(_exactly(connection, PREFIX), "big")
    return _exactly(connection, size) if size else b""


def _exactly(connection: socket.socket, size: int) -> bytes:
    """So many bytes, or none: MSG_WAITALL does not wait on a socket with a timeout."""
    data = b""
    while len(data) < size and (part := connection.recv(size - len(data))):
        data += part
    return data if len(data) == size else b""


def number_of(content: bytes) -> int:
    """The correlation id of a request."""
    return int.from_bytes(content[4:8], "big")


Answer = Callable[[socket.socket, int, int], None]
"""Answers a request: the connection, the correlation id, and how many requests came before on the connection."""


def plain(connection: socket.socket, number: int, _nth: int) -> None:
    """At once, and small."""
    connection.sendall(response(number, 2))


def large(connection: socket.socket, number: int, nth: int) -> None:
    """The fourth with four full segments and more."""
    connection.sendall(response(number, 250 if nth == 3 else 2))


def huge(connection: socket.socket, number: int, nth: int) -> None:
    """The 35th with 150 kB."""
    connection.sendall(response(number, 6_000 if nth == 34 else 2))


def in_two_pieces(connection: socket.socket, number: int, _nth: int) -> None:
    """Size and correlation id first, then the rest, with Nagle's algorithm on."""
    data = response(number, 2)
    connection.send(data[:8])
    connection.send(data[8:])


def late_by_itself(connection: socket.socket, number: int, _nth: int) -> None:
    """In two pieces as well, the second one when the program has it."""
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    data = response(number, 2)
    connection.send(data[:8])
    time.sleep(0.06)
    connection.send(data[8:])


def silent(connection: socket.socket, number: int, nth: int) -> None:
    """Not at all from the third on."""
    if nth < 2:
        plain(connection, number, nth)


def slow_once(connection: socket.socket, number: int, nth: int) -> None:
    """The 35th after half a second."""
    time.sleep(0.5 if nth == 34 else 0)
    plain(connection, number, nth)


ANSWERS: Final[dict[str, Answer]] = {
    each.__name__: each for each in (plain, large, huge, in_two_pieces, late_by_itself, silent, slow_once)
}


def serve(answer: Answer, port: int) -> None:
    """Accept connections and answer requests, until the process ends."""
    listener = socket.create_server(("0.0.0.0", port))
    print("listening", flush=True)

    def talk(connection: socket.socket) -> None:
        nth = 0
        with suppress(OSError):
            while content := received(connection):
                answer(connection, number_of(content), nth)
                nth += 1

    while True:
        connection, _ = listener.accept()
        threading.Thread(target=talk, args=(connection,), daemon=True).start()


@dataclass
class Talk:
    """A client's connection."""

    address: str = BROKER_ADDRESS
    is_whole: bool = True
    """Whether a request is written at once, with TCP_NODELAY."""

    def __post_init__(self) -> None:
        self.socket = socket.create_connection((self.address, PORT), timeout=60)
        self.number = 0
        if self.is_whole:
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def send(self, topics: int = 2) -> None:
        """Send a request."""
        self.number += 1
        data = request(self.number, topics)
        for part in (data,) if self.is_whole else (data[:8], data[8:]):
            self.socket.send(part) if len(part) < 1000 else self.socket.sendall(part)

    def ask(self, topics: int = 2) -> None:
        """Send a request and read the response."""
        self.send(topics)
        received(self.socket)

    def abort(self) -> None:
        """Reset the connection."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
        self.socket.close()


def small_then_large() -> None:
    """Three small requests, a large one, and the client's patience of eight seconds."""
    talk = Talk()
    for _ in range(3):
        talk.ask()
    talk.send(300)
    talk.socket.settimeout(8)
    with suppress(OSError):
        received(talk.socket)
    talk.abort()


def small(count: int = 4, wait: float = 8) -> None:
    """So many requests, and the client's patience for the last one."""
    talk = Talk()
    talk.socket.settimeout(wait)
    with suppress(OSError):
        for _ in range(count):
            talk.ask()
    talk.abort()


def idle_for(seconds: float) -> None:
    """A request, a pause, a request."""
    talk = Talk()
    talk.ask()
    time.sleep(seconds)
    talk.send()
    talk.socket.settimeout(8)
    with suppress(OSError):
        received(talk.socket)
    talk.abort()


def steady(seconds: float) -> None:
    """A request each 50 ms."""
    talk = Talk()
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        talk.ask()
        time.sleep(0.05)
    talk.socket.close()


def service() -> None:
    """Requests to the service's address, on two connections."""
    for _ in range(2):
        talk = Talk(SERVICE_ADDRESS)
        for _ in range(5):
            talk.ask()
        talk.socket.close()


def in_pieces(count: int) -> None:
    """Requests in two pieces, with Nagle's algorithm on."""
    talk = Talk(is_whole=False)
    for _ in range(count):
        talk.ask()
        time.sleep(0.05)
    talk.socket.close()


def does_not_read() -> None:
    """Small requests, and one whose response is read after a second and a half."""
    talk = Talk()
    talk.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    for _ in range(34):
        talk.ask()
    talk.send()
    time.sleep(1.5)
    received(talk.socket)
    talk.socket.close()


CLIENTS: Final[dict[str, Callable[[], None]]] = {
    "small-then-large": small_then_large, "small": small, "idle": lambda: idle_for(63), "steady": lambda: steady(3),
    "short-pause": lambda: idle_for(1), "forty": lambda: small(40), "service": service,
    "pieces": lambda: in_pieces(24), "does-not-read": does_not_read,
}  # fmt: skip
