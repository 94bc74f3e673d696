"""Numbers with names in fields of Kafka's messages.

Written by ``python -m tools.lab.schemas.enum_modules`` from `enums.json`: do not edit.
"""

from enum import IntEnum


class CompressionType(IntEnum):
    """Apache's ``org.apache.kafka.common.record.internal.CompressionType``."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


class ControlRecordType(IntEnum):
    """Apache's ``org.apache.kafka.common.record.internal.ControlRecordType``."""

    UNKNOWN = -1
    ABORT = 0
    COMMIT = 1
    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6


class CoordinatorType(IntEnum):
    """Apache's ``org.apache.kafka.common.requests.FindCoordinatorRequest$CoordinatorType``."""

    GROUP = 0
    TRANSACTION = 1
    SHARE = 2


class EndpointType(IntEnum):
    """Apache's ``org.apache.kafka.clients.admin.EndpointType``."""

    UNKNOWN = 0
    BROKER = 1
    CONTROLLER = 2


class FetchSessionEpoch(IntEnum):
    """Apache's ``org.apache.kafka.common.requests.FetchMetadata``."""

    FINAL = -1
    INITIAL = 0


class GroupMemberEpoch(IntEnum):
    """Apache's ``org.apache.kafka.common.requests.ConsumerGroupHeartbeatRequest``."""

    LEAVE_GROUP_STATIC = -2
    LEAVE_GROUP = -1
    JOIN_GROUP = 0


class ShareSessionEpoch(IntEnum):
    """Apache's ``org.apache.kafka.common.requests.ShareRequestMetadata``."""

    FINAL = -1
    INITIAL = 0
