"""Message sets as they were before record batches, made by hand: magic 0 and 1 in each codec, and fetched as either.

The broker stores record batches of magic 2 and converts for the version that asks. With magic 0 an lz4 frame bears the
checksum of the first Kafka that had lz4: it covers the frame's magic number too, which it should not.
"""

import gzip
import socket
import struct
import sys
import time
import zlib
from collections.abc import Callable

import cramjam
import lz4.frame
from plain_socket import request, response

from dissector.protocol.schema.api_keys import ApiKey

TOPIC = b"plain-message-sets"
LZ4_HEAD, OLD_LZ4_HEAD = bytes.fromhex("04224d18604082"), bytes.fromhex("04224d1860401a")
RECORDS = [(b"customer-1", b"teapot " * 8), (None, b"cup"), (b"customer-2", None), (b"", b"saucer " * 20)]


def framed(data: bytes) -> bytes:
    """lz4 with independent blocks of 64 KiB and no size, as Kafka writes it."""
    return bytes(lz4.frame.compress(data, block_linked=False, block_size=lz4.frame.BLOCKSIZE_MAX64KB, store_size=False))


def xerial(data: bytes) -> bytes:
    """snappy-java's own framing: a head, then blocks with their sizes."""
    half = len(data) // 2
    blocks = [bytes(cramjam.snappy.compress_raw(part)) for part in (data[:half], data[half:])]
    return b"\x82SNAPPY\0" + struct.pack(">ii", 1, 1) + b"".join(struct.pack(">i", len(b)) + b for b in blocks)


CODECS: dict[int, Callable[[bytes], bytes]] = {1: gzip.compress, 2: xerial, 3: framed}


def message(magic: int, attributes: int, key: bytes | None, value: bytes | None) -> bytes:
    time_ms = struct.pack(">q", time.time_ns() // 1_000_000) if magic else b""
    body = struct.pack(">bb", magic, attributes) + time_ms
    for part in (key, value):
        body += struct.pack(">i", -1 if part is None else len(part)) + (part or b"")
    return struct.pack(">I", zlib.crc32(body)) + body


def entries(messages: list[bytes]) -> bytes:
    return b"".join(struct.pack(">qi", offset, len(one)) + one for offset, one in enumerate(messages))


def message_set(magic: int, codec: int) -> bytes:
    """Plain messages, or one that wraps them compressed."""
    inner = entries([message(magic, 0, key, value) for key, value in RECORDS])
    if not codec:
        return inner
    packed = CODECS[codec](inner)
    if codec == 3 and not magic:
        packed = packed.replace(LZ4_HEAD, OLD_LZ4_HEAD, 1)
    return entries([message(magic, codec, None, packed)])


def string(text: bytes) -> bytes:
    return struct.pack(">h", len(text)) + text


def produced(version: int, number: int, records: bytes, acks: int = 1) -> bytes:
    partition = struct.pack(">iii", 1, 0, len(records)) + records
    return request(ApiKey.PRODUCE, version, number, struct.pack(">hii", acks, 5000, 1) + string(TOPIC) + partition)


def fetch(version: int, number: int, offset: int, partition_bytes: int) -> bytes:
    limit = struct.pack(">i", 1_000_000) if version >= 3 else b""
    head = struct.pack(">iii", -1, 100, 1) + limit + struct.pack(">i", 1) + string(TOPIC)
    return request(ApiKey.FETCH, version, number, head + struct.pack(">iiqi", 1, 0, offset, partition_bytes))


def everything(servers: str) -> None:
    host, port = servers.split(":")
    with socket.create_connection((host, int(port)), 10) as connection:

        def ask(frame: bytes) -> bytes:
            connection.sendall(frame)
            return response(connection)

        for number in range(50):  # until the topic that Metadata brought into being has a leader
            answer = ask(request(ApiKey.METADATA, 0, number, struct.pack(">i", 1) + string(TOPIC)))
            if answer.endswith(struct.pack(">iiii", 1, 1, 1, 1)):
                break
            time.sleep(0.2)
        for magic, versions in ((0, (0, 1)), (1, (2,))):
            for version in versions:
                for codec in range(4):
                    number = 100 + 10 * version + codec
                    answer = ask(produced(version, number, message_set(magic, codec)))
                    error = struct.unpack_from(">h", answer, 4 + 4 + 2 + len(TOPIC) + 4 + 4)[0]
                    assert not error, f"magic {magic}, codec {codec}: error {error}"
        connection.sendall(produced(2, 150, message_set(1, 0), acks=0))
        for version in range(4):
            for n, (offset, size) in enumerate(((0, 1_000_000), (2, 500), (6, 100), (10_000, 500))):
                ask(fetch(version, 200 + 10 * version + n, offset, size))


if __name__ == "__main__":
    globals()[sys.argv[2]](sys.argv[1])
