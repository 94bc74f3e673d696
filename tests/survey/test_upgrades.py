"""What reading the differences of each upgrade showed to be wrong, and must not come back; the page of upgrades."""

from pathlib import Path

import pytest

from dissector.analysis.baseline import hold, observe, read_baseline, write_baseline
from dissector.analysis.diff import DiffEntry, DiffReason
from dissector.analysis.diff.side_profile import SideProfile
from dissector.analysis.diff.summary import summary_lines
from dissector.analysis.outcomes import RuleOutcome, RuleStatus
from tests.analysis.diff.editing import Lines, compared, edited, side
from tools.lab.survey.clients import CLIENTS
from tools.lab.survey.earlier import EARLIER, EVERY_CLIENT
from tools.lab.survey.recording_files import recording_path
from tools.lab.survey.upgrades import MARKDOWN, changes, markdown, upgrades

pytestmark = pytest.mark.slow

REBALANCED = [client.name for client in EVERY_CLIENT if not client.refusal("rebalanced")]
QUICK = {"java-4.3", "kafka-go", "librdkafka-1.9"}
QUICK_UPGRADE = "kafka-go-0.4.40"
JOIN_REASON = ("JoinGroup", "reason")


def recorded(client: str, scenario: str = "plain", number: int = 1) -> str:
    return str(recording_path(client, scenario, number))


def entries(a: str, b: str, scenario: str = "plain") -> tuple[DiffEntry, ...]:
    return compared(recorded(a, scenario), recorded(b, scenario)).entries


def fields(found: tuple[DiffEntry, ...]) -> list[str]:
    return [".".join(filter(None, (each.api, each.part, each.path))) for each in found]


def held(first: str, second: str) -> list[RuleOutcome]:
    """What becomes of the baseline of one recording in another one."""
    baseline, lines = read_baseline(write_baseline(observe(SideProfile(side(first), {}, {}))[0]))
    return hold(SideProfile(side(second), {}, {}), baseline, lines, file="orders.toml")


def outcomes(client: str, first: str, second: str) -> list[RuleOutcome]:
    return held(recorded(client, first), recorded(client, second))


@pytest.mark.parametrize(
    "client", [pytest.param(each, marks=() if each in QUICK else pytest.mark.exhaustive) for each in REBALANCED]
)
def test_a_baseline_holds_a_client_whose_group_rebalances(client: str) -> None:
    """Java looks up the end of its offset's epoch after a rebalance, and never otherwise; kafka-go's limits depend on
    how long the topic's name is. In both directions: either recording may be the baseline."""
    for pair in (("plain", "rebalanced"), ("rebalanced", "plain")):
        broken = [(each.rule, each.message) for each in outcomes(client, *pair) if each.status is RuleStatus.BROKEN]
        assert broken == []


@pytest.mark.exhaustive
def test_a_baseline_catches_each_upgrade() -> None:
    """kafka-go's changes one version."""
    for older, newer in upgrades():
        found = held(recorded(older.name), recorded(newer.name))
        broken = {each.rule: each.message for each in found if each.status is RuleStatus.BROKEN}
        assert broken, older.name
        if older.name == QUICK_UPGRADE:
            assert broken == {"versions.JoinGroup": "v1 → v2"}


def test_what_is_requested_on_occasion_is_said_to_be_unseen() -> None:
    for pair, words in ((("plain", "rebalanced"), "not requested → v4"), (("rebalanced", "plain"), "v4 → not req")):
        [found] = [each for each in outcomes("java-4.3", *pair) if each.rule == "versions.OffsetForLeaderEpoch"]
        assert found.status is RuleStatus.NOT_SEEN
        assert found.message.startswith(words)


def test_a_rebalance_is_no_setting_and_no_lack_of_heartbeats() -> None:
    """The rebalanced member joins three times; all of its heartbeats tell it of a rebalance."""
    found = compared(recorded("java-4.3"), recorded("java-4.3", "rebalanced")).entries
    [joins] = [each for each in found if (each.api, each.part, each.path) == ("JoinGroup", "", "")]
    assert (joins.a, joins.b, joins.settings) == ("1", "3", ())
    assert "responses with REBALANCE_IN_PROGRESS: {a} 0, {b} 2" in joins.explanation
    assert not [each for each in found if each.api == "Heartbeat"]


@pytest.mark.parametrize(
    "client", [pytest.param(each, marks=() if each in QUICK else pytest.mark.exhaustive) for each in REBALANCED]
)
def test_a_rebalance_is_one_difference(client: str) -> None:
    """With all that a client does again, on further connections, and what it gets from the member that visited."""
    pair = recorded(client), recorded(client, "rebalanced")
    for sides in (pair, pair[::-1]):
        assert fields(compared(*sides).entries) == ["JoinGroup"]


def without_news(lines: Lines) -> Lines:
    return [each for each in lines if each["api"] != "Heartbeat"]


def test_what_is_done_again_without_a_rebalance_is_a_difference(tmp_path: Path) -> None:
    """Nothing tells a client to look up more offsets that joins more often for reasons of its own."""
    quiet = edited(recorded("platformatic", "rebalanced"), tmp_path, without_news)
    found = compared(recorded("platformatic"), quiet).entries
    assert {"JoinGroup", "ListOffsets"} <= set(fields(found))
    assert not [each for each in found if "REBALANCE_IN_PROGRESS" in each.explanation]


@pytest.mark.parametrize("client", ["java-4.3", "franz-go", "librdkafka-2.16", "kafkajs"])
def test_what_follows_from_joining_again_is_part_of_it(client: str) -> None:
    """The rebalanced member says its generation, what it owned and why it joins, and looks up its offsets again."""
    pair = recorded(client, "plain", 2), recorded(client, "rebalanced")
    for sides in (pair, pair[::-1]):
        found = compared(*sides).entries
        [joins] = [each for each in found if (each.api, each.part, each.path) == ("JoinGroup", "", "")]
        assert "OffsetFetch number of requests" in joins.explanation
        alone = {"JoinGroup.request.reason", "OffsetFetch", *(
            f"JoinGroup.request.protocols.metadata.{name}" for name in ("generation_id", "owned_partitions")
        )}  # fmt: skip
        assert not alone & set(fields(found))


def test_who_never_says_what_it_owned_differs_however_often_both_join() -> None:
    """Java's eager assignor says nothing, franz-go's cooperative one does; both join three times."""
    found = fields(compared(recorded("java-4.3", "rebalanced"), recorded("franz-go", "rebalanced")).entries)
    assert "JoinGroup.request.protocols.metadata.owned_partitions" in found


@pytest.mark.long
def test_subscriptions_of_members_that_are_not_recorded_are_not_compared() -> None:
    """The leader is told of the visitor's subscription, which has version 0."""
    for client in ("java-4.3", "librdkafka-2.16"):
        found = fields(compared(recorded(client), recorded(client, "rebalanced")).entries)
        assert not [each for each in found if each.startswith("JoinGroup.response.members.metadata")]


def test_lost_commits_stand_for_their_attempts_and_connections() -> None:
    """sarama 1.38 commits with v1, upon which a broker of Kafka 4 closes the connection: 12 times here."""
    first, *others = entries("sarama-1.38", "sarama")
    assert (first.api, first.reason, first.a, first.b) == ("OffsetCommit", DiffReason.UNANSWERED, "12 of 12", "0 of 1")
    assert "OffsetCommit" not in fields(tuple(others))
    assert "connections" not in fields(tuple(others))


def test_connections_that_are_closed_again_and_again_are_not_counted() -> None:
    """9 of 16 connections fetched nothing before they were closed in the first recording, 10 in the second."""
    assert fields(compared(recorded("sarama-1.38"), recorded("sarama-1.38", number=2)).entries) == []


def test_a_client_with_a_random_pause_sends_any_number_of_requests() -> None:
    """kafka-go asks for metadata after a random part of 6 s: 3 and 8 times in 8 s."""
    assert fields(compared(recorded("kafka-go-0.4.40"), recorded("kafka-go-0.4.40", number=2)).entries) == []


@pytest.mark.long
def test_ids_and_times_of_a_run_of_streams_are_not_compared() -> None:
    """A process has a random id in the subscription; offsets are committed with a time in base64."""
    for client in ("streams-3.4", "streams-4.3"):
        assert fields(compared(recorded(client), recorded(client, number=2)).entries) == []


def test_how_many_sessions_are_used_hides_nothing() -> None:
    """Streams 4.3 closes its sessions; the session of its second consumer has more than one Fetch."""
    found = entries("streams-3.4", "streams-4.3")
    assert "Fetch.request.session_id" not in fields(found)
    [closing] = [each for each in found if each.subject == "for closing a session"]
    assert (closing.a, closing.b) == ("0", "2")


def test_requests_for_no_topics_create_none() -> None:
    """Streams' second consumer forbids it, where it asks for no topics, and only the older release asks."""
    found = entries("streams-3.4", "streams-4.3")
    assert "Metadata.request.allow_auto_topic_creation" not in fields(found)


@pytest.mark.long
@pytest.mark.parametrize("client", ["librdkafka-1.9", "kafka-python-2.0", "kafka-go-0.4.40"])
def test_which_member_gets_which_partitions_is_chance(client: str) -> None:
    [newer] = [each.newer for each in EARLIER if each.name == client]
    assert not [each for each in fields(entries(client, newer, "group-classic")) if each.endswith(".partitions")]


@pytest.mark.parametrize("client", ["kafka-python-2.0", "aiokafka-0.8", "sarama-1.38"])
def test_the_id_that_a_newer_coordinator_demands_follows_from_the_version(client: str) -> None:
    """Although the second join of each member has an id in both releases."""
    [newer] = [each.newer for each in EARLIER if each.name == client]
    found = entries(client, newer, "group-classic")
    assert "JoinGroup.request.member_id" not in fields(found)
    [version] = [each for each in found if (each.api, each.path) == ("JoinGroup", "version")]
    assert "also changes request.member_id" in version.explanation


@pytest.mark.parametrize("client", ["java-2.8", "java-3.4", "franz-go-1.15"])
def test_a_newer_end_of_transactions_implies_their_partitions(client: str) -> None:
    """Both newer releases end them with v5, before which partitions are added by a request of its own (KIP-890)."""
    [newer] = [each.newer for each in EARLIER if each.name == client]
    found = entries(client, newer, "transactional")
    assert "AddPartitionsToTxn" not in fields(found)
    [version] = [each for each in found if (each.api, each.path) == ("EndTxn", "version")]
    assert version.b == "v5"
    assert "also changes AddPartitionsToTxn requests" in version.explanation


@pytest.mark.long
def test_what_a_release_says_of_its_joins_is_one_difference_for_all_groups() -> None:
    """Connect's workers give no reason to join again; its consumers do. Both did with Java 3.4."""
    [reason] = [each for each in entries("connect-3.4", "connect-4.3") if (each.api, each.path) == JOIN_REASON]
    assert reason.a == "empty, rebalance failed due to MemberIdRequiredException"
    assert reason.b == "empty, need to re-join with the given member-id: a member"
    assert reason.subject == ""


@pytest.mark.long
def test_how_many_members_join_again_is_no_difference_of_what_they_say() -> None:
    """Two members of group-classic, one of plain."""
    [reason] = [each for each in entries("java-3.4", "java-4.3", "group-classic") if each.path == JOIN_REASON[1]]
    assert reason.b == "group is already rebalancing, need to re-join with the given member-id: a member"
    one, two = (recorded("java-4.3", name) for name in ("plain", "group-classic"))
    for sides in ((one, two), (two, one)):
        assert "#" not in " ".join(each.a + each.b for each in compared(*sides).entries if each.path == JOIN_REASON[1])


@pytest.mark.long
def test_texts_that_differ_at_their_ends_are_whole() -> None:
    """franz-go says where it joins again, after what both releases say."""
    found = entries("franz-go-1.15", "franz-go", "group-classic")
    [reason] = [each for each in found if (each.api, each.path) == JOIN_REASON]
    last = "after revoking what we lost from a rebalance"
    assert [text.rpartition(", ")[2] for text in (reason.a, reason.b)] == [f"cooperative rejoin {last}", last]
    [line] = [line for line in summary_lines(found) if line.startswith("Groups")]
    assert "reason cooperative rejoin af… vs after revoking what w…" in line


@pytest.mark.long
def test_what_a_session_forgets_is_the_programs_progress() -> None:
    """A consumer of Streams 4.3 no longer reads a changelog; neither release did in the other recordings."""
    assert "Fetch.request.forgotten_topics_data" not in fields(entries("streams-3.4", "streams-4.3"))


@pytest.mark.parametrize("client", ["kafka-python-2.0", "sarama-1.38"])
def test_when_a_member_looks_up_its_offset_is_no_difference(client: str) -> None:
    """Before the first commit of its group, and after a rebalance again."""
    [newer] = [each.newer for each in EARLIER if each.name == client]
    assert "OffsetFetch.response.topics.partitions.committed_offset" not in fields(
        entries(client, newer, "group-classic")
    )


def test_lookups_after_lost_commits_follow_from_them() -> None:
    """sarama 1.38 looks for the coordinator after each of the 12 commits that it loses."""
    first, *others = entries("sarama-1.38", "sarama")
    assert first.explanation.endswith("; also changes FindCoordinator number of requests")
    assert "FindCoordinator" not in fields(tuple(others))


def test_a_version_before_that_implies_none() -> None:
    """sarama ends transactions with v0 and v3, and adds partitions in both releases."""
    found = entries("sarama-1.38", "sarama", "transactional")
    [version] = [each for each in found if (each.api, each.path) == ("EndTxn", "version")]
    assert (version.a, version.b) == ("v0", "v3")
    assert "AddPartitionsToTxn" not in version.explanation


@pytest.mark.parametrize("client", [each.name for each in EARLIER if each.only])
def test_the_frameworks_have_no_other_task(client: str) -> None:
    [found] = [each for each in EARLIER if each.name == client]
    assert found.refusal("plain") == ""
    assert found.refusal("transactional") == "is not for clients"


def test_every_earlier_release_has_a_newer_one() -> None:
    names = {each.name for each in EVERY_CLIENT}
    assert len(names) == len(EVERY_CLIENT)
    assert {each.newer for each in EARLIER if each.newer} <= names
    assert all(each.newer for each in EARLIER if each.name not in {other.newer for other in EARLIER})
    assert not [each for each in CLIENTS if each.only]


@pytest.mark.long
def test_the_page_has_one_row_for_what_several_scenarios_show() -> None:
    """Only in group-classic does Java have one more reason, which both releases give."""
    [upgrade] = [each for each in upgrades() if each.older.name == "java-3.4"]
    [proofs] = [found for change, found in changes(upgrade).items() if change.subject == "JoinGroup request.reason"]
    assert [scenario for scenario, _ in proofs] == ["group-classic", "plain", "transactional"]


@pytest.mark.long
def test_the_page_has_each_upgrade() -> None:
    committed = MARKDOWN.read_text(encoding="utf-8")
    assert committed.count("\n## ") == len(list(upgrades()))
    [quick] = [each for each in upgrades() if each.older.name == QUICK_UPGRADE]
    assert markdown([quick]).partition("\n## ")[2] in committed


@pytest.mark.exhaustive
def test_the_page_is_that_of_the_recordings() -> None:
    assert MARKDOWN.read_text(encoding="utf-8") == markdown(upgrades())
