"""The same program in another cluster, under other names, is the same; one change of it is one difference, which a
baseline names."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dissector.analysis.baseline.holding import SOFTWARE
from dissector.analysis.diff import DiffReason, build_matrix
from dissector.analysis.diff.batching import MIN_BATCHES
from dissector.analysis.diff.frequency_comparison import RETRY_TOLERANCE
from dissector.analysis.diff.side_profile import SideProfile
from dissector.analysis.outcomes import RuleStatus
from tests.analysis.diff.editing import Lines, compared, edited, entry_texts, of, only, side
from tests.analysis.diff.elsewhere import elsewhere, refused_first, renamed
from tests.survey.recorded import NAMES, QUICK, each_client, held, outcomes, plain, text_of
from tools.lab.survey.earlier import EARLIER
from tools.lab.survey.recording_files import RECORDINGS, recording_path

pytestmark = pytest.mark.slow

CUT_OFF = ("broker-restarted", "auth-refused")
"""Scenarios in which the broker closes connections: a copy has no ends of connections."""
COPIED = {
    f"{path.parent.name}-{path.name[:-13]}": path
    for path in sorted(RECORDINGS.glob("*/*-1.pcapng.zst"))
    if not path.name.startswith(CUT_OFF)
}
LINGER_MS = 40


@pytest.mark.long
@each_client
def test_the_same_program_elsewhere_does_not_differ(client: str, tmp_path: Path) -> None:
    assert entry_texts(compared(plain(client), edited(plain(client), tmp_path, elsewhere(plain(client))))) == []


@pytest.mark.exhaustive
@pytest.mark.parametrize("recording", COPIED)
def test_the_same_program_elsewhere_does_not_differ_in_any_scenario(recording: str, tmp_path: Path) -> None:
    """But for the records that Connect and MirrorMaker write, which name topics, groups and files: they differ."""
    path = str(COPIED[recording])
    found = entry_texts(compared(path, edited(path, tmp_path, elsewhere(path))))
    is_writer = recording.startswith(("connect-", "mirror-maker-"))
    assert [each for each in found if not (is_writer and each[2] == "record content")] == []


@pytest.mark.long
@each_client
def test_the_same_program_elsewhere_holds_its_baseline(client: str, tmp_path: Path) -> None:
    assert held(text_of(plain(client)), edited(plain(client), tmp_path, elsewhere(plain(client)))) == {}


@pytest.mark.long
def test_many_refused_batches_are_one_difference_and_no_further_records(tmp_path: Path) -> None:
    steady = str(recording_path("franz-go", "leader-moved"))
    few, many = RETRY_TOLERANCE, RETRY_TOLERANCE + 1
    assert compared(steady, edited(steady, tmp_path, refused_first(few))).is_same
    entry = only(compared(steady, edited(steady, tmp_path, refused_first(many))))
    assert (entry.api, entry.reason) == ("Produce", DiffReason.COUNT)
    assert entry.explanation == "retries after NOT_LEADER_OR_FOLLOWER"
    assert entry.count_b - entry.count_a == many


def batches(lines: Lines) -> Iterator[dict[str, Any]]:
    """The batches of all Produce requests."""
    for line in of(lines, "Produce"):
        for topic in line["request"]["body"]["topic_data"]:
            for partition in topic["partition_data"]:
                yield from (partition["records"] or {}).get("batches", [])


def codec(lines: Lines) -> None:
    for batch in batches(lines):
        batch["attributes"] = batch["attributes"] & ~7 | 4
        batch.pop("compressed", None)


def acks(lines: Lines) -> None:
    for line in of(lines, "Produce"):
        line["request"]["body"]["acks"] = 1 if line["request"]["body"]["acks"] == -1 else -1


def min_bytes(lines: Lines) -> None:
    for line in of(lines, "Fetch"):
        body = line["request"]["body"]
        if not (body.get("session_id") and body["session_epoch"] == -1):  # which closes a session
            body["min_bytes"] = 5_000


def assignor(lines: Lines) -> None:
    """Offer another one in place of the first."""
    first = of(lines, "JoinGroup")[0]["request"]["body"]["protocols"][0]["name"]
    for line in lines:
        if line["api"] in ("JoinGroup", "SyncGroup"):
            line.update(renamed({f"{first}": "x" * len(first)})([line])[0])


def session_timeout(lines: Lines) -> None:
    for line in of(lines, "JoinGroup"):
        line["request"]["body"]["session_timeout_ms"] = 12_345


def upgrade(lines: Lines) -> None:
    for line in of(lines, "ApiVersions"):
        if "client_software_version" in line["request"]["body"]:
            line["request"]["body"]["client_software_version"] = "99.9"


CHANGES: dict[str, tuple[Callable[[Lines], None], tuple[str, str], str]] = {
    "codec": (codec, ("Produce", "topic_data.partition_data.records.compression"), "settings.compression"),
    "acks": (acks, ("Produce", "acks"), "settings.acks"),
    "fetch.min.bytes": (min_bytes, ("Fetch", "min_bytes"), "settings.fetch min bytes"),
    "assignor": (assignor, ("JoinGroup", "protocols"), "settings.assignors"),
    "session timeout": (session_timeout, ("JoinGroup", "session_timeout_ms"), "settings.session timeout (ms)"),
    "upgrade": (upgrade, ("ApiVersions", "client_software_version"), SOFTWARE),
}
"""By what the user changes: the edit, API and path of the only entry, the only line of a baseline that is not held."""
CANNOT: dict[tuple[str, str], str] = {
    ("rskafka", "assignor"): "it has no groups",
    ("rskafka", "session timeout"): "it has no groups",
    **{
        (client, "acks"): "it asks for no response, and the copy would lack those"
        for client in ("kafka-go", "kafka-go-0.4.40")
    },
    **{
        (client, "upgrade"): "it does not say what it is"
        for client in (
            "aiokafka",
            "aiokafka-0.8",
            "kafka-go",
            "kafka-go-0.4.40",
            "kafka-python-2.0",
            "kafkajs",
            "sarama-1.38",
        )
    },
}


@pytest.mark.parametrize(
    ("client", "change"),
    [
        pytest.param(client, change, marks=() if client in QUICK else pytest.mark.exhaustive)
        for client in (*NAMES, *(each.name for each in EARLIER if not each.only))
        for change in CHANGES
        if (client, change) not in CANNOT
    ],
)
def test_one_change_is_one_difference_and_one_line_of_a_baseline(client: str, change: str, tmp_path: Path) -> None:
    edit, place, rule = CHANGES[change]
    path = edited(plain(client), tmp_path, edit)
    entry = only(compared(plain(client), path))
    assert (entry.api, entry.path) == place
    not_held = {each.rule for each in outcomes(text_of(plain(client)), path) if each.status is not RuleStatus.HELD}
    assert not_held == {rule}


def static(lines: Lines) -> None:
    """Make the member a static one: in all requests of its group that can say so, and what the leader is told."""
    for line in lines:
        if line["api"] in ("JoinGroup", "SyncGroup", "Heartbeat", "OffsetCommit", "TxnOffsetCommit"):
            body = line["request"]["body"]
            body.update(dict.fromkeys({"group_instance_id"} & set(body), "billing-host-1"))
        if line["api"] == "JoinGroup":
            for member in line["response"]["body"]["members"]:
                member.update(dict.fromkeys({"group_instance_id"} & set(member), "billing-host-1"))


@pytest.mark.parametrize("client", ["java-4.3", "kafka-python", "librdkafka-2.16", "aiokafka"])
def test_a_static_member_is_one_difference(client: str, tmp_path: Path) -> None:
    """However many of its requests have its name (KIP-345)."""
    entry = only(compared(plain(client), edited(plain(client), tmp_path, static)))
    assert (entry.api, entry.path, entry.a, entry.b) == ("JoinGroup", "group_instance_id", "null", "billing-host-1")
    assert "SyncGroup request.group_instance_id" in entry.explanation
    assert [name for _, name in entry.settings] in (["group.instance.id"], ["group_instance_id"])


@pytest.mark.long
def test_an_upgrade_counts_only_on_demand(tmp_path: Path) -> None:
    text, path = text_of(plain("franz-go")), edited(plain("franz-go"), tmp_path, upgrade)
    assert held(text, path) == {}
    [named] = [each for each in outcomes(text, path) if each.rule == SOFTWARE]
    assert (named.status, named.message) == (RuleStatus.ALLOWED, "kgo v1.22.2 → kgo 99.9")
    assert named.line is not None
    assert text.splitlines()[named.line - 1].startswith("software = ")
    assert set(held(text, path, frozenset({SOFTWARE}))) == {SOFTWARE}


def test_a_client_that_does_not_say_what_it_is_has_no_such_line() -> None:
    found = {
        client: [each.status for each in outcomes(text_of(plain(client)), plain("kafkajs")) if each.rule == SOFTWARE]
        for client in ("kafkajs", "franz-go")
    }
    assert found == {"kafkajs": [], "franz-go": [RuleStatus.NOT_SEEN]}


def lingering(ms: int) -> Callable[[Lines], None]:
    """Make all records so much earlier than their requests."""

    def edit(lines: Lines) -> None:
        for batch in batches(lines):
            for each in (batch, *batch["records"]):
                for name in {"base_timestamp", "max_timestamp", "timestamp"} & set(each):
                    each[name] -= ms

    return edit


@pytest.mark.long
@each_client
def test_a_linger_is_one_difference_and_one_line_of_a_baseline(client: str, tmp_path: Path) -> None:
    steady = str(recording_path(client, "leader-moved"))
    path = edited(steady, tmp_path, lingering(LINGER_MS))
    entry = only(compared(steady, path))
    assert (entry.api, entry.path, entry.reason) == ("Produce", "linger", DiffReason.TIMING)
    assert set(held(text_of(steady), path)) == {"times.linger"}
    assert compared(steady, edited(steady, tmp_path, lingering(10))).is_same


@pytest.mark.long
def test_the_linger_of_a_client_is_what_its_documentation_says() -> None:
    """In milliseconds, a little of which a busy machine adds."""
    defaults = {"franz-go": 10, "librdkafka-2.16": 5, "librdkafka-2.3": 5, "java-4.3": 5, "java-3.9": 0, "sarama": 0}
    for client, ms in defaults.items():
        path = str(recording_path(client, "leader-moved"))
        [line] = [line for line in text_of(path).splitlines() if "linger" in line]
        assert ms <= int(line.rpartition("=")[2]) <= ms + 3, client


@pytest.mark.parametrize("client", ["java-3.9", "java-4.3", "kafka-python"])
def test_batches_that_wait_behind_others_show_no_linger(client: str) -> None:
    """All records at once: they wait for their turn."""
    path = str(recording_path(client, "large-batches"))
    assert len(SideProfile(side(path), {}, {}).batches.waits_ms) >= MIN_BATCHES
    assert "linger" not in text_of(path)
    for words in dict(build_matrix([side(path)]).rows).get("observed linger", ()):
        assert "batch" in words, "of how few batches it is"


def test_the_matrix_has_the_linger_of_a_client_whose_batches_were_sent_again() -> None:
    """Java's default, of all that it sent to three partitions whose leader moved."""
    path = str(recording_path("java-4.3", "leader-moved"))
    rows = dict(build_matrix([side(path)]).rows)
    assert rows["retries"] != ("-",)
    [words] = rows["observed linger"]
    assert 5 <= float(words.removeprefix("median ").removesuffix(" ms")) <= 8


IN_BOTH_PROTOCOLS = sorted(path.parent.name for path in RECORDINGS.glob("*/group-kip848-1.pcapng.zst"))


@pytest.mark.long
@pytest.mark.parametrize("client", IN_BOTH_PROTOCOLS)
def test_another_group_protocol_stands_for_what_follows_from_it(client: str) -> None:
    """Heartbeats in place of joins; offsets are fetched with the member's epoch, after other assignments."""
    classic, consumer = (str(recording_path(client, f"group-{name}")) for name in ("classic", "kip848"))
    assert held(text_of(classic), consumer)["settings.group protocol"] == "classic → consumer"
    for sides in ((classic, consumer), (consumer, classic)):
        entries = compared(*sides).entries
        [protocol] = [each for each in entries if each.api == "ConsumerGroupHeartbeat" and not each.part]
        assert protocol.reason is DiffReason.ONE_SIDE
        others = [(each.api, each.path) for each in entries if each is not protocol]
        assert not [each for each in others if each[0] in ("JoinGroup", "SyncGroup", "Heartbeat", "LeaveGroup")]
        assert not [each for each in others if each[0] == "OffsetFetch" and each[1] != "version"]


@pytest.mark.long
def test_fewer_lookups_of_offsets_in_one_protocol_are_a_difference(tmp_path: Path) -> None:
    def once(lines: Lines) -> Lines:
        again = {line["number"] for line in of(lines, "OffsetFetch")[1:]}
        return [line for line in lines if line["number"] not in again]

    path = str(recording_path("platformatic", "group-classic"))
    found = entry_texts(compared(path, edited(path, tmp_path, once)))
    assert ("OffsetFetch", "", "count", "4", "1") in found
