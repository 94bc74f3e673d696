"""What an exchange says about a consumer group, for the table `groups`: from its bodies as JSON objects.

Only what changes a group, or shows that it changes, has a row: a heartbeat has one if it brings an error, a new epoch
or an assignment.
"""

from collections.abc import Iterator
from typing import Any, Final

from dissector.groups.group_messages import (
    CLASSIC_APIS,
    EPOCH_APIS,
    EpochStep,
    departures,
    epoch_step,
    generation_of,
    is_given,
    member_of,
    new_epoch,
)
from dissector.protocol.schema.api_keys import ApiKey
from dissector.protocol.schema.errors import error_name

Body = dict[str, Any]
GroupCells = tuple[Any, ...]
"""Cells of `COLUMNS`."""
COLUMNS: Final = (
    "group_id", "event", "member_id", "group_instance_id", "generation", "protocol_type", "protocol", "leader",
    "member_count", "session_timeout_ms", "rebalance_timeout_ms", "reason", "error",
)  # fmt: skip
APIS: Final = CLASSIC_APIS - {ApiKey.OFFSET_COMMIT} | EPOCH_APIS.keys()
"""Keys of the APIs whose exchanges have rows."""
JOIN, REJOIN, SYNC, LEAVE, ERROR, EPOCH = "join", "rejoin", "sync", "leave", "error", "epoch"
_STEPS: Final = {EpochStep.JOINS: JOIN, EpochStep.LEAVES: LEAVE, EpochStep.LEAVES_STATIC: LEAVE}


def group_cells(api_key: int, request: Body | None, response: Body | None) -> Iterator[GroupCells]:
    """Yield the cells of each member that an exchange is about."""
    request, response = request or {}, response or {}
    if api_key == ApiKey.LEAVE_GROUP:
        yield from _leaving(request, response)
    elif api_key in EPOCH_APIS:
        yield from _next_generation(EPOCH_APIS[api_key], request, response)
    elif api_key != ApiKey.HEARTBEAT or response.get("error_code"):
        yield _classic(api_key, request, response)


def _classic(api_key: int, request: Body, response: Body) -> GroupCells:
    """The cells of a message of the classic protocol."""
    events = {ApiKey.HEARTBEAT: ERROR, ApiKey.SYNC_GROUP: SYNC}
    generation = response.get("generation_id", generation_of(request))
    members = response.get("members")
    return (
        request.get("group_id"), events.get(ApiKey(api_key), REJOIN if request.get("member_id") else JOIN),
        member_of(request, response), request.get("group_instance_id"),
        None if generation == -1 else generation, response.get("protocol_type") or request.get("protocol_type"),
        response.get("protocol_name") or request.get("protocol_name"), response.get("leader") or None,
        len(members) if members else None, *_timeouts(request), request.get("reason") or None, _error(response),
    )  # fmt: skip


def _leaving(request: Body, response: Body) -> Iterator[GroupCells]:
    """The cells of members that leave: one, or since version 3 many (KIP-345)."""
    for member, error in departures(request, response):
        yield (
            request.get("group_id"), LEAVE, member.get("member_id"), member.get("group_instance_id"), *(None,) * 7,
            member.get("reason") or None, error_name(error) if error else None,
        )  # fmt: skip


def _next_generation(protocol_type: str, request: Body, response: Body) -> Iterator[GroupCells]:
    """The cells of a heartbeat of the protocol of KIP-848, if it changes something."""
    step, error = epoch_step(request, response), _error(response)
    changes = EPOCH if step is EpochStep.MOVES or is_given(response) else None
    event = _STEPS.get(step) or (ERROR if error else changes)
    if event is not None:
        yield (
            request.get("group_id"), event, member_of(request, response), request.get("instance_id"),
            None if event is LEAVE else new_epoch(response), protocol_type, request.get("server_assignor"), None, None,
            *_timeouts(request), response.get("error_message"), error,
        )  # fmt: skip


def _timeouts(request: Body) -> tuple[int | None, int | None]:
    """The cells of a member's timeouts. -1 is for one that stays as it was (KIP-848)."""
    session, rebalance = request.get("session_timeout_ms"), request.get("rebalance_timeout_ms")
    return session, None if rebalance == -1 else rebalance


def _error(body: Body) -> str | None:
    code = body.get("error_code")
    return error_name(code) if code else None
