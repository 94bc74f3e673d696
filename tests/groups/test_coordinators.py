"""Groups of one name on two clusters: their coordinators are told by generations that can't be of one group."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from dissector.analysis.group_pass import GroupPass
from dissector.capture_session import Capture
from dissector.conversation import Conversation, End, packets, pcapng
from dissector.groups.coordinators import MAX_COORDINATORS, Coordinators
from dissector.groups.group_event import GroupEvent, GroupFields
from dissector.groups.verdict import verdict
from dissector.protocol.schema.api_keys import ApiKey
from dissector.protocol.schema.error_codes import ErrorCode
from tests.analysis.timelines.reading import timelines_of
from tests.findings.conversations import Talk, troubles

CLUSTERS = (End("192.0.2.101", 9092), End("192.0.2.102", 9092))
NAMES = ["readers at 192.0.2.101:9092", "readers at 192.0.2.102:9092"]


def beat(server: str, at: int, generation: int, *, done: int = 0, error: int = 0) -> GroupEvent:
    fields = GroupFields("readers", "m", generation=generation, error=error)
    return GroupEvent(ApiKey.HEARTBEAT, "app", "10.0.0.1", 1, at, done or at, fields, server)


def epoch(server: str, at: int, was: int, now: int) -> GroupEvent:
    fields = GroupFields("readers", "m", generation=was, now=now)
    return GroupEvent(ApiKey.CONSUMER_GROUP_HEARTBEAT, "app", "10.0.0.1", 1, at, at, fields, server)


@pytest.mark.parametrize(
    ("events", "disagree"),
    [
        ([beat("a", 1, 5), beat("b", 2, 40), beat("a", 3, 5)], True),
        ([beat("a", 1, 40), beat("b", 2, 5), beat("a", 3, 40), beat("b", 4, 6)], True),
        ([beat("a", 1, 5), beat("b", 2, 6), beat("a", 3, 7)], False),
        ([beat("a", 1, 5), beat("b", 2, 6), beat("a", 3, 6)], False),
        ([beat("a", 1, 5), beat("b", 2, 1), beat("b", 3, 2)], False),
        ([beat("a", 1, 5), beat("a", 2, 40), beat("a", 3, 5)], False),
        ([beat("a", 1, 5), beat("b", 2, 40, done=4), beat("a", 3, 5)], False),
        ([beat("a", 1, 5), beat("b", 2, 40), beat("a", 3, 5, error=ErrorCode.ILLEGAL_GENERATION)], False),
        ([epoch("a", 1, 4, 4), epoch("b", 2, 5, 6), epoch("a", 3, 4, 4)], False),
        ([epoch("a", 1, 4, 4), epoch("b", 2, 5, 6), epoch("a", 3, 4, 5)], True),
        ([epoch("a", 1, 4, 4), epoch("b", 2, 5, 6), epoch("a", 3, 4, 6)], False),
    ],
    ids=[
        "lower again", "begun while the other ran", "moved twice", "moved back", "lost its state", "one coordinator",
        "in flight", "refused", "a member that lags", "a member that goes on", "a member that catches up",
    ],
)  # fmt: skip
def test_coordinators_disagree_only_if_they_have_different_groups(
    events: Sequence[GroupEvent], *, disagree: bool
) -> None:
    coordinators = Coordinators()
    for event in events:
        coordinators.add(event)
    assert coordinators.disagree is disagree


@pytest.mark.parametrize(("others", "disagree"), [(MAX_COORDINATORS - 2, True), (MAX_COORDINATORS, False)])
def test_coordinators_beyond_the_bound_are_not_known(others: int, *, disagree: bool) -> None:
    coordinators = Coordinators()
    for at in range(others):
        coordinators.add(beat(f"other-{at}", 1, 1))
    for event in (beat("a", 2, 5), beat("b", 3, 40), beat("a", 4, 5)):
        coordinators.add(event)
    assert coordinators.disagree is disagree


def joins(number: int, at: float, generations: Sequence[int], *, server: End, leaves: bool) -> Conversation:
    """A member that joins alone, again and again, every two seconds."""
    talk = Talk(number)
    for generation in generations:
        member = f"m{number}-{generation}"
        request = {
            "group_id": "readers",
            "session_timeout_ms": 10_000,
            "rebalance_timeout_ms": 30_000,
            "member_id": member,
            "protocol_type": "consumer",
            "protocols": [{"name": "range", "metadata": b""}],
        }
        response = {
            "generation_id": generation,
            "protocol_type": "consumer",
            "protocol_name": "range",
            "leader": member,
            "member_id": member,
            "members": [{"member_id": member, "metadata": b""}],
        }
        talk.ask(at, "JoinGroup", 7, request, response)
        if leaves:
            body = {"group_id": "readers", "members": [{"member_id": member, "group_instance_id": None}]}
            talk.ask(at + 1_000, "LeaveGroup", 4, body, {"members": [{"member_id": member}]})
        at += 2_000
    return Conversation(talk.client, server, talk.turns, closed=False)


def capture_of(folder: Path, *, servers: Sequence[End], leaves: bool = False) -> str:
    """A member on each server, with generations that are far apart."""
    path = folder / "made.pcapng"
    talks = [
        joins(number, 100 * number, range(first, first + 7), server=server, leaves=leaves)
        for number, first, server in zip((1, 2), (5, 40), servers, strict=True)
    ]
    path.write_bytes(b"".join(pcapng(packets(talks), "made for a test")))
    return str(path)


def test_each_cluster_has_the_history_and_the_timeline_of_its_group(tmp_path: Path) -> None:
    with Capture([capture_of(tmp_path, servers=CLUSTERS)]) as capture:
        list(capture.read())
        reading = GroupPass(capture)
        list(reading.steps())
        timelines = timelines_of(capture).groups
    assert list(reading.histories) == [each.name for each in timelines] == NAMES
    for history, timeline, first in zip(reading.histories.values(), timelines, (5, 40), strict=True):
        assert [each.number for each in history.rebalances] == list(range(first, first + 7))
        assert history.tally.missed == 0
        assert timeline.verdict == verdict(history).sentence
        assert timeline.verdict.startswith(f"{history.name} rebalanced 6 times")
        assert len(timeline.phases) == 7


def test_one_coordinator_has_one_history(tmp_path: Path) -> None:
    with Capture([capture_of(tmp_path, servers=(CLUSTERS[0], CLUSTERS[0]))]) as capture:
        list(capture.read())
        reading = GroupPass(capture)
        list(reading.steps())
        assert [each.name for each in timelines_of(capture).groups] == ["readers"]
    assert list(reading.histories) == ["readers"]


def test_a_loop_is_one_of_its_cluster(tmp_path: Path) -> None:
    found = [each.message for _, each in troubles(capture_of(tmp_path, servers=CLUSTERS, leaves=True))
             if each.code == "rebalance-loop"]  # fmt: skip
    assert sorted(each.partition(" rebalanced ")[0] for each in found) == [f"group {name}" for name in NAMES]
    assert not any("not seen" in each or "not in this capture" in each for each in found)
