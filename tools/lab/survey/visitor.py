"""A member that joins a client's classic group and leaves again, at a listener that is not recorded.

What is recorded is the client, rebalancing twice.
"""

import time

from tools.lab.clients.encoder import Broker, Values
from tools.lab.survey.clusters import ADMIN

WAIT_SECONDS, STAY_SECONDS = 60, 1
JOIN, SYNC, LEAVE = 7, 3, 3
"""Versions that brokers of Kafka 3 and 4 have."""
MEMBER_ID_REQUIRED = 79


def visit(topic: str, group: str) -> None:
    """Join as soon as the group is stable, with the assignor that it chose; leave soon after."""
    broker = Broker(ADMIN)
    assignor = _stable(broker, group)
    metadata = bytes.fromhex("0000 00000001") + len(topic).to_bytes(2, "big") + topic.encode() + b"\xff" * 4
    joining = {"group_id": group, "session_timeout_ms": 10_000, "rebalance_timeout_ms": 10_000, "member_id": "",
               "protocol_type": "consumer", "protocols": [{"name": assignor, "metadata": metadata}]}  # fmt: skip
    named = broker.ask("JoinGroup", JOIN, joining, allowed=MEMBER_ID_REQUIRED)
    joined = broker.ask("JoinGroup", JOIN, joining | {"member_id": named["member_id"]})
    member = {"group_id": group, "member_id": joined["member_id"]}
    broker.ask("SyncGroup", SYNC, member | {"generation_id": joined["generation_id"]})
    time.sleep(STAY_SECONDS)
    broker.ask("LeaveGroup", LEAVE, {"group_id": group, "members": [{"member_id": joined["member_id"]}]})


def _stable(broker: Broker, group: str) -> str:
    """Wait until the group has shared its partitions out; the assignor that did."""
    deadline = time.monotonic() + WAIT_SECONDS
    while time.monotonic() < deadline:
        [found] = _described(broker, group)
        if found["group_state"] == "Stable":
            return str(found["protocol_data"])
        time.sleep(0.1)
    raise TimeoutError(f"group {group} is not stable")


def _described(broker: Broker, group: str) -> list[Values]:
    groups: list[Values] = broker.ask("DescribeGroups", 5, {"groups": [group]})["groups"]
    return groups
