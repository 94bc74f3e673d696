"""Requests in versions that Kafka 4 no longer has and that no client at hand sends, over a plain socket."""

import socket
import struct
import sys

from plain_socket import request, response

from dissector.protocol.schema.api_keys import ApiKey

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
    (ApiKey.CREATE_TOPICS, 0, CREATED + struct.pack(">i", 5000)),
    (ApiKey.CREATE_TOPICS, 1, ASSIGNED + struct.pack(">ib", 5000, 0)),
    (ApiKey.CREATE_TOPICS, 1, CREATED + struct.pack(">ib", 5000, 1)),  # is there already; validated only
    (ApiKey.LIST_OFFSETS, 0, struct.pack(">i", -1) + array(string(TOPIC) + array(struct.pack(">iqi", 0, -1, 5)))),
    (ApiKey.OFFSET_COMMIT, 0, string(GROUP) + COMMITTED),  # was kept in ZooKeeper
    (ApiKey.OFFSET_COMMIT, 1, string(GROUP) + struct.pack(">i", -1) + string(b"")
           + array(string(TOPIC) + array(struct.pack(">iqq", 0, 3, -1) + string(b"with a time")))),
    (ApiKey.OFFSET_FETCH, 0, string(GROUP) + PARTITIONS),  # likewise
    (ApiKey.OFFSET_FOR_LEADER_EPOCH, 0, array(string(TOPIC) + array(struct.pack(">ii", 0, 0)))),
    (ApiKey.OFFSET_FOR_LEADER_EPOCH, 1, array(string(TOPIC) + array(struct.pack(">ii", 0, 0)))),
    (ApiKey.WRITE_TXN_MARKERS, 0, MARKERS),
    (ApiKey.ALTER_REPLICA_LOG_DIRS, 0, array(string(b"/not/there") + PARTITIONS)),
    (ApiKey.DESCRIBE_LOG_DIRS, 0, PARTITIONS),
    (ApiKey.DESCRIBE_LOG_DIRS, 0, NONE),
    # No token without a login.
    (ApiKey.CREATE_DELEGATION_TOKEN, 0, array(string(b"User") + string(b"bob")) + struct.pack(">q", 1000)),
    (ApiKey.RENEW_DELEGATION_TOKEN, 0, data(b"no such token") + struct.pack(">q", 1000)),
    (ApiKey.EXPIRE_DELEGATION_TOKEN, 0, data(b"no such token") + struct.pack(">q", -1)),
    (ApiKey.DESCRIBE_DELEGATION_TOKEN, 0, NONE),
    (ApiKey.DELETE_TOPICS, 0,
     array(string(TOPIC), string(b"plain-assigned"), string(b"not-there")) + struct.pack(">i", 5000)),
)  # fmt: skip


def everything(servers: str) -> None:
    host, port = servers.split(":")
    with socket.create_connection((host, int(port)), 10) as connection:
        for number, (key, version, body) in enumerate(REQUESTS):
            connection.sendall(request(key, version, number, body))
            response(connection)


if __name__ == "__main__":
    globals()[sys.argv[2]](sys.argv[1])
