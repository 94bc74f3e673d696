"""Records with a format of Kafka's: those of its internal topics, and control records of any topic.

  * coordinators (`__consumer_offsets`, `__transaction_state`, `__share_group_state`): a key is a record type as INT16
    and a message, a value is a version as INT16 and a message (CoordinatorRecordSerde of kafka-coordinator-common);
  * `__cluster_metadata` and `__remote_log_metadata`: a value is a frame version, a record type and a version, each an
    UNSIGNED_VARINT, and a message (AbstractApiMessageSerde; KIP-631, KIP-405);
  * control records: a key is a version and a type; values of KRaft begin with their version (KIP-595, KIP-853).

A new internal topic is one line in `INTERNAL_TOPICS`.
"""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Final, NamedTuple

from dissector.protocol.embedded.formats import versioned
from dissector.protocol.embedded.messages import DECODED, EmbeddedMessage, EmbeddedMessages
from dissector.protocol.primitives import INT16, UNSIGNED_VARINT
from dissector.protocol.schema.enums import members, name_of
from dissector.protocol.schema.field_enums import ControlRecordType
from dissector.protocol.schema.loader import entries
from dissector.protocol.wire import WireError, uvarint

RECORDS_FIELDS: Final = {
    "ProduceRequest": "topic_data.partition_data.records",
    "FetchResponse": "responses.partitions.records",
    "ShareFetchResponse": "responses.partitions.records",
    "FetchSnapshotResponse": "topics.partitions.unaligned_records",
}
"""Paths of `records` fields by message; the first name is the field of the topics."""

CLUSTER_METADATA: Final = "__cluster_metadata"
CLUSTER_METADATA_ID: Final = "AAAAAAAAAAAAAAAAAAAAAQ"
"""The metadata log's topic id, the same in every cluster (org.apache.kafka.common.Uuid.METADATA_TOPIC_ID)."""
NO_TOPIC_ID: Final = "AAAAAAAAAAAAAAAAAAAAAA"
"""The topic id that means none: the topic is given by name, or does not exist."""


class KeyValue(NamedTuple):
    """The contents of a record's key and value; None if not known."""

    key: EmbeddedMessages | None
    value: EmbeddedMessages | None


NO_FORMAT: Final = KeyValue(None, None)
RecordFormat = Callable[[bytes | None, bytes | None], KeyValue]


def _camel(name: str) -> str:
    """``OFFSET_COMMIT`` -> ``OffsetCommit``."""
    return "".join(word.capitalize() for word in name.split("_"))


def _coordinator(enum: str) -> RecordFormat:
    """Return the format of a coordinator's records; `enum` names its record types."""

    def read(key: bytes | None, value: bytes | None) -> KeyValue:
        if key is None or len(key) < 2:
            return NO_FORMAT
        name = _camel(name_of(enum, int.from_bytes(key[:2], "big", signed=True)))
        if f"{name}Key" not in _names():
            return NO_FORMAT
        of_key = EmbeddedMessages((("type", INT16),), (EmbeddedMessage(DECODED, f"{name}Key", 0),))
        of_value = next(versioned(f"{name}Value", value), None) if value else None
        return KeyValue(of_key, of_value)

    return read


def _framed(names: Callable[[], Mapping[int, str]]) -> RecordFormat:
    """Return the format of values that begin with a record type; `names` returns the messages by record type."""

    def read(_key: bytes | None, value: bytes | None) -> KeyValue:
        numbers: list[int] = []
        at = 0
        try:
            for _ in range(3):
                number, at = uvarint(value or b"", at)
                numbers.append(number)
        except WireError:
            return NO_FORMAT
        _, record_type, version = numbers
        name = names().get(record_type)
        if name is None:
            return NO_FORMAT
        prefix = tuple((each, UNSIGNED_VARINT) for each in ("frame_version", "type", "version"))
        return KeyValue(None, EmbeddedMessages(prefix, (EmbeddedMessage(DECODED, name, version),)))

    return read


@cache
def metadata_records() -> Mapping[int, str]:
    """Return the messages of KRaft's metadata log by record type."""
    return {number: _camel(name) for number, name in members("MetadataRecordType").items()}


@cache
def _remote_log_records() -> Mapping[int, str]:
    """Return the messages of tiered storage by record type (KIP-405)."""
    return {entry.api_key: entry.name for entry in entries()
            if entry.name.startswith("Remote") and entry.api_key is not None}  # fmt: skip


CONTROL_VALUES: Final[dict[int, str]] = {
    ControlRecordType.ABORT: "EndTxnMarker",
    ControlRecordType.COMMIT: "EndTxnMarker",
    ControlRecordType.LEADER_CHANGE: "LeaderChangeMessage",
    ControlRecordType.SNAPSHOT_HEADER: "SnapshotHeaderRecord",
    ControlRecordType.SNAPSHOT_FOOTER: "SnapshotFooterRecord",
    ControlRecordType.KRAFT_VERSION: "KRaftVersionRecord",
    ControlRecordType.KRAFT_VOTERS: "VotersRecord",
}
"""The message in the value of a control record, by the type in its key."""


def control_record(key: bytes | None, value: bytes | None) -> KeyValue:
    """Return the contents of a record of a control batch."""
    if key is None or len(key) < 4:
        return NO_FORMAT
    of_key = EmbeddedMessages(
        (("version", INT16),), (EmbeddedMessage(DECODED, "ControlRecordTypeSchema", 0),), whole=False
    )
    name = CONTROL_VALUES.get(int.from_bytes(key[2:4], "big"))
    if name is None or value is None or len(value) < 2:
        return KeyValue(of_key, None)
    if name == "EndTxnMarker":
        return KeyValue(of_key, next(versioned(name, value), None))
    version = int.from_bytes(value[:2], "big")  # it is also the first field of the message
    return KeyValue(of_key, EmbeddedMessages((), (EmbeddedMessage(DECODED, name, version),)))


INTERNAL_TOPICS: Final[dict[str, RecordFormat]] = {
    "__consumer_offsets": _coordinator("GroupCoordinatorRecordType"),
    "__transaction_state": _coordinator("TransactionCoordinatorRecordType"),
    "__share_group_state": _coordinator("ShareCoordinatorRecordType"),
    CLUSTER_METADATA: _framed(metadata_records),
    "__remote_log_metadata": _framed(_remote_log_records),
}


@cache
def _names() -> frozenset[str]:
    return frozenset(entry.name for entry in entries())
