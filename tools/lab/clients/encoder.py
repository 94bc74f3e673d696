"""Our own encoder against a real broker: every version that both have of what a client does from hello to goodbye.

`python -m tools.lab.clients.encoder SERVERS`. Each answer is decoded and must be without an error.
"""

import socket
import sys
import time
from collections.abc import Iterator
from typing import Any

import dissector
from dissector.protocol.codec.structs import structs
from dissector.protocol.embedded.values import records_with_decoded
from dissector.protocol.records.compression import CODECS
from dissector.protocol.schema.error_codes import ErrorCode
from dissector.protocol.schema.loader import api_named

Values = dict[str, Any]
TOPIC, GROUP = "encoded", "encoded-billing"
VALUE, COUNT = b"saucer " * 6, 3
FIRST_WITH_BATCHES, FIRST_WITH_IDS = 3, 13
ZSTD, FIRST_WITH_ZSTD = 4, 7


class Broker:
    """One connection; `ask` encodes, sends, receives, decodes."""

    def __init__(self, servers: str) -> None:
        host, port = servers.split(":")
        self._socket = socket.create_connection((host, int(port)), 10)
        self._asked = 0
        self.offered: dict[int, range] = {}
        answer = self.ask("ApiVersions", 4, {"client_software_name": "kdissect", "client_software_version": "1.0"})
        for each in answer["api_keys"]:
            self.offered[each["api_key"]] = range(each["min_version"], each["max_version"] + 1)

    def versions(self, name: str, first: int = 0) -> list[int]:
        """The versions that the broker and we have."""
        api = api_named(name)
        assert api is not None
        return [version for version in self.offered[api.key] if version in api.versions and version >= first]

    def ask(self, name: str, version: int, body: Values, allowed: int = 0) -> Values:
        """The answer's body; an error in it ends the program."""
        api = api_named(name)
        assert api is not None
        self._asked += 1
        self._socket.sendall(
            dissector.encode_request(name, version, body, correlation_id=self._asked, client_id="encoder")
        )
        answer = dissector.decode_response(self._frame(), api_key=api.key, api_version=version)
        assert answer.header["correlation_id"] == self._asked
        errors = {each["error_code"] for each in structs(answer.body) if each.get("error_code")} - {allowed}
        assert not errors, f"{name} v{version}: {errors}"
        assert not [finding for finding in answer.findings if finding.severity == "error"], answer.findings
        return answer.body

    def _frame(self) -> bytes:
        prefix = self._exactly(4)
        return prefix + self._exactly(int.from_bytes(prefix, "big"))

    def _exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            piece = self._socket.recv(size - len(data))
            assert piece, "the broker closed the connection"
            data += piece
        return data


def batch(codec: int, count: int = COUNT) -> Values:
    records = [{"offset": n, "timestamp": 1_795_000_000_000 + n, "key": b"customer-%d" % n, "value": VALUE,
                "headers": [{"key": "n", "value": bytes([n])}]} for n in range(count)]  # fmt: skip
    return {"batches": [{"attributes": codec, "records": records}]}


def produced(broker: Broker, topic_id: str) -> Iterator[int]:
    """Every version, every codec; the codec of each batch, in the order of its offsets."""
    for version in broker.versions("Produce", FIRST_WITH_BATCHES):
        for codec in CODECS:
            if codec == ZSTD and version < FIRST_WITH_ZSTD:
                continue
            topic = {"topic_id": topic_id} if version >= FIRST_WITH_IDS else {"name": TOPIC}
            data = {"topic_data": [topic | {"partition_data": [{"index": 0, "records": batch(codec)}]}]}
            broker.ask("Produce", version, {"acks": -1, "timeout_ms": 5000} | data)
            yield codec


def fetch_all(broker: Broker, topic_id: str, codecs: list[int]) -> None:
    """Every version of Fetch gives back what was produced."""
    for version in broker.versions("Fetch", 4):
        topic = {"topic_id": topic_id} if version >= FIRST_WITH_IDS else {"topic": TOPIC}
        partition = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1 << 20}
        body = {"max_wait_ms": 100, "min_bytes": 1, "topics": [topic | {"partitions": [partition]}]}
        [found] = broker.ask("Fetch", version, body)["responses"]
        batches = records_with_decoded(found["partitions"][0]["records"], None)["batches"]
        assert [each["attributes"] & 7 for each in batches] == codecs
        assert {len(each["records"]) for each in batches} == {COUNT}
        assert {record["value"] for each in batches for record in each["records"]} == {VALUE}


def find_coordinator(broker: Broker, version: int) -> None:
    """Until it is there: the first to ask for one has the offsets topic made."""
    body = {"coordinator_keys": [GROUP]} if version >= 4 else {"key": GROUP}
    while True:
        answer = broker.ask("FindCoordinator", version, body, allowed=ErrorCode.COORDINATOR_NOT_AVAILABLE)
        if not any(each.get("error_code") for each in structs(answer)):
            return
        time.sleep(0.2)


def join(broker: Broker, version: int, metadata: bytes) -> Values:
    """A member of the group; newer versions first get the member id that they must use."""
    body = {"group_id": GROUP, "session_timeout_ms": 10_000, "rebalance_timeout_ms": 10_000, "member_id": "",
            "protocol_type": "consumer", "protocols": [{"name": "range", "metadata": metadata}]}  # fmt: skip
    if version == 0:
        del body["rebalance_timeout_ms"]
    answer = broker.ask("JoinGroup", version, body, allowed=ErrorCode.MEMBER_ID_REQUIRED)
    if answer["error_code"] == ErrorCode.MEMBER_ID_REQUIRED:
        answer = broker.ask("JoinGroup", version, body | {"member_id": answer["member_id"]})
    return answer


def group_life(broker: Broker, version: int) -> None:
    """Join, sync, beat, commit, ask, leave, in the n-th oldest versions that there are of each."""

    def at(name: str) -> int:
        versions = broker.versions(name)
        return versions[min(version, len(versions) - 1)]

    joined = join(broker, at("JoinGroup"), bytes.fromhex("0000 00000001 0007") + b"encoded" + b"\xff" * 4)
    member = {"group_id": GROUP, "member_id": joined["member_id"]}
    generation = {"generation_id": joined["generation_id"]}
    sync = member | generation | {"assignments": [{"member_id": joined["member_id"], "assignment": b"\x00\x00"}]}
    if at("SyncGroup") >= 5:
        sync |= {"protocol_type": "consumer", "protocol_name": "range"}
    broker.ask("SyncGroup", at("SyncGroup"), sync)
    broker.ask("Heartbeat", at("Heartbeat"), member | generation)
    commit_at = min(at("OffsetCommit"), 9)  # newer ones name topics by id
    partition = {"partition_index": 0, "committed_offset": 7}
    commit = member | {"topics": [{"name": TOPIC, "partitions": [partition]}]}
    commit["generation_id_or_member_epoch"] = joined["generation_id"]
    broker.ask("OffsetCommit", commit_at, commit)
    fetch_at = min(at("OffsetFetch"), 9)
    group = {"group_id": GROUP, "topics": [{"name": TOPIC, "partition_indexes": [0]}]}
    found = broker.ask("OffsetFetch", fetch_at, {"groups": [group]} if fetch_at >= 8 else group)
    assert 7 in {each.get("committed_offset") for each in structs(found)}
    leave_at = at("LeaveGroup")
    broker.ask("LeaveGroup", leave_at, {"group_id": GROUP, "members": [{"member_id": joined["member_id"]}]}
               if leave_at >= 3 else member)  # fmt: skip


def life(servers: str) -> None:
    broker = Broker(servers)
    topic = {"name": TOPIC, "num_partitions": 1, "replication_factor": 1}
    broker.ask("CreateTopics", broker.versions("CreateTopics")[-1], {"topics": [topic], "timeout_ms": 5000})
    for version in broker.versions("Metadata"):
        found = broker.ask("Metadata", version, {"topics": [{"name": TOPIC}]})
    topic_id = found["topics"][0]["topic_id"]
    fetch_all(broker, topic_id, list(produced(broker, topic_id)))
    for version in broker.versions("FindCoordinator"):
        find_coordinator(broker, version)
    for version in range(len(broker.versions("JoinGroup"))):
        group_life(broker, version)
    for version in broker.versions("DeleteTopics")[-1:]:
        broker.ask("DeleteTopics", version, {"topics": [{"name": TOPIC}], "timeout_ms": 5000})


if __name__ == "__main__":
    life(sys.argv[1])
