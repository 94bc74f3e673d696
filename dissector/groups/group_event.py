"""What one exchange says about a group, as plain values.

In: the bodies of a request and its response, from whoever decoded them. Out: `GroupEvent`s, which a `GroupHistory`
folds in the order of rows. The classic protocol is that of KIP-62, 345, 394 and 800; the newer ones are KIP-848
(consumer), 932 (share) and 1071 (streams). Texts are as on the wire: not cleaned.
"""

import zlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from dissector.protocol.embedded.context import EMPTY_CONTEXT
from dissector.protocol.embedded.values import with_annotations
from dissector.protocol.schema.api_keys import ApiKey
from dissector.protocol.schema.error_codes import ErrorCode
from dissector.protocol.schema.field_enums import CoordinatorType
from dissector.protocol.schema.field_names import ERROR_CODES

NOWHERE: Final = -(1 << 31)
"""No generation, epoch, node or time limit."""
MOST_NAMES: Final = 16
"""Topics that are kept by name; all count in `topics_key`."""
EPOCH_APIS: Final[Mapping[int, str]] = {
    ApiKey.CONSUMER_GROUP_HEARTBEAT: "consumer", ApiKey.SHARE_GROUP_HEARTBEAT: "share",
    ApiKey.STREAMS_GROUP_HEARTBEAT: "streams",
}  # fmt: skip
"""APIs of protocols with epochs (KIP-848, 932, 1071), and the kind of group that each makes: what `protocol_type` says
in the classic one."""
EPOCH: Final = "member_epoch"
SUBSCRIPTIONS: Final = ("subscribed_topic_names", "subscribed_topic_regex")
"""Fields of a heartbeat with an epoch, whose request and response have the epoch."""
CLASSIC_APIS: Final = frozenset((
    ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP, ApiKey.HEARTBEAT, ApiKey.LEAVE_GROUP, ApiKey.OFFSET_COMMIT,
))  # fmt: skip
GROUP_APIS: Final = CLASSIC_APIS | EPOCH_APIS.keys() | {ApiKey.FIND_COORDINATOR}


class Departure(NamedTuple):
    """A member that a LeaveGroup request names. Either of the first two may be empty."""

    member: str
    instance: str
    reason: str
    error: int


class GroupFields(NamedTuple):
    """What the bodies of an exchange say about one group: equal for equal bodies."""

    group: str
    member: str = ""
    instance: str = ""
    generation: int = NOWHERE
    """Generation or epoch of the request."""
    now: int = NOWHERE
    """Generation or epoch of the response."""
    error: int = 0
    reason: str = ""
    """Why the member joins (KIP-800)."""
    leads: bool = False
    members: tuple[tuple[str, str], ...] = ()
    """Member ids and instance ids, as the leader gets them."""
    topics: tuple[str, ...] = ()
    topics_key: int = 0
    """A checksum of the subscription; 0 if the message has none."""
    owns: bool = False
    """Whether the member keeps partitions while it joins."""
    chosen: str = ""
    """The assignor that the coordinator chose."""
    session_ms: int = NOWHERE
    rebalance_ms: int = NOWHERE
    beat_ms: int = NOWHERE
    """How often the coordinator wants a heartbeat."""
    departures: tuple[Departure, ...] = ()
    node: int = NOWHERE
    """The coordinator."""


class GroupEvent(NamedTuple):
    """An exchange about a group."""

    api: int
    client_id: str
    host: str
    """The client's address."""
    connection: int
    """The same for all exchanges of a connection."""
    time_ns: int
    """When the request was sent."""
    done_ns: int
    """When the response came; 0 without one."""
    said: GroupFields
    server: str = ""
    """The coordinator's address."""

    @classmethod
    def restored(cls, event: "GroupEvent") -> "GroupEvent":
        """Return an event whose tuples lost their names on their way through a table."""
        if isinstance(event.said, GroupFields):
            return event
        said = GroupFields(*event.said)
        return event._replace(said=said._replace(departures=tuple(Departure(*each) for each in said.departures)))


def group_fields(
    api: int, version: int, request: Mapping[str, Any], response: Mapping[str, Any]
) -> Iterator[GroupFields]:
    """Yield what an exchange of `GROUP_APIS` says, by group: FindCoordinator may name several."""
    if api == ApiKey.FIND_COORDINATOR:
        yield from _coordinators(request, response)
        return
    group = request.get("group_id")
    if not isinstance(group, str) or not group:
        return
    member = _text(request, "member_id") or _text(response, "member_id")
    fields = GroupFields(group, member, _instance(request), error=_first_error(response))
    if api in EPOCH_APIS:
        yield _epoch_heartbeat(fields, request, response)
    elif api == ApiKey.JOIN_GROUP:
        yield _join(fields, version, request, response)
    elif api == ApiKey.LEAVE_GROUP:
        yield fields._replace(departures=tuple(_departures(request, response)))
    else:
        generation = request.get("generation_id_or_member_epoch", request.get("generation_id"))
        yield fields._replace(generation=_number(generation))


def is_steady(said: GroupFields) -> bool:
    """Whether a heartbeat with an epoch changes nothing: the member goes on in its epoch."""
    return said.error == 0 and 0 < said.generation == said.now and not said.topics_key


def _join(fields: GroupFields, version: int, request: Mapping[str, Any], response: Mapping[str, Any]) -> GroupFields:
    members = tuple(
        (_text(each, "member_id"), _instance(each)) for each in response.get("members") or [] if isinstance(each, dict)
    )
    decoded: Mapping[str, Any] = with_annotations("JoinGroupRequest", version, dict(request), EMPTY_CONTEXT)
    protocols = [each for each in decoded.get("protocols") or [] if isinstance(each, dict)]
    metadata = [each["metadata_decoded"] for each in protocols if isinstance(each.get("metadata_decoded"), dict)]
    topics = sorted({topic for each in metadata for topic in each.get("topics") or [] if isinstance(topic, str)})
    return fields._replace(
        now=_number(response.get("generation_id")) if not fields.error else NOWHERE,
        reason=_text(request, "reason"),
        leads=bool(members) and response.get("leader") == response.get("member_id"),
        members=members,
        **_subscription(topics),
        owns=any(each.get("owned_partitions") for each in metadata),
        chosen=_text(response, "protocol_name"),
        session_ms=_number(request.get("session_timeout_ms")),
        rebalance_ms=_number(request.get("rebalance_timeout_ms")),
    )


def _epoch_heartbeat(fields: GroupFields, request: Mapping[str, Any], response: Mapping[str, Any]) -> GroupFields:
    names, regex = SUBSCRIPTIONS
    topics = [each for each in request.get(names) or [] if isinstance(each, str)]
    topics += filter(None, (_text(request, regex),))
    return fields._replace(
        generation=_number(request.get(EPOCH)),
        now=_number(response.get(EPOCH)) if not fields.error else NOWHERE,
        **_subscription(sorted(topics)),
        rebalance_ms=_number(request.get("rebalance_timeout_ms")),
        beat_ms=_number(response.get("heartbeat_interval_ms")),
    )


def _departures(request: Mapping[str, Any], response: Mapping[str, Any]) -> Iterator[Departure]:
    """Versions since 3 have a list of members, each with an error of its own."""
    requested = request.get("members")
    if not isinstance(requested, list):
        yield Departure(_text(request, "member_id"), "", "", _code(response))
        return
    found = response.get("members") or []
    for at, each in enumerate(requested):
        of_each = found[at] if at < len(found) else {}
        error = _code(response) or _code(of_each)
        yield Departure(_text(each, "member_id"), _instance(each), _text(each, "reason"), error)


def _coordinators(request: Mapping[str, Any], response: Mapping[str, Any]) -> Iterator[GroupFields]:
    """Versions since 4 look up more than one group."""
    if request.get("key_type", CoordinatorType.GROUP) != CoordinatorType.GROUP:
        return
    found = {each.get("key"): each for each in response.get("coordinators") or [] if isinstance(each, dict)}
    for key in request.get("coordinator_keys") or [request.get("key")]:
        if isinstance(key, str) and key:
            node = found.get(key, response)
            yield GroupFields(key, node=_number(node.get("node_id")), error=_code(node))


def _first_error(response: Mapping[str, Any]) -> int:
    """Return the error of the response, or the first one of a partition that is about the member."""
    if code := _code(response):
        return code
    for topic in response.get("topics") or []:
        for partition in (topic.get("partitions") or []) if isinstance(topic, dict) else []:
            if (code := _code(partition)) in MEMBER_ERRORS:
                return code
    return 0


MEMBER_ERRORS: Final = frozenset((
    ErrorCode.ILLEGAL_GENERATION, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.REBALANCE_IN_PROGRESS,
    ErrorCode.FENCED_INSTANCE_ID, ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.STALE_MEMBER_EPOCH,
    ErrorCode.NOT_COORDINATOR,
))  # fmt: skip
"""Errors by which a commit tells a member about itself or its group."""


def _subscription(topics: list[str]) -> dict[str, Any]:
    if not topics:
        return {}
    return {"topics": tuple(topics[:MOST_NAMES]), "topics_key": 1 + zlib.crc32("\0".join(topics).encode())}


def _code(struct: Mapping[str, Any]) -> int:
    return next((code for name in ERROR_CODES if isinstance(code := struct.get(name), int) and code), 0)


def _instance(struct: Mapping[str, Any]) -> str:
    return _text(struct, "group_instance_id") or _text(struct, "instance_id")


def _text(struct: Mapping[str, Any], name: str) -> str:
    value = struct.get(name)
    return value if isinstance(value, str) else ""


def _number(value: object) -> int:
    return value if isinstance(value, int) else NOWHERE


def reads(names: Iterable[str]) -> bool:
    """Whether a field with this path in a body decides `group_fields`."""
    return not _IGNORED.intersection(names)


_IGNORED: Final = frozenset(("throttle_time_ms", "committed_offset", "committed_leader_epoch", "committed_metadata"))
"""What differs in exchanges that are otherwise equal."""
