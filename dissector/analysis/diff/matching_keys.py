"""The matching key of an exchange: what it is for, on whatever connection; and the workflow that it is a step of.

Exchanges with equal keys match. APIs that clients call repeatedly while they run (Fetch, Heartbeat, Metadata) match in
any position. FindCoordinator is one of them, as some clients poll it in case the coordinator moved. All other exchanges
are steps of a workflow, whose order is compared. A retriable error makes no step: the exchange belongs to the step that
is retried.
"""

from typing import Final, NamedTuple

from dissector.analysis.diff.compared_values import EntityName
from dissector.exchange.model import ExchangeMessage
from dissector.groups.group_messages import EPOCH_APIS
from dissector.protocol.codec.structs import values_of
from dissector.protocol.message import Values
from dissector.protocol.schema.api_keys import ApiKey
from dissector.protocol.schema.error_codes import ErrorCode
from dissector.protocol.schema.errors import error_name, is_retriable
from dissector.protocol.schema.field_enums import CoordinatorType, FetchSessionEpoch
from dissector.protocol.schema.field_names import ERROR_CODES

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
"""The workflow of an API. Other APIs have one each."""
COORDINATORS: Final[dict[int, str]] = {
    CoordinatorType.GROUP: "group",
    CoordinatorType.TRANSACTION: "transaction",
    CoordinatorType.SHARE: "share group",
}
NAMED_BY: Final = (
    ("transactional_id", "transaction"), ("v3_and_below_transactional_id", "transaction"), ("group_id", "group"),
)  # fmt: skip
"""Fields that say what a request is for: offsets that a transaction commits are the transaction's."""
GROUP_PROTOCOLS: Final = {ApiKey(key).name.title().replace("_", ""): kind for key, kind in EPOCH_APIS.items()}
"""Group protocols of which a heartbeat is all, by API. The tables, which have the names of APIs, are read when first
needed and not when this is imported: a user may import a release until then."""
CLOSING_A_SESSION: Final = "closing a session"
MEMBER_ID_SINCE: Final = 4


Subject = tuple[EntityName | str, ...]
"""What a request is for: a group, a transaction, all topics."""


ALL_TOPICS: Final[Subject] = ("all topics",)
NO_TOPICS: Final[Subject] = ("no topics",)
"""Of who asks for brokers alone."""


class MatchingKey(NamedTuple):
    """What an exchange is for. Exchanges with equal keys match."""

    matched: int
    """The number of a manual match: from 1 up of connections, from -1 down of exchanges; 0 for all others."""
    api: str
    subject: Subject
    step: str
    """The error in the response if it makes this another step, ``MEMBER_ID_REQUIRED``; mostly empty."""


class Workflow(NamedTuple):
    """Exchanges whose order is compared."""

    matched: int
    name: str
    subject: Subject


def workflow_of(key: MatchingKey) -> Workflow | None:
    """Return the workflow of a key; None for an API that clients call repeatedly."""
    if key.api in REPEATED_APIS:
        return None
    name = WORKFLOWS.get(key.api, key.api)
    return Workflow(key.matched, name, key.subject if name == "group" else ())


def matching_key(api: str, subject: Subject, error: int, matched: int, retried: str = "") -> tuple[MatchingKey, str]:
    """Return the key of an exchange whose response has an error code, 0 for none; and the name of the error if it is
    retriable, else an empty text. `retried` is the step that it belongs to then (`retried_step`)."""
    if error and is_retriable(error):
        return MatchingKey(matched, api, subject, retried), error_name(error)
    return MatchingKey(matched, api, subject, error_name(error) if error else ""), ""


def first_error(response: ExchangeMessage) -> int:
    """Return the first error code of a response, wherever it is; 0 for none."""
    codes = values_of(response.layout, response.body, ERROR_CODES)
    return next((code for code in codes if isinstance(code, int) and code), 0)


def retried_step(api: str, version: int, request: Values) -> str:
    """Return the step that a request is tried again for: the coordinator demands a member id of who joins without one,
    from JoinGroup v4 on and but for static members (KIP-394)."""
    demands = api == "JoinGroup" and version >= MEMBER_ID_SINCE and request.get("group_instance_id") is None
    return ErrorCode.MEMBER_ID_REQUIRED.name if demands and request.get("member_id") == "" else ""


def subject_of(api: str, version: int, request: Values) -> Subject:
    """Return what a request is for. Topics are not part of it: clients name them in one request or in many."""
    if api == "Metadata":
        topics = request.get("topics")
        if topics is None or (not topics and version == 0):  # v0 has no null: an empty list asks for all
            return ALL_TOPICS
        return ("topics",) if topics else NO_TOPICS
    if api == "FindCoordinator":
        return _coordinator(request)
    if _closes_session(api, request):
        return (CLOSING_A_SESSION,)
    for name, kind in NAMED_BY:
        value = request.get(name)
        if isinstance(value, str) and value:
            return (EntityName(kind, value),)
    groups = request.get("groups")
    if isinstance(groups, list) and groups and isinstance(groups[0], dict) and groups[0].get("group_id"):
        return (EntityName("group", str(groups[0]["group_id"])),)
    return ()


def _closes_session(api: str, request: Values) -> bool:
    """Return whether a fetch only closes its session: its limits are not those of the client (KIP-227, KIP-932)."""
    if api == "Fetch":
        return bool(request.get("session_id")) and request.get("session_epoch") == FetchSessionEpoch.FINAL
    return api == "ShareFetch" and request.get("share_session_epoch") == FetchSessionEpoch.FINAL


def _coordinator(request: Values) -> Subject:
    number = request.get("key_type", CoordinatorType.GROUP)
    kind = COORDINATORS.get(number, "") if isinstance(number, int) else ""
    keys = request.get("coordinator_keys")
    key = keys[0] if isinstance(keys, list) and keys else request.get("key", "")
    return (kind, EntityName(kind, str(key)))
