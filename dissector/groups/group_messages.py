"""What the messages of groups say, in every version of them: who a member is, who leaves, what a heartbeat changes. The
one reading of them, for histories (`group_event.py`), timelines and the table `groups`.

Bodies are mappings, as they are decoded or as JSON has them. Invariant: the other fields of a response with an error
are their defaults, and say nothing.
"""

from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Any, Final

from dissector.protocol.schema.api_keys import ApiKey
from dissector.protocol.schema.field_enums import CoordinatorType, GroupMemberEpoch
from dissector.protocol.schema.field_names import ERROR_CODES

Body = Mapping[str, Any]
EPOCH_APIS: Final[Mapping[int, str]] = {
    ApiKey.CONSUMER_GROUP_HEARTBEAT: "consumer", ApiKey.SHARE_GROUP_HEARTBEAT: "share",
    ApiKey.STREAMS_GROUP_HEARTBEAT: "streams",
}  # fmt: skip
"""APIs of protocols with epochs (KIP-848, 932, 1071), and the kind of group that each makes: what `protocol_type` says
in the classic one."""
CLASSIC_APIS: Final = frozenset((
    ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP, ApiKey.HEARTBEAT, ApiKey.LEAVE_GROUP, ApiKey.OFFSET_COMMIT,
))  # fmt: skip
GROUP_APIS: Final = CLASSIC_APIS | EPOCH_APIS.keys() | {ApiKey.FIND_COORDINATOR}
EPOCH: Final = "member_epoch"
TASKS: Final = ("active_tasks", "standby_tasks", "warmup_tasks")
"""What a member of a streams group is given, in place of an assignment; null for what stays as it is (KIP-1071)."""


class EpochStep(Enum):
    """What a heartbeat with an epoch is to its member."""

    JOINS = "joins"
    LEAVES = "leaves"
    LEAVES_STATIC = "leaves temporarily; its instance id remains"
    MOVES = "moves"
    """It goes on in another epoch."""
    STAYS = "stays"


_SPECIAL: Final[Mapping[int | None, EpochStep]] = {
    GroupMemberEpoch.JOIN_GROUP: EpochStep.JOINS,
    GroupMemberEpoch.LEAVE_GROUP: EpochStep.LEAVES,
    GroupMemberEpoch.LEAVE_GROUP_STATIC: EpochStep.LEAVES_STATIC,
}


def epoch_step(request: Body, response: Body) -> EpochStep:
    """Return what a heartbeat of `EPOCH_APIS` is to its member."""
    before, now = request.get(EPOCH), new_epoch(response)
    return _SPECIAL.get(before) or (EpochStep.STAYS if now in (None, before) else EpochStep.MOVES)


def new_epoch(response: Body) -> object:
    """Return the epoch that a heartbeat's response gives; None without one."""
    return None if error_of(response) else response.get(EPOCH)


def is_given(response: Body) -> bool:
    """Return whether the response to a heartbeat with an epoch assigns anything."""
    return any(response.get(name) for name in ("assignment", *TASKS))


def member_of(request: Body, response: Body) -> Any:
    """Return the member's id; a new member gets one by the response."""
    return request.get("member_id") or response.get("member_id", request.get("member_id"))


def instance_of(struct: Body) -> Any:
    """Return a member's instance id (KIP-345): the newer protocols have another name for it."""
    return struct.get("group_instance_id") or struct.get("instance_id")


def generation_of(request: Body) -> Any:
    """Return the generation, or the member's epoch, that a request of `CLASSIC_APIS` has: an OffsetCommit may have
    either."""
    return request.get("generation_id_or_member_epoch", request.get("generation_id"))


def leads(response: Body) -> bool:
    """Return whether the member that joined leads its generation."""
    return bool(response.get("members")) and response.get("leader") == response.get("member_id")


def departures(request: Body, response: Body) -> Iterator[tuple[Body, int]]:
    """Yield who leaves, by a LeaveGroup, and with which error. Since version 3 it is a list, and the response has an
    error for each at the same place: a member that is named by its instance id alone has no other identity."""
    code, members = error_of(response), request.get("members")
    if not isinstance(members, list):
        yield request, code
        return
    answered = response.get("members") or []
    for at, member in enumerate(members):
        yield member, code or (error_of(answered[at]) if at < len(answered) else 0)


def coordinators(request: Body, response: Body) -> Iterator[tuple[str, Body]]:
    """Yield the groups that a FindCoordinator looks up, since version 4 perhaps several, each with what its coordinator
    is said to be."""
    if request.get("key_type", CoordinatorType.GROUP) != CoordinatorType.GROUP:
        return
    found = {each.get("key"): each for each in response.get("coordinators") or [] if isinstance(each, dict)}
    for key in request.get("coordinator_keys") or [request.get("key")]:
        if isinstance(key, str) and key:
            yield key, found.get(key, response)


def error_of(struct: Body) -> int:
    """Return the error code of a response, or of one of its structures; 0 for none."""
    return next((code for name in ERROR_CODES if isinstance(code := struct.get(name), int) and code), 0)
