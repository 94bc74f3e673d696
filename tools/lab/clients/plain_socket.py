"""Requests that no library sends, over a plain socket: versions that the broker lacks, many requests in one segment.

A broker closes the connection on most of what it cannot read; ApiVersions alone is answered, with error 35.
"""

import socket
import struct
import sys

from dissector.protocol.schema.api_keys import ApiKey

CLIENT_ID = b"plain-socket"


def request(api_key: int, version: int, correlation_id: int, body: bytes = b"", *, flexible: bool = False) -> bytes:
    """A frame with a header of version 1, or 2 if flexible."""
    head = struct.pack(">hhih", api_key, version, correlation_id, len(CLIENT_ID)) + CLIENT_ID
    frame = head + (b"\x00" if flexible else b"") + body
    return struct.pack(">i", len(frame)) + frame


def response(connection: socket.socket) -> bytes:
    """The next frame without its size."""
    size = struct.unpack(">i", _exactly(connection, 4))[0]
    return _exactly(connection, size)


def _exactly(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        piece = connection.recv(size - len(data))
        if not piece:
            raise EOFError(f"closed after {len(data)} of {size} bytes")
        data += piece
    return data


def ask(address: tuple[str, int], *requests: bytes) -> None:
    """All requests in one write, then one response each."""
    with socket.create_connection(address, 10) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.sendall(b"".join(requests))
        for _ in requests:
            response(connection)


def dripped(address: tuple[str, int], frame: bytes) -> None:
    """One request a few bytes at a time."""
    with socket.create_connection(address, 10) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for start in range(0, len(frame), 3):
            connection.sendall(frame[start : start + 3])
        response(connection)


def odd(servers: str) -> None:
    host, port = servers.split(":")
    address = (host, int(port))
    names = b"".join(struct.pack(">b", len(word) + 1) + word for word in (b"plain", b"1.0"))
    with socket.create_connection(address, 10) as connection:
        connection.sendall(request(ApiKey.API_VERSIONS, 99, 1, names + b"\x00", flexible=True))
        response(connection)
        connection.sendall(request(ApiKey.API_VERSIONS, 3, 2, names + b"\x00", flexible=True))
        response(connection)
    for version in (0, 1, 2):
        ask(address, request(ApiKey.API_VERSIONS, version, 10 + version))
    every_topic = {
        0: struct.pack(">i", 0),
        1: struct.pack(">i", -1),
        3: struct.pack(">i", -1),
        4: b"\xff\xff\xff\xff\x01",
    }
    ask(address, *(request(ApiKey.METADATA, version, 20 + version, body) for version, body in every_topic.items()))
    ask(address, *(request(ApiKey.LIST_GROUPS, version, 30 + version) for version in (0, 1, 2)))
    group = struct.pack(">h", 5) + b"plain"
    ask(
        address,
        request(ApiKey.FIND_COORDINATOR, 0, 40, group),
        request(ApiKey.FIND_COORDINATOR, 1, 41, group + b"\x00"),
    )
    ask(address, *(request(ApiKey.API_VERSIONS, number % 3, 100 + number) for number in range(40)))
    dripped(address, request(ApiKey.METADATA, 1, -7, struct.pack(">i", -1)))


if __name__ == "__main__":
    globals()[sys.argv[2]](sys.argv[1])
