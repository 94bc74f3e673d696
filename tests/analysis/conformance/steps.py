"""Exchanges of which conversations are made that keep a rule or break it."""

from typing import Any

from dissector import encode_request
from tests.analysis.conformance.making import Step

UUID = "nQgLpjoiTSKoANCOJ4AlKQ"


def batch(**changed: Any) -> dict[str, Any]:
    """A batch of two records as JSON has it."""
    records = [
        {"attributes": 0, "timestamp": 1_000, "offset": n, "key": None, "value": "76", "headers": []} for n in range(2)
    ]
    return {"base_offset": 0, "magic": 2, "attributes": 0, "last_offset_delta": 1, "records": records} | changed


def produce(*batches: dict[str, Any], version: int = 9, error: int = 0, index: int = 0, **more: Any) -> Step:
    body = {key: more.pop(key) for key in ("acks", "transactional_id") if key in more}
    partition = {"index": index, "records": {"batches": list(batches)}}
    told = more.pop("told", index)
    return Step(
        "Produce", version,
        {"acks": -1, "timeout_ms": 1_000, "topic_data": [{"name": "orders", "partition_data": [partition]}]} | body,
        {"responses": [{"name": "orders", "partition_responses": [{"index": told, "error_code": error}]}]}, **more,
    )  # fmt: skip


def numbered(first: int, epoch: int = 0, **changed: Any) -> dict[str, Any]:
    return batch(producer_id=7, producer_epoch=epoch, base_sequence=first, **changed)


def fetch(request: dict[str, Any] | None = None, response: dict[str, Any] | None = None, offset: int = 0) -> Step:
    partition = {"partition": 0, "fetch_offset": offset, "partition_max_bytes": 100}
    return Step(
        "Fetch", 12,
        {"topics": [{"topic": "orders", "partitions": [partition]}], "session_epoch": -1} | (request or {}),
        {"responses": []} | (response or {}),
    )  # fmt: skip


def fetched(**partition: int) -> dict[str, Any]:
    found = {"partition_index": 0, "high_watermark": 5, "last_stable_offset": 5} | partition
    return {"responses": [{"topic": "orders", "partitions": [found]}]}


def join(member: str = "", error: int = 0, given: str = "m1", generation: int = 1, **more: Any) -> Step:
    protocols = more.pop("protocols", [{"name": "range", "metadata": b"\0\0\0\0\0\0\xff\xff\xff\xff".hex()}])
    return Step(
        "JoinGroup", 5,
        {"group_id": "g", "session_timeout_ms": 9, "rebalance_timeout_ms": 60, "member_id": member,
         "protocol_type": "consumer", "protocols": protocols},
        {"error_code": error, "generation_id": generation, "member_id": given}, **more,
    )  # fmt: skip


def beat(generation: int = 1, member: str = "m1", error: int = 0, **more: Any) -> Step:
    request = {"group_id": "g", "generation_id": generation, "member_id": member}
    return Step("Heartbeat", 3, request, {"error_code": error}, **more)


def consumer_beat(epoch: int, told: int = 1, error: int = 0, **changed: Any) -> Step:
    request = {
        "group_id": "g", "member_id": "m1", "member_epoch": epoch, "rebalance_timeout_ms": 9,
        "subscribed_topic_names": ["orders"], "topic_partitions": [],
    }  # fmt: skip
    response = {"error_code": error, "member_id": "m1", "member_epoch": told}
    return Step("ConsumerGroupHeartbeat", 0, request | changed, response)


def metadata(**partition: Any) -> Step:
    found = {"partition_index": 0, "leader_id": 1, "replica_nodes": [1], "isr_nodes": [1]} | partition
    topic = {"name": "orders", "partitions": [found]}
    broker = {"node_id": 1, "host": "a", "port": 1}
    return Step("Metadata", 9, {"topics": []}, {"brokers": [broker], "topics": [topic]})


def handshake(error: int = 0, version: int = 1) -> Step:
    return Step("SaslHandshake", version, {"mechanism": "PLAIN"}, {"error_code": error, "mechanisms": []})


def login(error: int = 0, lifetime: int = 0) -> Step:
    response = {"error_code": error, "auth_bytes": "", "session_lifetime_ms": lifetime}
    return Step("SaslAuthenticate", 1, {"auth_bytes": ""}, response)


def offers(*ranges: tuple[int, int, int], version: int = 2, error: int = 0) -> Step:
    keys = [{"api_key": key, "min_version": low, "max_version": high} for key, low, high in ranges]
    return Step("ApiVersions", version, {}, {"error_code": error, "api_keys": keys})


def share(epoch: int, acknowledged: bool = False) -> Step:
    batches = [{"first_offset": 0, "last_offset": 1, "acknowledge_types": [1]}] if acknowledged else []
    partition = {"partition_index": 0, "acknowledgement_batches": batches}
    request = {
        "group_id": "g", "member_id": UUID, "share_session_epoch": epoch,
        "topics": [{"topic_id": UUID, "partitions": [partition]}], "forgotten_topics_data": [],
    }  # fmt: skip
    return Step("ShareFetch", 1, request, {"responses": [], "node_endpoints": []})


def assigned(*partitions: tuple[str, int]) -> Step:
    made_of = [
        {"member_id": member, "assignment": (b"\0\0\0\0\0\1\0\1t\0\0\0\1" + n.to_bytes(4, "big") + b"\xff" * 4).hex()}
        for member, n in partitions
    ]
    return Step("SyncGroup", 3, {"group_id": "g", "generation_id": 1, "member_id": "m1", "assignments": made_of})


def commit(offset: int) -> Step:
    partition = {"partition_index": 0, "committed_offset": offset}
    body = {"group_id": "g", "generation_id_or_member_epoch": -1, "member_id": ""}
    return Step("OffsetCommit", 6, body | {"topics": [{"name": "orders", "partitions": [partition]}]}, {"topics": []})


def end(**more: Any) -> Step:
    return Step(
        "EndTxn", 1, {"transactional_id": "t", "producer_id": 7, "producer_epoch": 0, "committed": True}, **more
    )


def add(partition: int) -> Step:
    body = {"v3_and_below_transactional_id": "t", "v3_and_below_producer_id": 7, "v3_and_below_producer_epoch": 0}
    topics = [{"name": "orders", "partitions": [partition]}]
    return Step("AddPartitionsToTxn", 1, body | {"v3_and_below_topics": topics})


def create(name: str) -> Step:
    return Step("CreateTopics", 2, {"topics": [{"name": name, "num_partitions": 1, "replication_factor": 1}]})


def listed(timestamp: int, version: int) -> Step:
    partition = {"partition_index": 0, "timestamp": timestamp}
    return Step("ListOffsets", version, {"topics": [{"name": "orders", "partitions": [partition]}]}, {"topics": []})


def by_id(topic_id: str) -> Step:
    partition = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1}
    topics = [{"topic_id": topic_id, "partitions": [partition]}]
    return Step("Fetch", 13, {"session_epoch": -1, "topics": topics}, {"responses": []})


def software(name: str, version: str) -> Step:
    return Step("ApiVersions", 3, {"client_software_name": name, "client_software_version": version}, {"api_keys": []})


def tagged(data: str) -> dict[str, Any]:
    return {"topics": [], "timeout_ms": 9, "unknown_tagged_fields": [{"tag": 70, "data": data}]}


def created(data: str) -> Step:
    return Step("CreateTopics", 7, tagged(data), {"topics": []})


def forwarded(data: str, *, keeps_tags: bool = True) -> Step:
    """An Envelope with the CreateTopics request of `created`, which is the first of its capture."""
    body = tagged(data) if keeps_tags else {"topics": [], "timeout_ms": 9}
    request = encode_request("CreateTopics", 7, body, correlation_id=1, client_id="maker")[4:]
    return Step("Envelope", 0, {"request_data": request.hex(), "client_host_address": "7f000001"}, {"error_code": 0})
