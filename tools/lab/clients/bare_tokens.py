"""SaslHandshake v0 over a plain socket: what follows are tokens without headers, each behind its size, until logged in.

At the end a mechanism that the broker has not.

RFC 4616 has PLAIN; RFC 5802 and 7677 have SCRAM-SHA-256.
"""

import base64
import hashlib
import hmac
import os
import socket
import struct
import sys

from plain_socket import request, response

from dissector.protocol.schema.api_keys import ApiKey

USER, PASSWORD = b"alice", b"alice-secret"


def handshake(connection: socket.socket, mechanism: bytes) -> None:
    """Name the mechanism; from here on nothing has a header until the login is done."""
    connection.sendall(request(ApiKey.SASL_HANDSHAKE, 0, 1, struct.pack(">h", len(mechanism)) + mechanism))
    error = struct.unpack(">ih", response(connection)[:6])[1]
    assert not error, f"SaslHandshake: error {error}"


def exchange(connection: socket.socket, token: bytes) -> bytes:
    """The broker's token to ours."""
    connection.sendall(struct.pack(">i", len(token)) + token)
    return response(connection)


def plain(connection: socket.socket, password: bytes) -> None:
    handshake(connection, b"PLAIN")
    exchange(connection, b"\0".join((b"", USER, password)))


def scram(connection: socket.socket) -> None:
    handshake(connection, b"SCRAM-SHA-256")
    bare = b"n=" + USER + b",r=" + base64.b64encode(os.urandom(18))
    first = exchange(connection, b"n,," + bare)
    fields = dict(part.split(b"=", 1) for part in first.split(b","))
    salted = hashlib.pbkdf2_hmac("sha256", PASSWORD, base64.b64decode(fields[b"s"]), int(fields[b"i"]))
    final = b"c=biws,r=" + fields[b"r"]
    client_key = hmac.digest(salted, b"Client Key", "sha256")
    signature = hmac.digest(hashlib.sha256(client_key).digest(), b",".join((bare, first, final)), "sha256")
    proof = bytes(one ^ other for one, other in zip(client_key, signature, strict=True))
    assert exchange(connection, final + b",p=" + base64.b64encode(proof)).startswith(b"v=")


def work(connection: socket.socket) -> None:
    """Ordinary requests, so that it shows where tokens end."""
    for correlation_id, key, version, body in (
        (2, ApiKey.API_VERSIONS, 0, b""),
        (3, ApiKey.METADATA, 1, struct.pack(">i", -1)),
        (4, ApiKey.METADATA, 4, struct.pack(">i", 0) + b"\0"),
    ):
        connection.sendall(request(key, version, correlation_id, body))
        response(connection)


def bare(servers: str) -> None:
    host, port = servers.split(":")
    for login in (lambda connection: plain(connection, PASSWORD), scram):
        with socket.create_connection((host, int(port)), 10) as connection:
            connection.sendall(request(ApiKey.API_VERSIONS, 0, 0))
            response(connection)
            login(connection)
            work(connection)
    with socket.create_connection((host, int(port)), 10) as connection:
        try:
            plain(connection, b"not-her-secret")
        except EOFError as closed:  # before v1 of the handshake there was no way to say why
            print(f"refused, as it should be: {closed}")
        else:
            sys.exit("a wrong password was taken")
    with socket.create_connection((host, int(port)), 10) as connection:
        connection.sendall(request(ApiKey.SASL_HANDSHAKE, 1, 5, struct.pack(">h", 9) + b"CRAM-SHA1"))
        assert response(connection)[4:6] == b"\0\x21"  # UNSUPPORTED_SASL_MECHANISM


if __name__ == "__main__":
    globals()[sys.argv[2]](sys.argv[1])
