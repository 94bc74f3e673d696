"""Schemas of formats that Apache has in Java code and not in its schema files, written by hand.

* StickyAssignorUserData: org.apache.kafka.clients.consumer.StickyAssignor (version 1 added the generation);
* CooperativeStickyAssignorUserData: org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
* ConnectProtocol…: org.apache.kafka.connect.runtime.distributed.ConnectProtocol (version 0) and
  IncrementalCooperativeConnectProtocol (1; 2 is laid out as 1 is);
* SubscriptionInfoData: kafka-streams, `common/message/SubscriptionInfoData.json`.
"""

from functools import cache
from typing import Any, Final

from dissector.protocol.schema.model import MessageSchema
from dissector.protocol.schema.table import message_of

Table = dict[str, Any]


def _table(name: str, versions: str, fields: list[Table]) -> Table:
    return {"type": "data", "name": name, "validVersions": versions, "flexibleVersions": "none", "fields": fields}


def _field(name: str, kind: str, versions: str = "0+", *fields: Table, nullable: str = "none") -> Table:
    table: Table = {"name": name, "type": kind, "versions": versions}
    if nullable != "none":
        table["nullableVersions"] = nullable
    return table | ({"fields": list(fields)} if fields else {})


_TASKS: Final = (_field("Connector", "string"), _field("Tasks", "[]int32"))
_PARTITION_SUMS: Final = (_field("Partition", "int32", "7-9"), _field("OffsetSum", "int64", "7-9"))

_TABLES: Final = (
    _table("StickyAssignorUserData", "0-1", [
        _field("PreviousAssignment", "[]TopicAssignment", "0+", _field("Topic", "string"),
               _field("Partitions", "[]int32")),
        _field("Generation", "int32", "1+"),
    ]),
    _table("CooperativeStickyAssignorUserData", "0", [_field("Generation", "int32")]),
    _table("ConnectProtocolMetadata", "0-2", [
        _field("Url", "string"), _field("ConfigOffset", "int64"), _field("Allocation", "bytes", "1+", nullable="1+"),
    ]),
    _table("ConnectProtocolAssignment", "0-2", [
        _field("Error", "int16"), _field("Leader", "string"), _field("LeaderUrl", "string"),
        _field("ConfigOffset", "int64"), _field("Assignment", "[]ConnectorAssignment", "0+", *_TASKS, nullable="1+"),
        _field("Revoked", "[]ConnectorRevocation", "1+", *_TASKS, nullable="1+"), _field("Delay", "int32", "1+"),
    ]),
    _table("SubscriptionInfoData", "1-11", [
        _field("Version", "int32", "1+"), _field("LatestSupportedVersion", "int32", "3+"),
        _field("ProcessId", "uuid", "1+"),
        _field("PrevTasks", "[]PrevTask", "1-6", _field("TopicGroupId", "int32"), _field("Partition", "int32")),
        _field("StandbyTasks", "[]StandbyTask", "1-6", _field("TopicGroupId", "int32"), _field("Partition", "int32")),
        _field("UserEndPoint", "bytes", "2+"),
        _field("TaskOffsetSums", "[]TaskOffsetSum", "7+", _field("TopicGroupId", "int32"),
               _field("Partition", "int32", "10+"), _field("OffsetSum", "int64", "10+"),
               _field("NamedTopology", "string", "10+", nullable="10+"),
               _field("PartitionToOffsetSum", "[]PartitionToOffsetSum", "7-9", *_PARTITION_SUMS)),
        _field("UniqueField", "int8", "8+"), _field("ErrorCode", "int32", "9+"),
        _field("ClientTags", "[]ClientTag", "11+", _field("Key", "bytes"), _field("Value", "bytes")),
    ]),
)  # fmt: skip


@cache
def extra_schemas() -> dict[str, MessageSchema]:
    """Return the schemas by name."""
    return {table["name"]: message_of(table, f"extra schema {table['name']}") for table in _TABLES}
