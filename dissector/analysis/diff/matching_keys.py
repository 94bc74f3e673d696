"""What an exchange is for, whatever connection it is on: its key, and the strand of the conversation it belongs to.

Two exchanges with one key mean the same. What is said over and over while a program runs (Fetch, Heartbeat, Metadata)
is a loop: its turns are one thing, wherever they stand. FindCoordinator is one too, as some clients ask again and
again, in case the coordinator moved. All else is a step of its strand, where order means something. An error that may
be tried again makes no step of its own: the exchange is a retry of what it tries.
"""

from typing import Final, NamedTuple

from dissector.analysis.diff.compared_values import EntityName
from dissector.exchange.model import ExchangeMessage
from dissector.protocol.codec.structs import structs_with
from dissector.protocol.message import Values
from dissector.protocol.schema.errors import error_name, is_retriable
from dissector.protocol.schema.field_enums import CoordinatorType

REPEATED_APIS: Final = frozenset(
    ("ApiVersions", "FindCoordinator", "Metadata", "Produce", "Fetch", "Heartbeat", "OffsetCommit",
     "ConsumerGroupHeartbeat", "ShareGroupHeartbeat", "StreamsGroupHeartbeat", "ShareFetch", "ShareAcknowledge",
     "PushTelemetry", "GetTelemetrySubscriptions", "BrokerHeartbeat", "FetchSnapshot", "TxnOffsetCommit",
     "AddPartitionsToTxn", "AddOffsetsToTxn", "EndTxn")
)  # fmt: skip
WORKFLOWS: Final = {
    "SaslHandshake": "login", "SaslAuthenticate": "login",
    "JoinGroup": "group", "SyncGroup": "group", "LeaveGroup": "group", "OffsetFetch": "group",
    "InitProducerId": "producer",
    "ListOffsets": "reading", "OffsetForLeaderEpoch": "reading",
}  # fmt: skip
"""The strand of a step; those of other APIs have one for each API."""
ERROR_CODES: Final = frozenset(("error_code",))
COORDINATORS: Final[dict[int, str]] = {
    CoordinatorType.GROUP: "group",
    CoordinatorType.TRANSACTION: "transaction",
    CoordinatorType.SHARE: "share group",
}


Subject = tuple[EntityName | str, ...]
"""What a request is about: a group, a transaction, all topics."""


class MatchingKey(NamedTuple):
    """What an exchange means. Exchanges of one key are alike."""

    matched: int
    """The number, from 1, of the pair of connections that the user matched; from -1 down that of two exchanges that the
    user matched; 0 for all others."""
    api: str
    subject: Subject
    step: str
    """The error that makes it another step of the dance, ``MEMBER_ID_REQUIRED``; mostly empty."""


class Workflow(NamedTuple):
    """A part of the conversation whose order means something."""

    matched: int
    name: str
    subject: Subject


def workflow_of(key: MatchingKey) -> Workflow | None:
    """The strand of a step; None for a turn of a loop."""
    if key.api in REPEATED_APIS:
        return None
    name = WORKFLOWS.get(key.api, key.api)
    return Workflow(key.matched, name, key.subject if name == "group" else ())


def matching_key(api: str, subject: Subject, error: int, matched: int) -> tuple[MatchingKey, str]:
    """The key of an exchange whose answer has that error code, 0 for none; and the error that made somebody try again,
    empty for none."""
    if error and is_retriable(error):
        return MatchingKey(matched, api, subject, ""), error_name(error)
    return MatchingKey(matched, api, subject, error_name(error) if error else ""), ""


def first_error(response: ExchangeMessage) -> int:
    """The first error code of a response that is one; 0 for none."""
    for struct in structs_with(response.shape, response.body, ERROR_CODES):
        code = struct.get("error_code")
        if isinstance(code, int) and code:
            return code
    return 0


def subject_of(api: str, asked: Values) -> Subject:
    """What a request is about. Which topics are no part of it: clients ask for them together or one by one."""
    if api == "Metadata":
        topics = asked.get("topics")
        if topics is None:
            return ("all topics",)
        return ("topics",) if topics else ("no topics",)
    if api == "FindCoordinator":
        return _coordinator(asked)
    for name, kind in (("group_id", "group"), ("transactional_id", "transaction")):
        value = asked.get(name)
        if isinstance(value, str) and value:
            return (EntityName(kind, value),)
    groups = asked.get("groups")
    if isinstance(groups, list) and groups and isinstance(groups[0], dict) and groups[0].get("group_id"):
        return (EntityName("group", str(groups[0]["group_id"])),)
    return ()


def _coordinator(asked: Values) -> Subject:
    number = asked.get("key_type", CoordinatorType.GROUP)
    kind = COORDINATORS.get(number, "") if isinstance(number, int) else ""
    keys = asked.get("coordinator_keys")
    key = keys[0] if isinstance(keys, list) and keys else asked.get("key", "")
    return (kind, EntityName(kind, str(key)))
