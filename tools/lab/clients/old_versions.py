"""Requests in versions that Kafka 4 no longer has and that no client at hand sends, over a plain socket."""

import socket
import struct
import sys

from plain_socket import request, response

TOPIC, GROUP = b"plain-old-versions", b"plain-old-group"


def string(text: bytes) -> bytes:
    return struct.pack(">h", len(text)) + text


def array(*items: bytes) -> bytes:
    return struct.pack(">i", len(items)) + b"".join(items)


def data(content: bytes) -> bytes:
    return struct.pack(">i", len(content)) + content


NONE = struct.pack(">i", -1)
PARTITIONS = array(string(TOPIC) + array(struct.pack(">i", 0)))
CREATED = array(string(TOPIC) + struct.pack(">ih", 1, 1) + array() + array(string(b"retention.ms") + string(b"60000")))
ASSIGNED = array(string(b"plain-assigned") + struct.pack(">ih", -1, -1) + array(struct.pack(">iii", 0, 1, 1)) + array())
COMMITTED = array(string(TOPIC) + array(struct.pack(">iq", 0, 3) + string(b"as the first could")))
MARKERS = array(
    struct.pack(">qhb", 4242, 0, 1) + array(string(TOPIC) + array(struct.pack(">i", 0))) + struct.pack(">i", 0)
)
REQUESTS = (
    (19, 0, CREATED + struct.pack(">i", 5000)),  # CreateTopics
    (19, 1, ASSIGNED + struct.pack(">ib", 5000, 0)),
    (19, 1, CREATED + struct.pack(">ib", 5000, 1)),  # is there already; validated only
    (2, 0, struct.pack(">i", -1) + array(string(TOPIC) + array(struct.pack(">iqi", 0, -1, 5)))),  # ListOffsets
    (8, 0, string(GROUP) + COMMITTED),  # OffsetCommit: was kept in ZooKeeper
    (8, 1, string(GROUP) + struct.pack(">i", -1) + string(b"")
           + array(string(TOPIC) + array(struct.pack(">iqq", 0, 3, -1) + string(b"with a time")))),
    (9, 0, string(GROUP) + PARTITIONS),  # OffsetFetch: likewise
    (23, 0, array(string(TOPIC) + array(struct.pack(">ii", 0, 0)))),  # OffsetForLeaderEpoch
    (23, 1, array(string(TOPIC) + array(struct.pack(">ii", 0, 0)))),
    (27, 0, MARKERS),  # WriteTxnMarkers
    (34, 0, array(string(b"/not/there") + PARTITIONS)),  # AlterReplicaLogDirs
    (35, 0, PARTITIONS),  # DescribeLogDirs
    (35, 0, NONE),
    (38, 0, array(string(b"User") + string(b"bob")) + struct.pack(">q", 1000)),  # a token: not without a login
    (39, 0, data(b"no such token") + struct.pack(">q", 1000)),
    (40, 0, data(b"no such token") + struct.pack(">q", -1)),
    (41, 0, NONE),
    (20, 0, array(string(TOPIC), string(b"plain-assigned"), string(b"not-there")) + struct.pack(">i", 5000)),
)  # fmt: skip


def everything(servers: str) -> None:
    host, port = servers.split(":")
    with socket.create_connection((host, int(port)), 10) as connection:
        for number, (key, version, body) in enumerate(REQUESTS):
            connection.sendall(request(key, version, number, body))
            response(connection)


if __name__ == "__main__":
    globals()[sys.argv[2]](sys.argv[1])
