"""Groups that rebalance for known causes, at a real broker: verdicts, held to the log of the group's coordinator."""

import re
from pathlib import Path

import pytest

from dissector.groups.verdict import verdict
from tests.conftest import PCAPS
from tests.groups.reading import histories

RECORDED = sorted((PCAPS / "groups").glob("*.pcapng.gz"))
WORDS = {
    "coordinator": ["rebalanced once because worker-b joined"],
    "crash": ["worker-c was removed: its connection had closed without a LeaveGroup", "session.timeout.ms is 10 s"],
    "crash-kip848": ["worker-c was removed: its connection had closed without a LeaveGroup"],
    "deployment": ["because 5 members (worker-1, worker-2, worker-3, …) joined;"],
    "deployment-cooperative": ["because 5 members (worker-1, worker-2, worker-3, …) joined;", "the second step"],
    "deployment-kip848": ["because 5 members (worker-1, worker-2, worker-3, …) joined;"],
    "enforced": ["worker-b requested it: a warm cache is on another host"],
    "fenced-kip848": ["worker-c was fenced (FENCED_MEMBER_EPOCH)", "gives up its partitions and joins again",
                      "2 members (worker-c, worker-b) joined; 2 members (worker-c, worker-b) left"],
    "frozen": ["worker-c was removed and came back: no heartbeat came within its session timeout",
               "its last heartbeat came 10 s before, session.timeout.ms is 10 s"],
    "frozen-kip848": ["worker-c was removed and came back: no heartbeat came within its session timeout"],
    "partitions": ["worker-a requested it as leader: cached metadata has changed"],
    "poll-timeout": ["20 times", "worker-a left 10 times and came back: consumer poll timeout has expired",
                     "max.poll.interval.ms is 3 s", "Process less per poll (max.poll.records)"],
    "poll-timeout-45s": ["8 times in 3 min because worker-a left 4 times and came back: consumer poll timeout"],
    "poll-timeout-5min": ["4 times in 15 min 40 s because worker-a left 3 times and came back: consumer poll timeout",
                          "max.poll.interval.ms is 5 min"],
    "poll-timeout-76s": ["8 times in 5 min 5 s because worker-a left 4 times and came back: consumer poll timeout"],
    "poll-timeout-kip848": ["worker-a left 3 times and came back", "did not call poll within max.poll.interval.ms, "
                            "apparently (max.poll.interval.ms is 4 s)"],
    "protocols": ["did not rebalance", "worker-b was refused (INCONSISTENT_GROUP_PROTOCOL)"],
    "removed": ["worker-b was removed by an admin client and came back: moved to another cluster"],
    "rolling-restart": ["3 members (worker-0, worker-1, worker-2) left and came back: a rolling restart"],
    "rolling-restart-static": ["static members came back 3 times without a rebalance"],
    "same-instance": ["did not rebalance in generation 1; worker-a was fenced (FENCED_INSTANCE_ID)"],
    "same-instance-kip848": ["worker-b was refused (UNRELEASED_INSTANCE_ID)"],
    "static-restart-too-slow": ["worker-0 was removed and came back: it has a group.instance.id, and was away"],
    "subscription": ["worker-b changed its subscription: now orders, refunds"],
}  # fmt: skip
LOOPS = {"poll-timeout", "poll-timeout-45s", "poll-timeout-5min", "poll-timeout-76s", "poll-timeout-kip848"}


def name_of(path: Path) -> str:
    return path.name.partition(".")[0]


@pytest.mark.slow
@pytest.mark.parametrize("path", RECORDED, ids=name_of)
def test_a_verdict_names_the_cause_and_only_loops_are_loops(path: Path) -> None:
    history = histories(str(path))["billing"]
    sentence = verdict(history).sentence
    assert not [words for words in WORDS[name_of(path)] if words not in sentence], sentence
    assert bool(history.loops) == (name_of(path) in LOOPS)


@pytest.mark.slow
@pytest.mark.parametrize("path", RECORDED, ids=name_of)
def test_generations_and_removals_are_those_of_the_coordinators_log(path: Path) -> None:
    log = path.with_name(f"{name_of(path)}.group.log").read_text()
    history = histories(str(path))["billing"]
    known = history.rebalances
    if history.kind == "classic":
        assert [each.number for each in known] == [int(n) for n in re.findall(r"Stabilized group .* (\d+) with", log)]
    else:
        bumped = {int(n) for n in re.findall(r"Bumped group epoch to (\d+)", log)}
        assert {each.number for each in known} <= bumped
        assert sum(each.missed for each in known) + len(known) + 1 >= len(bumped)
    left = len(re.findall(r"has left group|left the consumer group|temporarily left", log))
    removed = set(re.findall(r"Member (\S+) .*(?:has failed, removing|fenced from the group)", log))
    assert len([change for each in known for change in each.removed]) == len(removed)
    told = [change for each in (*known, history.rest) for change in each.left]
    away = [change for each in (*known, history.rest) for change in each.noted if "left temporarily" in change.words]
    assert len(told) + len(away) == left


@pytest.mark.parametrize("name", ["poll-timeout", "deployment", "removed"])
def test_reasons_on_the_wire_are_those_of_the_coordinators_log(name: str) -> None:
    log = (PCAPS / "groups" / f"{name}.group.log").read_text()
    history = histories(str(PCAPS / "groups" / f"{name}.pcapng.gz"))["billing"]
    logged = re.findall(r"has left group .*client reason: (.*)", log)
    told = [change.words for each in (*history.rebalances, history.rest) for change in each.left]
    assert sorted(told) == sorted(logged) != []
