"""Timelines of captures, compared with their scenarios: two members, a rebalance; an aborted transaction."""

import pytest

from dissector.analysis.timelines.timeline import Timeline, format_ranges
from dissector.analysis.timelines.timeline_pass import TimelinePass
from dissector.capture_session import Capture
from tests.analysis.timelines.reading import timelines_of
from tests.cases import cases
from tests.conftest import PCAPS
from tests.traffic import capture_of, conversation, exchanges


def opened(name: str) -> Capture:
    capture = Capture([str(PCAPS / f"{name}.pcapng")])
    for _ in capture.read():
        pass
    return capture


def lines_by_phase(timeline: Timeline) -> dict[str, list[str]]:
    """By phase, each event in a line: number, what, member, words, error."""
    return {
        phase.title: [
            " ".join(filter(None, (f"{event.number + 1} {event.what}", event.member[-2:], event.words, event.error)))
            for event in phase.events
        ]
        for phase in timeline.phases
    }


def test_a_classic_group_has_a_phase_for_each_generation() -> None:
    with opened("java-classic") as capture:
        [group] = timelines_of(capture).groups
    assert (group.name, group.kind) == ("java-classic-group", "classic")
    assert group.members == ["consumer-java-classic-group-1", "consumer-java-classic-group-2"]
    phases = lines_by_phase(group)
    assert list(phases) == ["at the beginning", "generation 1 · range", "generation 2 · range"]
    before = phases["at the beginning"]
    assert before == ["12 FindCoordinator -1 node 1", "14 JoinGroup -1 MEMBER_ID_REQUIRED"]
    first, second = phases["generation 1 · range"], phases["generation 2 · range"]
    assert "16 SyncGroup -1 gets java-classic[0..3]" in first
    assert "57 Heartbeat -1 REBALANCE_IN_PROGRESS" in first
    assert {"59 SyncGroup -2 gets java-classic[2,3]", "60 SyncGroup -1 gets java-classic[0,1]"} <= set(second)
    assert second[-1] == "73 LeaveGroup -1 the consumer is being closed"


@cases(
    ("name", "causes"),
    [
        ("java-classic", ["1 joined", "2 joined"]),
        ("java-cooperative", ["1 joined", "2 joined",
                              "1 rejoined after it gave up partitions: the second step of a cooperative rebalance",
                              "1 requested it: the lab asks for it"]),
        ("trouble-rebalance-loop", ["0 joined", *(f"{n} left: its consumer was closed" for n in range(4))]),
        ("java-kip848", ["1 joined", "2 joined"]),
        ("java-share", ["1 joined", "no member in this capture shows a change"]),
    ],
)  # fmt: skip
def test_each_generation_and_epoch_has_a_cause(name: str, causes: list[str]) -> None:
    with opened(name) as capture:
        group = timelines_of(capture).groups[0]
    found = [phase.cause for phase in group.phases[1:]]
    assert len(found) == len(causes)
    for cause, end in zip(found, causes, strict=True):
        assert cause.endswith(end), found


def test_a_member_that_comes_back_has_the_name_that_the_verdict_gives_it() -> None:
    capture = Capture([str(PCAPS / "groups" / "poll-timeout.pcapng.gz")])
    with capture:
        for _ in capture.read():
            pass
        [group] = timelines_of(capture).groups
    assert group.members == ["worker-a", "worker-b"]
    assert {event.member for event in group.events} == {"worker-a", "worker-b"}
    assert "worker-a left 10 times and came back" in group.verdict


def test_members_that_an_admin_removes_leave_a_cooperative_group() -> None:
    with opened("java-cooperative") as capture:
        [group] = timelines_of(capture).groups
    phases = lines_by_phase(group)
    assert list(phases)[1:] == [f"generation {number} · cooperative-sticky" for number in (1, 2, 3, 4)]
    assert "33 SyncGroup -2 REBALANCE_IN_PROGRESS" in phases["generation 2 · cooperative-sticky"]
    assert any("the lab asks for it" in line for line in phases["generation 4 · cooperative-sticky"])
    left = [line for line in phases["generation 4 · cooperative-sticky"] if line.startswith("72 ")]
    assert [line.endswith("UNKNOWN_MEMBER_ID") for line in left] == [True, False, False]


def test_a_kip_848_group_has_epochs_and_assignments_by_topic_name() -> None:
    with opened("java-kip848") as capture:
        [group] = timelines_of(capture).groups
    assert group.kind == "consumer"
    phases = lines_by_phase(group)
    assert list(phases) == ["at the beginning", "epoch 2", "epoch 3"]
    assert "15 Heartbeat -1 joins · is given java-next-gen[0..3]" in phases["epoch 2"]
    assert "34 Heartbeat -1 is given java-next-gen[0,1]" in phases["epoch 2"]
    assert phases["epoch 3"] == [
        "36 Heartbeat -1 epoch 2 → 3 · owns java-next-gen[0,1]",
        "38 Heartbeat -2 epoch 2 → 3 · is given java-next-gen[2,3]",
        "40 Heartbeat -2 owns java-next-gen[2,3]",
        "41 Heartbeat -2 leaves",
        "42 OffsetCommit -1 java-next-gen[0,1]",
        "43 Heartbeat -1 leaves",
    ]


def test_share_and_streams_groups_have_epochs() -> None:
    with opened("java-share") as capture:
        [share] = timelines_of(capture).groups
    lines = [line for phase in lines_by_phase(share).values() for line in phase]
    assert share.kind == "share"
    assert {"26 ShareAcknowledge -1 java-shared[0]", "28 ShareAcknowledge -1 closes the share session"} <= set(lines)
    assert sum(phase.heartbeats for phase in share.phases) == 3
    with opened("java-streams") as capture:
        [streams, reader] = timelines_of(capture).groups
    assert (streams.kind, reader.kind) == ("streams", "classic")
    lines = [line for phase in lines_by_phase(streams).values() for line in phase]
    assert "26 Heartbeat er epoch 1 → 3 · is given active tasks 0[0,1] 1[0,1]" in lines
    assert any("Internal topics are missing" in line for line in lines)


def test_transactions_end_committed_or_aborted_with_their_markers() -> None:
    with opened("java-transactions") as capture:
        [timeline] = timelines_of(capture).transactions
    assert (timeline.name, timeline.kind) == ("java-mill-1", "transaction")
    phases = {title: [line.split()[:2] for line in lines] for title, lines in lines_by_phase(timeline).items()}
    assert list(phases) == [
        "start",
        "transaction 1 · committed",
        "transaction 2 · aborted",
        "transaction 3 · committed",
    ]
    assert phases["start"] == [["15", "InitProducerId"]]
    assert phases["transaction 1 · committed"] == [
        ["29", "TxnOffsetCommit"], ["30", "AddPartitionsToTxn"], ["31", "Produce"], ["32", "AddPartitionsToTxn"],
        ["33", "EndTxn"], ["35", "WriteTxnMarkers"],
    ]  # fmt: skip
    assert phases["transaction 2 · aborted"][0] == ["34", "TxnOffsetCommit"]
    lines = lines_by_phase(timeline)
    assert "41 EndTxn -1 abort, epoch 1 → 2" in lines["transaction 2 · aborted"]
    assert lines["transaction 2 · aborted"][0].endswith("CONCURRENT_TRANSACTIONS")


def test_transactions_of_a_client_that_adds_partitions_itself() -> None:
    with opened("librdkafka-transactions") as capture:
        [timeline] = timelines_of(capture).transactions
    phases = lines_by_phase(timeline)
    assert list(phases) == [
        "start",
        "transaction 1 · committed",
        "transaction 2 · aborted",
        "transaction 3 · committed",
    ]
    assert phases["start"][0].endswith("COORDINATOR_LOAD_IN_PROGRESS")
    assert phases["transaction 1 · committed"][0] == "18 AddPartitionsToTxn ka adds rdkafka-ledger[0]"
    tried = [line for line in phases["transaction 2 · aborted"] if line.endswith("CONCURRENT_TRANSACTIONS")]
    assert len(tried) == 3


@pytest.mark.slow
def test_every_event_is_listed_once_and_in_the_order_of_time(bundled: object) -> None:
    with Capture([str(bundled)]) as capture:
        for _ in capture.read():
            pass
        reading = TimelinePass(capture)
        steps = list(reading.steps())
        assert not steps or steps[-1].done == steps[-1].total
        for timeline in (*reading.groups, *reading.transactions):
            for phase in timeline.phases:
                assert [event.number for event in phase.events] == sorted(event.number for event in phase.events)
                for event in phase.events:
                    assert capture.exchange(event.number).fields.time_ns == event.time_ns


def test_a_capture_without_groups_has_no_timeline(tmp_path: object) -> None:
    with Capture([capture_of(tmp_path, conversation(exchanges(2)))]) as capture:
        for _ in capture.read():
            pass
        assert timelines_of(capture).groups == timelines_of(capture).transactions == []


@cases(
    ("numbers", "words"),
    [([3, 1, 2, 7], "[1..3,7]"), ([1, 2], "[1,2]"), ([], "[]"), (range(0, 40, 2), "[0,2,4,6,8,10,12,14,…]")],
)
def test_consecutive_numbers_are_a_range(numbers: list[int], words: str) -> None:
    assert format_ranges(numbers) == words
