"""Puts what a client has into a response that was recorded with another one: member ids, epochs, producer ids.

A client believes in its own member id and producer id, and a group's leader assigns partitions by what the response to
JoinGroup says of itself.
"""

from collections.abc import Callable
from typing import Any, Final

from dissector.protocol.message import Values
from dissector.protocol.schema.api_keys import ApiKey
from dissector.recorded_server.exchanges import RecordedExchange


def with_own_values(recorded: RecordedExchange, asked: Values, body: Values) -> Values:
    """Return the body of a response as the client needs it."""
    change = _CHANGES.get(recorded.key)
    return body if change is None else change(recorded, asked, body)


def _join_group(recorded: RecordedExchange, asked: Values, body: Values) -> Values:
    found = dict(body)
    theirs, ours = body.get("member_id"), asked.get("member_id") or body.get("member_id")
    metadata = {each["name"]: each["metadata"] for each in asked.get("protocols") or ()}
    protocol = body.get("protocol_name")
    if protocol and metadata and protocol not in metadata:
        protocol = found["protocol_name"] = next(iter(metadata))
    found["member_id"] = ours
    found["leader"] = ours if body.get("leader") == theirs else body.get("leader")
    found["members"] = [
        {**each, "member_id": ours, "metadata": metadata.get(str(protocol), each.get("metadata"))}
        if each.get("member_id") == theirs
        else each
        for each in body.get("members") or ()
    ]
    return found


def _sync_group(recorded: RecordedExchange, asked: Values, body: Values) -> Values:
    """A leader gets what it has assigned to itself."""
    own = (each["assignment"] for each in asked.get("assignments") or () if each["member_id"] == asked["member_id"])
    found = {**body, "assignment": next(own, body.get("assignment"))}
    return found | {name: asked[name] for name in ("protocol_type", "protocol_name") if name in body and name in asked}


def _group_heartbeat(recorded: RecordedExchange, asked: Values, body: Values) -> Values:
    own = asked.get("member_id")
    return {**body, "member_id": own} if own and "member_id" in body else body


def _producer(recorded: RecordedExchange, asked: Values, body: Values) -> Values:
    """The epoch goes on from the client's as it went on from the recorded one."""
    own, epoch = asked.get("producer_id", -1), asked.get("producer_epoch", -1)
    if own < 0 or body.get("error_code") or "producer_id" not in body:
        return body
    step = 1
    if recorded.asked.get("producer_id", -1) >= 0 and "producer_epoch" in recorded.answered:
        step = max(0, recorded.answered["producer_epoch"] - recorded.asked["producer_epoch"])
    return {**body, "producer_id": own, "producer_epoch": min(epoch + step, 0x7FFF)}


_CHANGES: Final[dict[int, Callable[[RecordedExchange, Values, Values], Values]]] = {
    ApiKey.JOIN_GROUP: _join_group,
    ApiKey.SYNC_GROUP: _sync_group,
    ApiKey.CONSUMER_GROUP_HEARTBEAT: _group_heartbeat,
    ApiKey.SHARE_GROUP_HEARTBEAT: _group_heartbeat,
    ApiKey.STREAMS_GROUP_HEARTBEAT: _group_heartbeat,
    ApiKey.INIT_PRODUCER_ID: _producer,
    ApiKey.END_TXN: _producer,
}


def metadata_of_all(exchanges: list[RecordedExchange]) -> list[dict[str, Any]]:
    """Return all topics that Metadata told of, each as it was told last, without an error if it ever was."""
    found: dict[str, dict[str, Any]] = {}
    for each in exchanges:
        for topic in each.answered.get("topics") or ():
            name = topic.get("name") or topic.get("topic_id")
            if name is not None and (name not in found or not topic["error_code"]):
                found[name] = topic
    return list(found.values())
