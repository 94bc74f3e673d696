"""At which level of a response an error stands: of the whole, of a topic, of a partition.

Schemas say where a code may be, not which one. As brokers do: what is wrong with a group, a session, a transaction or
the connection is said once, as far out as there is a code; what is wrong with a topic, once for each; all others as far
in as there is a code.
"""

from enum import Enum
from typing import Final

from dissector.protocol.schema.error_codes import ErrorCode

CODES: Final = frozenset(("error_code", "partition_error_code"))
"""Fields with an error of what surrounds them. Others (`topic_config_error_code`) are of something else beside it."""
MESSAGES: Final = ("error_message",)
_OF_WHOLE: Final = (
    "COORDINATOR", "GROUP", "MEMBER", "GENERATION", "REBALANCE", "SESSION_ID", "SESSION_EPOCH", "SESSION_TOPIC_ID",
    "CLUSTER", "SASL", "SECURITY", "UNSUPPORTED_VERSION", "TRANSACTION", "CONTROLLER", "THROTTLING", "BROKER_EPOCH",
    "BROKER_ID", "ASSIGNOR", "SHARE_SESSION",
)  # fmt: skip
"""Words in the names of errors that are of the whole."""
_OF_TOPIC: Final = frozenset((
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.INVALID_TOPIC_EXCEPTION,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.INCONSISTENT_TOPIC_ID,
))  # fmt: skip


class Level(Enum):
    """Where an error stands, if the response has a code there."""

    OUTERMOST = 0
    TOPIC = 1
    INNERMOST = 2


def level_of(code: ErrorCode) -> Level:
    """Return where an error stands."""
    if any(word in code.name for word in _OF_WHOLE):
        return Level.OUTERMOST
    return Level.TOPIC if code in _OF_TOPIC else Level.INNERMOST
