"""Frames of one request and its response, for tests that need no more: no library is imported for them."""

import struct


def request(
    correlation_id: int, *, api_key: int = 3, version: int = 0, client_id: bytes = b"tests", body: bytes = bytes(4)
) -> bytes:
    """A request frame; by default Metadata v0 for all topics."""
    head = struct.pack(">hhih", api_key, version, correlation_id, len(client_id)) + client_id
    return struct.pack(">i", len(head) + len(body)) + head + body


def response(correlation_id: int, body: bytes = bytes(8)) -> bytes:
    """A response frame; by default Metadata v0 without brokers and topics."""
    return struct.pack(">ii", 4 + len(body), correlation_id) + body
