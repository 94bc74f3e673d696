"""What one exchange says about a group, as plain values.

In: the bodies of a request and its response, from whoever decoded them. Out: `GroupEvent`s, which a `GroupHistory`
folds in the order of rows. The classic protocol is that of KIP-62, 345, 394 and 800; the newer ones are KIP-848
(consumer), 932 (share) and 1071 (streams). Texts are as on the wire: not cleaned.
"""

import zlib
from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

from dissector.groups.group_messages import (
    EPOCH,
    EPOCH_APIS,
    Body,
    coordinators,
    departures,
    error_of,
    generation_of,
    instance_of,
    leads,
    member_of,
    new_epoch,
)
from dissector.protocol.embedded.context import EMPTY_CONTEXT
from dissector.protocol.embedded.values import with_annotations
from dissector.protocol.schema.api_keys import ApiKey
from dissector.protocol.schema.error_codes import ErrorCode

NOWHERE: Final = -(1 << 31)
"""No generation, epoch, node or time limit."""
MOST_NAMES: Final = 16
"""Topics that are kept by name; all count in `topics_key`."""
SUBSCRIPTIONS: Final = ("subscribed_topic_names", "subscribed_topic_regex")
"""Fields of a heartbeat with an epoch, whose request and response have the epoch."""


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
    config_offset: int = NOWHERE
    """How far a worker of Connect has read the topic of its connectors; -1 if it has read nothing."""


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


def group_fields(api: int, version: int, request: Body, response: Body) -> Iterator[GroupFields]:
    """Yield what an exchange of `GROUP_APIS` says, by group: FindCoordinator may name several."""
    if api == ApiKey.FIND_COORDINATOR:
        for key, found in coordinators(request, response):
            yield GroupFields(key, node=_number(found.get("node_id")), error=error_of(found))
        return
    group = request.get("group_id")
    if not isinstance(group, str) or not group:
        return
    fields = GroupFields(group, _text(member_of(request, response)), _instance(request), error=_first_error(response))
    if api in EPOCH_APIS:
        yield _epoch_heartbeat(fields, request, response)
    elif api == ApiKey.JOIN_GROUP:
        yield _join(fields, version, request, response)
    elif api == ApiKey.LEAVE_GROUP:
        yield fields._replace(
            departures=tuple(_departure(member, error) for member, error in departures(request, response))
        )
    else:
        yield fields._replace(generation=_number(generation_of(request)))


def is_steady(said: GroupFields) -> bool:
    """Whether a heartbeat with an epoch changes nothing: the member goes on in its epoch."""
    return said.error == 0 and 0 < said.generation == said.now and not said.topics_key


def _join(fields: GroupFields, version: int, request: Body, response: Body) -> GroupFields:
    members = tuple(
        (_text(each.get("member_id")), _instance(each))
        for each in response.get("members") or []
        if isinstance(each, dict)
    )
    decoded: Body = with_annotations("JoinGroupRequest", version, dict(request), EMPTY_CONTEXT)
    protocols = [each for each in decoded.get("protocols") or [] if isinstance(each, dict)]
    metadata = [each["metadata_decoded"] for each in protocols if isinstance(each.get("metadata_decoded"), dict)]
    topics = sorted({topic for each in metadata for topic in each.get("topics") or [] if isinstance(topic, str)})
    return fields._replace(
        now=_number(response.get("generation_id")) if not fields.error else NOWHERE,
        reason=_text(request.get("reason")),
        leads=leads(response),
        members=members,
        **_subscription(topics),
        owns=any(each.get("owned_partitions") for each in metadata),
        config_offset=max((_number(each.get("config_offset")) for each in metadata), default=NOWHERE),
        chosen=_text(response.get("protocol_name")),
        session_ms=_number(request.get("session_timeout_ms")),
        rebalance_ms=_number(request.get("rebalance_timeout_ms")),
    )


def _epoch_heartbeat(fields: GroupFields, request: Body, response: Body) -> GroupFields:
    names, regex = SUBSCRIPTIONS
    topics = [each for each in request.get(names) or [] if isinstance(each, str)]
    topics += filter(None, (_text(request.get(regex)),))
    return fields._replace(
        generation=_number(request.get(EPOCH)),
        now=_number(new_epoch(response)),
        **_subscription(sorted(topics)),
        rebalance_ms=_number(request.get("rebalance_timeout_ms")),
        beat_ms=_number(response.get("heartbeat_interval_ms")),
    )


def _departure(member: Body, error: int) -> Departure:
    """A member that leaves by an old version gives no reason, and is named by its id."""
    return Departure(_text(member.get("member_id")), _instance(member), _text(member.get("reason")), error)


def _first_error(response: Body) -> int:
    """Return the error of the response, or the first one of a partition that is about the member."""
    if code := error_of(response):
        return code
    for topic in response.get("topics") or []:
        for partition in (topic.get("partitions") or []) if isinstance(topic, dict) else []:
            if (code := error_of(partition)) in MEMBER_ERRORS:
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


def _instance(struct: Body) -> str:
    return _text(instance_of(struct))


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _number(value: object) -> int:
    return value if isinstance(value, int) else NOWHERE


def reads(names: Iterable[str]) -> bool:
    """Whether a field with this path in a body decides `group_fields`."""
    return not _IGNORED.intersection(names)


_IGNORED: Final = frozenset(("throttle_time_ms", "committed_offset", "committed_leader_epoch", "committed_metadata"))
"""What differs in exchanges that are otherwise equal."""
