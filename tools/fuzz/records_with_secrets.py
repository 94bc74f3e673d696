"""Records with secrets, wherever records are: produced, fetched, shared, in a segment; in every codec and old format.

Unlike a login's, secrets of users' records are told by the names beside them. So damage leaves the records as they are,
but may cut them, or what is around them.
"""

import json
import random
import string
from collections.abc import Callable, Sequence
from typing import Any, Final

from dissector.protocol.codec.writer import write
from dissector.protocol.embedded.topics import CLUSTER_METADATA, CLUSTER_METADATA_ID
from dissector.protocol.records.from_json import batch_bytes, message_bytes

TOPIC_ID: Final = "5qmCrfuuTBeQg_yx_5kkAA"
NAMES: Final = (
    "connection.password", "sasl.jaas.config", "aws.secret.access.key", "database.password", "apiKey", "x-api-key",
    "client_secret", "accessToken", "refresh_token", "ssl.key.password", "privateKey", "db_pwd", "basic.auth.user.info",
    "CONNECTION_PASSWORD", "Sasl.Jaas.Config", "aws-secret-access-key", "dbPassword",
)  # fmt: skip
HEADERS: Final = ("authorization", "Authorization", "x-api-key", "cookie", "set-cookie", "proxy-authorization", "pwd",
                  "AUTHORIZATION", "X-API-KEY", "Set-Cookie", "X_Api_Key", "xApiKey")  # fmt: skip
_TOLD_LATE: Final = b"creation-timestamp"
"""What says that a key is a secret stands behind it: it may be cut off."""
Record = dict[str, Any]


def metadata_records(one: str, other: str) -> list[Record]:
    """Records of the metadata log."""
    credential = {"name": "alice", "salt": b"salt", "stored_key": one.encode(), "server_key": other.encode()}
    config = {"resource_type": 4, "resource_name": "1", "name": "ssl.key.password", "value": other}
    messages = ((11, "UserScramCredentialRecord", credential), (4, "ConfigRecord", config))
    return [{"value": bytes([1, key, 0]) + write(name, 0, values)} for key, name, values in messages]


def user_records(one: str, other: str, chance: random.Random) -> list[Record]:
    """Records of users: configs of connectors, events, the key of a session, headers."""
    name = chance.choice(NAMES)
    values: list[Any] = [
        {"properties": {"name": "x", "tasks.max": "1", name: one, "topics": "a"}},
        {"schema": {"type": "struct", "fields": [{"type": "string", "field": name}]}, "payload": {name: one}},
        {"key": one, "algorithm": "HmacSHA256", "creation-timestamp": 1790000000000},
        {"connection.url": f"jdbc:mysql://h/d?user=u&password={one}", "id": 7},
        {"url": f"https://bob:{one}@example.com/x?y=z", "more": f"client_secret={other}&a=b"},
        {"jaas": f'a.b.PlainLoginModule required username="u" password="{one}";'},
        {"configs": [{"name": name, "value": one}, {"value": other, "name": name}]},
        {"event": {"list": [{name: [one, other]}, 1, None]}},
        {"body": json.dumps({"inner": json.dumps({name: one, "ä": "\n"})}, ensure_ascii=chance.random() < 0.5)},
        [{"credentials": {"user": one, "more": {"deep": other}}}],
    ]
    made = json.dumps(chance.choice(values), indent=chance.choice((None, None, 2)))
    record: Record = {"value": chance.choice((b"", b"", b"\x00\x00\x00\x00\x07")) + made.encode(), "key": b"k"}
    if chance.random() < 0.3:
        record = {"value": b"x", "headers": [{"key": chance.choice(HEADERS), "value": f"Bearer {one}".encode()}]}
    if chance.random() < 0.1:
        record = {"key": record["value"], "value": None}
    return [{"value": b"before"}, record, {"value": b'{"id":1}' * chance.choice((1, 40))}]


def records_field(records: Sequence[Record], chance: random.Random) -> bytes:
    """A `records` field with them, in any codec; of an old format if they have no headers."""
    if not any(each.get("headers") for each in records) and chance.random() < 0.2:
        magic, codec = chance.choice((0, 1)), chance.choice((0, 1, 2, 3))
        messages = [{"magic": magic, "key": each.get("key"), "value": each["value"]} for each in records]
        if codec:
            return message_bytes({"magic": magic, "attributes": codec, "messages": messages, "value": None})
        return b"".join(map(message_bytes, messages))
    batch = batch_bytes({"records": list(records), "attributes": chance.choice((0, 0, 0, 1, 2, 3, 4))})
    is_told_late = any(_TOLD_LATE in (each["value"] or b"") + (each.get("key") or b"") for each in records)
    return batch + (batch[: chance.randrange(len(batch))] if chance.random() < 0.2 and not is_told_late else b"")


def letters(chance: random.Random) -> str:
    return "".join(chance.choices(string.ascii_letters + string.digits, k=chance.choice((12, 20, 44))))


def produced(field: bytes, *, of_log: bool, chance: random.Random) -> tuple[int, dict[str, Any], dict[str, Any]]:
    """The version, the request and the response of a Produce."""
    version = chance.choice((3, 9, 12, 13))
    topic = _topic("name", version >= 13, of_log=of_log)
    request = {"topic_data": [topic | {"partition_data": [{"records": field}]}], "acks": 1, "timeout_ms": 1}
    return version, request, {}


def fetched(field: bytes, *, of_log: bool, chance: random.Random) -> tuple[int, dict[str, Any], dict[str, Any]]:
    """Those of a Fetch of a user's topic, whatever its records are."""
    version = chance.choice((4, 12, 13, 17))
    topic = _topic("topic", version >= 13, of_log=of_log)
    asked = {"topics": [topic | {"partitions": [{"partition": 0}]}]}
    return version, asked, {"responses": [topic | {"partitions": [{"records": field}]}]}


def shared(field: bytes, *, of_log: bool, chance: random.Random) -> tuple[int, dict[str, Any], dict[str, Any]]:
    """Those of a ShareFetch."""
    topic = _topic("topic", True, of_log=of_log)
    asked = {"group_id": "g", "member_id": "m", "topics": [topic | {"partitions": [{"partition_index": 0}]}]}
    return 1, asked, {"responses": [topic | {"partitions": [{"records": field}]}]}


def _topic(name: str, by_id: bool, *, of_log: bool) -> dict[str, Any]:
    if by_id:
        return {"topic_id": CLUSTER_METADATA_ID if of_log else TOPIC_ID}
    return {name: CLUSTER_METADATA if of_log else "orders"}


Exchanged = tuple[int, dict[str, Any], dict[str, Any]]
CARRIERS: Final[dict[int, Callable[..., Exchanged]]] = {0: produced, 1: fetched, 78: shared}
"""By API key."""
