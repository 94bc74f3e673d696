"""What five recordings of each client, some with rebalances, showed to be chance, and must not come back as a
difference; beside each, what is none."""

import copy
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dissector.analysis.diff import DiffReason
from tests.analysis.diff.editing import Lines, compared, edited, entry_texts, lines_of, of, only
from tests.analysis.diff.elsewhere import FURTHER_ID, NOT_LEADER
from tests.survey.recorded import plain, text_of
from tools.lab.survey.recording_files import recording_path

pytestmark = pytest.mark.slow

LOOKUPS = ("OffsetFetch", "ListOffsets")


def rebalanced(client: str) -> str:
    return str(recording_path(client, "rebalanced"))


def after(lines: Lines, moved: Lines, before: int) -> Lines:
    """Move exchanges behind the one with a number."""
    [last] = [line for line in lines if line["number"] == before]
    for n, line in enumerate(moved, 1):
        for part in ("request", "response"):
            line[part]["time_ns"] = last["response"]["time_ns"] + 100_000 * n
    rest = [line for line in lines if line["number"] not in {each["number"] for each in moved}]
    at = rest.index(last) + 1
    return [*rest[:at], *moved, *rest[at:]]


def again(line: dict[str, Any], number: int = 1) -> Lines:
    """Further ones of an exchange, on its connection."""
    more = []
    for n in range(1, number + 1):
        other = copy.deepcopy(line)
        other["number"] = 100_000 * n
        for each in (other, other["request"]["header"], other["response"]["header"]):
            each["correlation_id"] += FURTHER_ID + n
        more.append(other)
    return more


def looking_up_after(joins: int) -> Callable[[Lines], Lines]:
    """Let another member come before the first lookups: the client makes them after so many joins."""

    def edit(lines: Lines) -> Lines:
        first = [next(line for line in lines if line["api"] == api) for api in LOOKUPS]
        return after(lines, first, of(lines, "SyncGroup")[joins - 1]["number"])

    return edit


def told_nothing(lines: Lines) -> Lines:
    return [line for line in lines if line["api"] != "Heartbeat"]


def test_when_a_rebalance_comes_is_no_difference(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Before a member looks up its offsets or after that, twice or once; and without the word of a rebalance it is."""
    path = rebalanced("kafka-python")
    assert compared(path, edited(path, tmp_path, looking_up_after(2))).is_same
    quiet = edited(path, tmp_path_factory.mktemp("quiet"), told_nothing)
    entry = only(compared(quiet, edited(quiet, tmp_path, looking_up_after(2))))
    assert (entry.api, entry.reason) == ("JoinGroup", DiffReason.ORDER)


NO_PARTITIONS = bytes(10).hex()
"""Of an assignment in version 0, without user data."""


def joining_early(assigned: str, *, asks: bool = True) -> Callable[[Lines], Lines]:
    """Let a leader assign this before what it assigned, and join again then; `asks` whether it asks for metadata."""

    def edit(lines: Lines) -> Lines:
        join, sync = (of(lines, api)[0] for api in ("JoinGroup", "SyncGroup"))
        more = [*again(join), *again(sync)]
        more[0]["request"]["body"]["member_id"] = join["response"]["body"]["member_id"]
        bodies = sync["request"]["body"]["assignments"][0], sync["response"]["body"]
        for body in bodies if assigned else ():
            body["assignment"] = assigned
            del body["assignment_decoded"]
        asked = [line for line in of(lines, "Metadata") if line["number"] > sync["number"] and not asks]
        return after([line for line in [*lines, *more] if line not in asked], more, sync["number"])

    return edit


@pytest.mark.parametrize(
    ("assigned", "asks", "differs"), [(NO_PARTITIONS, False, False), ("", True, False), ("", False, True)]
)
def test_a_leader_that_does_not_know_its_topics_joins_again(
    assigned: str, tmp_path: Path, *, asks: bool, differs: bool
) -> None:
    """kafka-python 2.0 did so in two of five recordings, and 3.0 while it asked for metadata again. One that had
    assigned partitions, and did not ask, joins for another reason."""
    path = plain("kafka-python-2.0")
    entries = entry_texts(compared(path, edited(path, tmp_path, joining_early(assigned, asks=asks))))
    assert entries == ([("JoinGroup", "", "count", "1", "2")] if differs else [])


def more_lookups(number: int) -> Callable[[Lines], Lines]:
    def edit(lines: Lines) -> Lines:
        at = lines.index(of(lines, "ListOffsets")[-1])
        return [*lines[: at + 1], *again(lines[at], number), *lines[at + 1 :]]

    return edit


def test_how_many_lookups_rebalances_bring_is_no_difference(tmp_path: Path) -> None:
    """Twice as many; more have another cause, and so have any without a rebalance."""
    path = rebalanced("kafka-python")
    assert compared(path, edited(path, tmp_path, more_lookups(1))).is_same
    entry = only(compared(path, edited(path, tmp_path, more_lookups(2))))
    assert (entry.api, entry.reason, entry.a, entry.b) == ("ListOffsets", DiffReason.COUNT, "1", "3")
    path = plain("kafka-python")
    assert only(compared(path, edited(path, tmp_path, more_lookups(1)))).api == "ListOffsets"


def test_heartbeats_that_are_told_of_a_rebalance_are_no_interval_of_a_client() -> None:
    """kafkajs sends two of them within 74 ms and within 1 ms; franz-go has further ones, every three seconds."""
    for name in ("rebalanced", "group-classic"):
        assert "heartbeat interval" not in text_of(str(recording_path("kafkajs", name)))
    assert '"heartbeat interval (ms)" = 3002' in text_of(rebalanced("franz-go"))


def asking_first(number: int) -> Callable[[Lines], Lines]:
    """Let the client ask for brokers alone before its program names a topic."""

    def edit(lines: Lines) -> Lines:
        at = lines.index(of(lines, "Metadata")[0])
        more = again(lines[at], number)
        for line in more:
            for part in ("request", "response"):
                line[part]["body"]["topics"] = []
        return [*lines[:at], *more, *lines[at:]]

    return edit


def test_who_connects_before_it_knows_a_topic_is_no_other_client(tmp_path_factory: pytest.TempPathFactory) -> None:
    """librdkafka 2.6 asks for no topics in one of three recordings; not of another client, and not twice."""
    path = plain("librdkafka-2.6")
    once, twice = (edited(path, tmp_path_factory.mktemp("asking"), asking_first(n)) for n in (1, 2))
    assert compared(path, once).is_same
    assert compared(once, path).is_same
    entry = only(compared(path, twice))
    assert (entry.api, entry.subject, entry.a, entry.b) == ("Metadata", "for no topics", "0", "2")
    assert ("Metadata", "", "only on one side", "0", "1") in entry_texts(compared(plain("franz-go"), once))


def asking_for_the_end(lines: Lines) -> Lines:
    """Look up the end of a topic, too, whose first offset was looked up."""
    first = next(line for line in of(lines, "ListOffsets")
                 if line["request"]["body"]["topics"][0]["name"].startswith("orders"))  # fmt: skip
    [more] = again(first)
    for partition in more["request"]["body"]["topics"][0]["partitions"]:
        partition["timestamp"] = -1
    return [*lines[: lines.index(first) + 1], more, *lines[lines.index(first) + 1 :]]


def test_a_lookup_of_the_end_is_a_difference_where_the_other_side_has_none(tmp_path: Path) -> None:
    """Streams looks up the ends of changelogs anyway, and that of its topic when it waits; a consumer does not."""
    path = plain("streams-4.3")
    assert compared(path, edited(path, tmp_path, asking_for_the_end)).is_same
    path = plain("java-4.3")
    found = compared(path, edited(path, tmp_path, asking_for_the_end)).entries
    assert ("timestamp", "-2 EARLIEST, -1 LATEST") in [(each.path.rpartition(".")[2], each.b) for each in found]


def fetching_once(lines: Lines) -> Lines:
    """Leave each connection its first Fetch."""
    first = {line["connection"]: line["number"] for line in reversed(of(lines, "Fetch"))}
    return [line for line in lines if line["api"] != "Fetch" or line["number"] in first.values()]


def fetching_on_one_connection(lines: Lines) -> Lines:
    [busiest, _] = Counter(line["connection"] for line in of(lines, "Fetch")).most_common(1)[0]
    return [line for line in lines if line["api"] != "Fetch" or line["connection"] == busiest]


def test_fetches_between_lost_commits_are_no_count(tmp_path: Path) -> None:
    """sarama 1.38 fetches once or twice on each connection before it is closed, on how many is a difference."""
    path = plain("sarama-1.38")
    once = edited(path, tmp_path, fetching_once)
    assert (len(of(lines_of(path), "Fetch")), len(of(lines_of(once), "Fetch"))) == (7, 4)
    assert compared(path, once).is_same
    found = compared(path, edited(path, tmp_path, fetching_on_one_connection)).entries
    assert ("Fetch", "", DiffReason.COUNT) in [(each.api, each.path, each.reason) for each in found]


def refused_at_first(api: str) -> Callable[[Lines], Lines]:
    """Let the broker refuse a first request, 60 ms before it is sent again."""

    def edit(lines: Lines) -> Lines:
        at = lines.index(of(lines, api)[0])
        [refused] = again(lines[at])
        for topic in refused["response"]["body"]["topics" if api == "ListOffsets" else "responses"]:
            for partition in topic["partitions"]:
                partition["error_code"] = NOT_LEADER
        for line in lines[at:]:
            for part in ("request", "response"):
                line[part]["time_ns"] += 60_000_000
        return [*lines[:at], refused, *lines[at:]]

    return edit


def test_a_lookup_is_made_again_after_no_back_off(tmp_path: Path) -> None:
    """It waits for the metadata that name the leader: MirrorMaker's 10 to 117 ms. A refused Fetch has a back-off."""
    path = plain("java-4.3")
    assert "back-off" not in text_of(edited(path, tmp_path, refused_at_first("ListOffsets")))
    assert "back-off" in text_of(edited(path, tmp_path, refused_at_first("Fetch")))
