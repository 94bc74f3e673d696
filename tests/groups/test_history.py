"""Causes told apart by hand-made events: what one host sees, near misses, members that give no reason, loops."""

import sys
from typing import Any

import pytest

from dissector.groups.causes import CauseKind
from dissector.groups.group_event import Departure, GroupEvent, GroupFields
from dissector.groups.history import GroupHistory
from dissector.groups.rebalance import MAX_CHANGES
from dissector.groups.tally import MAX_CAUSES
from dissector.groups.verdict import verdict
from dissector.protocol.schema.api_keys import ApiKey
from dissector.protocol.schema.error_codes import ErrorCode

SECOND = 1_000_000_000
LIMITS = {"session_ms": 10_000, "rebalance_ms": 30_000}


class Told:
    """A group's events, in seconds."""

    def __init__(self, **settings: Any) -> None:
        self.history = GroupHistory("billing", **{"hears_all": True, **settings})
        self._row = 0

    def say(
        self, at: float, api: int, client: str, done: float | None = None, connection: int = 1, **said: Any
    ) -> None:
        done = at if done is None else done
        fields = GroupFields("billing", **said)
        event = GroupEvent(api, client, "10.0.0.1", connection, int(at * SECOND), int(done * SECOND), fields)
        self.history.add(self._row, event)
        self._row += 1

    def join(self, at: float, client: str, generation: int, members: str = "", done: float | None = None,
             member: str = "", **said: Any) -> None:  # fmt: skip
        listed = tuple((f"{each}-id", "") for each in members.split())
        self.say(at, ApiKey.JOIN_GROUP, client, done, member=member or f"{client}-id", now=generation, members=listed,
                 leads=bool(listed), **{"chosen": "range", **LIMITS, **said})  # fmt: skip

    def beat(self, at: float, client: str, generation: int, error: int = 0) -> None:
        self.say(at, ApiKey.HEARTBEAT, client, member=f"{client}-id", generation=generation, error=error)

    def leave(self, at: float, client: str, reason: str = "", by: str = "", member: str = "") -> None:
        gone = Departure(member or f"{client}-id", "", reason, 0)
        self.say(at, ApiKey.LEAVE_GROUP, by or client, departures=(gone,))

    def causes(self) -> list[tuple[CauseKind, str, bool]]:
        found = [each.cause for each in self.history.rebalances[1:]]
        return [(each.kind, each.member, each.sure) for each in found if each is not None]

    def sentence(self) -> str:
        return verdict(self.history).sentence


def test_a_member_that_does_not_lead_sees_that_another_one_changed() -> None:
    told = Told()
    told.join(1, "a", 1)
    told.beat(5, "a", 1, ErrorCode.REBALANCE_IN_PROGRESS)
    told.join(5.1, "a", 2, reason="group is already rebalancing")
    assert told.causes() == [(CauseKind.UNSEEN, "another member", False)]
    assert "it is not in this capture" in told.sentence()


def test_a_leader_is_told_who_came_and_who_went_elsewhere() -> None:
    told = Told()
    told.join(1, "a", 1, "a b")
    told.beat(5, "a", 1, ErrorCode.REBALANCE_IN_PROGRESS)
    told.join(5.1, "a", 2, "a b c")
    told.beat(9, "a", 2, ErrorCode.REBALANCE_IN_PROGRESS)
    told.join(9.1, "a", 3, "a c")
    assert told.causes() == [(CauseKind.JOINED, "c-id", True), (CauseKind.GONE, "b-id", False)]
    assert "it left or was removed: its own exchanges are not in this capture" in told.sentence()


@pytest.mark.parametrize(("at", "kind"), [(11.5, CauseKind.SESSION_TIMEOUT), (2.5, CauseKind.DROPPED)])
def test_a_removed_member_was_silent_or_the_cause_is_not_its_silence(at: float, kind: CauseKind) -> None:
    told = Told()
    told.join(1, "a", 1)
    told.beat(2, "a", 1)
    told.beat(at, "a", 1, ErrorCode.UNKNOWN_MEMBER_ID)
    told.join(at + 0.1, "a", 3, member="a-new-id")
    assert told.causes()[0] == (kind, "a", kind is CauseKind.SESSION_TIMEOUT)


def of_two(told: Told) -> None:
    told.join(1, "a", 1, "a b", done=2)
    told.join(1.5, "b", 1, done=2)


@pytest.mark.parametrize("done", [0, 9.02])
@pytest.mark.parametrize(("connection", "generation"), [(1, 3), (4, 2)])
def test_who_leaves_behind_its_own_join_leaves_the_generation_after_it(
    done: float, connection: int, generation: int
) -> None:
    """A broker reads what comes behind a JoinGroup when that is answered; on another connection at once."""
    told = Told()
    told.join(1, "a", 1, "a b", done=2, connection=1)
    told.join(1.5, "b", 1, done=2, connection=2)
    told.join(5, "c", 2, done=9, connection=3)
    told.join(5.1, "a", 2, "a b c", done=9.01, connection=1)
    gone = Departure("a-id", "", "", 0)
    told.say(6, ApiKey.LEAVE_GROUP, "a", done if connection == 1 else 6.01, connection=connection, departures=(gone,))
    told.join(8.9, "b", 2, done=9, connection=2)
    told.join(9.2, "c", 3, "b c", done=10, connection=3)
    told.join(9.9, "b", 3, done=10, connection=2)
    [left] = [(each.number, change.time_ns) for each in told.history.rebalances for change in each.left]
    assert left == (generation, int((9.01 if generation == 3 else 6) * SECOND))
    if generation == 3:
        assert told.causes() == [(CauseKind.JOINED, "c", True), (CauseKind.CLOSED, "a", False)]
        assert "its LeaveGroup waited 3 s behind its JoinGroup" in told.sentence()


@pytest.mark.parametrize(
    ("closed", "kind"), [(5, CauseKind.CRASH), (1, CauseKind.SESSION_TIMEOUT), (0, CauseKind.SESSION_TIMEOUT)]
)
def test_a_connection_that_closed_before_is_a_crash(closed: float, kind: CauseKind) -> None:
    told = Told(closed=lambda _connection: int(closed * SECOND))
    of_two(told)
    told.beat(4, "b", 1)
    told.beat(14, "a", 1, ErrorCode.REBALANCE_IN_PROGRESS)
    told.join(14.1, "a", 2, "a")
    assert told.causes() == [(kind, "b", True)]


@pytest.mark.parametrize(("took", "kind"), [(30, CauseKind.REBALANCE_TIMEOUT), (20, CauseKind.DROPPED)])
def test_a_member_that_the_others_waited_for_was_too_late(took: float, kind: CauseKind) -> None:
    """It was heard a second before, so it was not silent; but they waited as long as a member may take, or not."""
    told = Told()
    of_two(told)
    told.join(10, "c", 2, done=10 + took)
    told.beat(11, "b", 1, ErrorCode.REBALANCE_IN_PROGRESS)
    told.join(10.5, "a", 2, "a c", done=10 + took, reason="group is already rebalancing")
    [_, now] = told.history.rebalances
    assert now.cause is not None
    assert now.cause.kind is CauseKind.JOINED
    assert [each.kind for each in now.removals] == [kind]


@pytest.mark.parametrize(
    ("left", "back", "connection", "kind"),
    [
        (40, 41, 1, CauseKind.POLL_TIMEOUT), (40, 41, 2, CauseKind.LEFT), (20, 21, 1, CauseKind.UNSUBSCRIBED),
        (20, 21, 2, CauseKind.CLOSED),
    ],
)  # fmt: skip
def test_a_member_without_a_reason_may_have_been_late(
    left: float, back: float, connection: int, kind: CauseKind
) -> None:
    """Late is later than max.poll.interval.ms after it joined; not closed is back on the same connection."""
    told = Told()
    of_two(told)
    told.leave(left, "b")
    told.beat(left + 0.2, "a", 1, ErrorCode.REBALANCE_IN_PROGRESS)
    told.join(left + 0.3, "a", 2, "a", reason="group is already rebalancing")
    told.join(back, "b", 3, member="b-2-id", connection=connection)
    assert told.causes()[0] == (kind, "b", False)
    assert ("apparently" in told.sentence()) == (kind in (CauseKind.POLL_TIMEOUT, CauseKind.UNSUBSCRIBED))


def test_a_first_join_that_gets_its_id_and_a_leave_by_an_admin() -> None:
    told = Told()
    told.say(0.5, ApiKey.JOIN_GROUP, "a", member="a-id", error=ErrorCode.MEMBER_ID_REQUIRED)
    of_two(told)
    told.leave(5, "b", "moved", by="operator")
    told.beat(6, "a", 1, ErrorCode.REBALANCE_IN_PROGRESS)
    told.join(6.1, "a", 2, "a")
    assert told.causes() == [(CauseKind.ADMIN, "b", True)]
    assert told.sentence() == "billing rebalanced once because b was removed by an admin client: moved"


def leaves(times: int, pause: float, **settings: Any) -> Told:
    told = Told(**settings)
    of_two(told)
    at, generation = 10.0, 1
    for n in range(times):
        told.leave(at, "b", "consumer poll timeout has expired.", member="b-id" if n == 0 else f"b-{n}-id")
        told.join(at + 1, "a", generation + 1, "a")
        told.join(at + 2, "b", generation + 2, member=f"b-{n + 1}-id")
        at, generation = at + pause, generation + 2
    return told


@pytest.mark.parametrize(
    ("times", "pause", "loops"), [(2, 300, False), (3, 300, True), (3, 600, True), (3, 601, False), (9, 601, False)]
)
def test_a_member_that_goes_three_times_is_a_loop(times: int, pause: float, loops: bool) -> None:
    """Pauses may be ten minutes, or twice max.poll.interval.ms."""
    assert bool(leaves(times, pause).history.loops) == loops


def test_a_loop_counts_however_few_generations_are_kept() -> None:
    told = leaves(40, 60, most=3)
    assert (len(told.history.rebalances), told.history.tally.count) == (3, 80)
    assert "b left 40 times and came back: consumer poll timeout has expired" in told.sentence()


def test_a_member_whose_exchanges_are_there_is_not_said_to_be_elsewhere() -> None:
    told = Told()
    told.join(1, "a", 1)
    told.beat(2, "a", 1)
    told.beat(2.5, "a", 1, ErrorCode.UNKNOWN_MEMBER_ID)
    told.join(2.6, "a", 3, member="a-new-id")
    assert "not in this capture" not in told.sentence()
    assert "a is no longer in the group and came back: the capture does not show why (its last heart" in told.sentence()


def test_what_several_members_did_is_told_in_the_plural() -> None:
    told = Told()
    told.join(1, "a", 1, "a b c", done=2)
    told.join(1.2, "b", 1, done=2)
    told.join(1.4, "c", 1, done=2)
    told.leave(4, "b")
    told.join(4.5, "a", 2, "a c")
    told.join(4.4, "c", 2, done=4.5)
    told.leave(7, "c")
    told.join(7.5, "a", 3, "a")
    assert "2 members (b, c) left: their consumers were closed" in told.sentence()


def test_a_worker_of_connect_that_has_read_more_of_its_topic_rejoins_for_that() -> None:
    told = Told()
    for at, config_offset in enumerate((-1, 2, 2, 4), 1):
        told.join(at, "a", at, "a", chosen="sessioned", config_offset=config_offset)
    changed = (CauseKind.CONFIG, "a", False)
    assert told.causes() == [changed, (CauseKind.REJOINED, "a", True), changed]
    assert "its connectors or tasks changed, apparently" in told.sentence()
    assert all(each.cooperative for each in told.history.rebalances)


def test_a_worker_whose_earlier_offset_was_not_captured_may_have_read_nothing_since() -> None:
    told = Told()
    told.join(1, "a", 1, "a", chosen="sessioned")
    told.join(2, "a", 2, "a", chosen="sessioned", config_offset=4)
    assert told.causes() == [(CauseKind.REJOINED, "a", True)]


@pytest.mark.parametrize(("topics_key", "kind"), [(7, CauseKind.METADATA), (0, CauseKind.REJOINED)])
def test_only_a_leader_with_a_subscription_follows_its_topics(topics_key: int, kind: CauseKind) -> None:
    """Schema Registry has a group without topics."""
    told = Told()
    for at in (1, 2):
        told.join(at, "a", at, "a", topics_key=topics_key)
    assert told.causes() == [(kind, "a", kind is CauseKind.REJOINED)]


def join_of(at: int, **said: Any) -> GroupEvent:
    fields = {"client": "app", "member": f"m{at}", "now": 1, **said}
    client = fields.pop("client")
    return GroupEvent(
        ApiKey.JOIN_GROUP, client, fields.pop("host", "10.0.0.1"), 1, at * SECOND, at * SECOND + 1,
        GroupFields("billing", **LIMITS, **fields),
    )  # fmt: skip


def loop_of(at: int) -> list[GroupEvent]:
    heard = GroupFields("billing", f"m{at}", generation=2 * at + 1, error=ErrorCode.UNKNOWN_MEMBER_ID)
    beat = GroupEvent(ApiKey.HEARTBEAT, "app", "10.0.0.1", 1, at * SECOND + 9, at * SECOND + 10, heard)
    return [join_of(at, now=2 * at + 1), beat]


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize(
    "events",
    [
        lambda at: [join_of(at)],
        lambda at: [join_of(at, client=f"app-{at}")],
        lambda at: [join_of(at, host=f"host-{at}")],
        lambda at: [join_of(at, client=f"app-{at}", instance=f"pod-{at}")],
        lambda at: [join_of(at, client=f"app-{at}", now=at + 1)],
        loop_of,
    ],
    ids=["one client id", "client ids", "hosts", "instance ids", "generations", "loops"],
)
def test_an_event_costs_the_same_however_many_members_there_are(events: Any) -> None:
    """Counted in function calls and lines, not by a clock."""

    def cost(count: int) -> int:
        history, steps = GroupHistory("billing", hears_all=True), 0

        def trace(*_: object) -> Any:
            nonlocal steps
            steps += 1
            return trace

        before = sys.gettrace()
        sys.settrace(trace)
        try:
            for row, event in enumerate(each for at in range(count) for each in events(at)):
                history.add(row, event)
        finally:
            sys.settrace(before)
        return steps

    assert cost(600) < 3 * cost(300)


def test_causes_beyond_those_counted_one_by_one_count_once() -> None:
    told = Told()
    for at in range(1, MAX_CAUSES + 51):
        told.join(at, f"app-{at}", at)
    tally = told.history.tally
    assert len(told.history.rebalances) == MAX_CAUSES + 50
    for each in list(told.history.rebalances):
        assert each.cause is not None
    tally.take_back(told.history.rebalances[-1])
    tally.decided(told.history.rebalances[-1])
    assert sum(tally.causes.values()) == tally.count


@pytest.mark.parametrize(("sent", "noted"), [(11.0, 1), (9.5, 0)])
def test_a_generation_that_goes_back_is_told(sent: float, noted: int) -> None:
    """A response that was asked for before may come late; a later one is of another group of this name."""
    told = Told()
    told.join(1, "a", 6)
    told.join(9, "a", 7, "a", done=10)
    told.join(sent, "b", 1, "b", done=12)
    notes = told.history.rebalances[-1].noted
    words = "got generation 1, after 7: another group of this name, or a new one"
    assert [(each.member, each.words) for each in notes] == [("b", words)] * noted


def test_a_member_that_was_heard_while_the_others_rejoined_has_no_negative_silence() -> None:
    told = Told()
    of_two(told)
    told.join(10, "c", 2, done=12)
    told.beat(11, "b", 1)
    told.join(10.5, "a", 2, "a c", done=12)
    [removal] = told.history.rebalances[-1].removals
    assert removal.details == "its last heartbeat came only 0 ms before"


@pytest.mark.parametrize("words", [{"error": 0}, {"error": int(ErrorCode.UNKNOWN_MEMBER_ID)}])
def test_what_is_kept_of_a_generation_that_never_begins_is_bounded(words: dict[str, int]) -> None:
    told = Told()
    told.join(1, "a", 1, "a")
    for at in range(MAX_CHANGES + 50):
        told.join(2 + at, f"{at}", 1)
        if words["error"]:
            told.beat(2 + at, f"{at}", 1, **words)
        else:
            told.leave(2 + at, f"{at}")
    coming = told.history._state.next
    kept = (coming.triggers, coming.departed, coming.confirmed, coming.idle, coming.noted, coming.left)
    assert max(map(len, kept)) == MAX_CHANGES
