"""What messages of groups say: who leaves with which error, and what a heartbeat with an epoch changes."""

from typing import Any

import pytest

from dissector.capture_session import Capture
from dissector.groups.group_event import NOWHERE, group_fields
from dissector.groups.group_messages import EpochStep, epoch_step
from dissector.pipeline.group_cells import COLUMNS, EPOCH, group_cells
from dissector.protocol.schema.api_keys import ApiKey
from dissector.protocol.schema.error_codes import ErrorCode
from tests.analysis.timelines.reading import timelines_of
from tests.conftest import PCAPS

Body = dict[str, Any]
UNKNOWN = int(ErrorCode.UNKNOWN_MEMBER_ID)


def _rows(api: ApiKey, request: Body, response: Body | None) -> list[Body]:
    return [dict(zip(COLUMNS, cells, strict=True)) for cells in group_cells(api, request, response)]


def test_each_static_member_that_is_removed_has_its_own_error() -> None:
    """By instance id alone, all have the empty member id: the response is in the order of the request."""
    request = {"group_id": "g", "members": [{"member_id": "", "group_instance_id": seat} for seat in ("a", "b", "c")]}
    codes = [UNKNOWN, 0, int(ErrorCode.FENCED_INSTANCE_ID)]
    response = {"error_code": 0, "members": [{"member_id": "", "error_code": code} for code in codes]}
    rows = _rows(ApiKey.LEAVE_GROUP, request, response)
    assert [row["error"] for row in rows] == ["UNKNOWN_MEMBER_ID", None, "FENCED_INSTANCE_ID"]
    [said] = group_fields(ApiKey.LEAVE_GROUP, 5, request, response)
    assert [each.error for each in said.departures] == codes
    assert _rows(ApiKey.LEAVE_GROUP, {"group_id": "g", "members": []}, {"error_code": 0, "members": []}) == []


def test_an_admin_learns_that_a_static_member_was_not_there() -> None:
    with Capture([str(PCAPS / "java-cooperative.pcapng")]) as capture:
        for _ in capture.read():
            pass
        left = [each for each in capture.exchanges() if each.fields.api == "LeaveGroup"]
        errors = [
            row["error"]
            for each in left
            if each.request is not None and each.response is not None and each.request.body["members"][0]["reason"]
            for row in _rows(ApiKey.LEAVE_GROUP, dict(each.request.body), dict(each.response.body))
        ]
    assert "UNKNOWN_MEMBER_ID" in errors


@pytest.mark.parametrize(
    ("request_epoch", "response", "step"),
    [
        (0, {"member_epoch": 1}, EpochStep.JOINS),
        (-1, {"member_epoch": -1}, EpochStep.LEAVES),
        (-2, {"member_epoch": -2}, EpochStep.LEAVES_STATIC),
        (5, {"member_epoch": 6}, EpochStep.MOVES),
        (5, {"member_epoch": 5}, EpochStep.STAYS),
        (5, {"error_code": 0, "member_epoch": 6}, EpochStep.MOVES),
        (5, {"error_code": UNKNOWN, "member_epoch": 0}, EpochStep.STAYS),
        (5, {}, EpochStep.STAYS),
    ],
)
def test_a_heartbeat_moves_its_member_to_another_epoch_if_the_response_says_so(
    request_epoch: int, response: Body, step: EpochStep
) -> None:
    request = {"group_id": "g", "member_id": "m", "member_epoch": request_epoch}
    assert epoch_step(request, response) is step
    [said] = group_fields(ApiKey.CONSUMER_GROUP_HEARTBEAT, 0, request, response)
    has_epoch = "member_epoch" in response and not response.get("error_code")
    assert said.now == (response["member_epoch"] if has_epoch else NOWHERE)


def test_a_heartbeat_has_a_row_if_it_changes_something() -> None:
    request = {"group_id": "g", "member_id": "m", "member_epoch": 5}
    same = {"error_code": 0, "member_epoch": 5}
    assert _rows(ApiKey.CONSUMER_GROUP_HEARTBEAT, request, same) == []
    assert _rows(ApiKey.CONSUMER_GROUP_HEARTBEAT, request, None) == [], "no response: nothing is known to change"
    tasks = [{"subtopology_id": "0", "partitions": [1]}]
    for given in ({"assignment": {"topic_partitions": []}}, {"active_tasks": tasks}, {"warmup_tasks": tasks}):
        [row] = _rows(ApiKey.STREAMS_GROUP_HEARTBEAT, request, same | given)
        assert (row["event"], row["generation"]) == (EPOCH, 5)
    nothing = {"assignment": None, "active_tasks": None, "standby_tasks": None, "warmup_tasks": None}
    assert _rows(ApiKey.STREAMS_GROUP_HEARTBEAT, request, same | nothing) == []


def test_a_member_that_is_fenced_goes_to_no_epoch() -> None:
    """The epoch of a response with an error is the default, 0."""
    with Capture([str(PCAPS / "groups" / "fenced-kip848.pcapng.gz")]) as capture:
        for _ in capture.read():
            pass
        events = [event for each in timelines_of(capture).groups for event in each.events]
    fenced = [event for event in events if event.error in ("FENCED_MEMBER_EPOCH", "UNKNOWN_MEMBER_ID")]
    assert fenced
    assert not [event for event in fenced if "→" in event.words]
    assert [event for event in events if "→" in event.words], "others do"
