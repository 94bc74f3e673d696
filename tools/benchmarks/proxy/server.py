"""A server of our own, which answers at once what the client of the benchmark asks for."""

import contextlib
import selectors
import socket
import struct
from typing import Final

from tests.frames import request

LARGE: Final = 1 << 20
SMALL: Final = 40
FETCH: Final = (1, 12)
FETCH_WITH_ENDPOINTS: Final = (1, 18)
"""A version whose responses may end with addresses."""
HEARTBEAT: Final = (12, 4)
_AT_ONCE: Final = 1 << 18
_BODIES: Final = {size: b"r" * (size - 3) + bytes(3) for size in (SMALL, LARGE)}
"""They end as Fetch without addresses does."""


def asking(correlation_id: int, size: int, api: tuple[int, int]) -> bytes:
    """A request that asks for a response of `size` bytes behind its header."""
    return request(correlation_id, api_key=api[0], version=api[1], client_id=struct.pack(">I", size), body=bytes(20))


FRAME: Final = len(asking(0, 0, HEARTBEAT))


def serve(listener: socket.socket) -> None:
    """Answer any number of connections."""
    ready = selectors.DefaultSelector()
    ready.register(listener, selectors.EVENT_READ)
    rest: dict[socket.socket, bytes] = {}
    while True:
        for key, _ in ready.select():
            found = key.fileobj
            assert isinstance(found, socket.socket)
            if found is listener:
                connection, _ = listener.accept()
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                ready.register(connection, selectors.EVENT_READ)
                rest[connection] = b""
                continue
            data = b""
            with contextlib.suppress(ConnectionError):
                if data := found.recv(_AT_ONCE):
                    rest[found] = _answer(found, rest[found] + data)
            if not data:
                ready.unregister(found)
                del rest[found]
                found.close()


def _answer(connection: socket.socket, data: bytes) -> bytes:
    """Answer whole requests; return what is left."""
    whole = len(data) // FRAME * FRAME
    out = []
    for at in range(0, whole, FRAME):
        size = int.from_bytes(data[at + 14 : at + 18], "big")
        out.append(struct.pack(">i", 4 + size) + data[at + 8 : at + 12] + _BODIES[size])
    connection.sendall(b"".join(out))
    return data[whole:]
