"""Names are matched by their uses: a report does not change with them, nor with what a cluster has besides."""

import random
from array import array
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissector.analysis.diff import DiffReason, DiffResult, DiffSide, diff
from dissector.analysis.diff.compared_values import EntityName
from dissector.analysis.diff.key_profile import KeyProfile
from dissector.analysis.diff.matching_keys import MatchingKey
from dissector.analysis.diff.message_leaves import ElementLabel, LeafPath
from dissector.analysis.diff.name_matching import NameMatching
from dissector.analysis.diff.name_uses import NameUses
from dissector.filter import parse
from tests.analysis.diff.editing import Lines, bundled, compared, edited, entry_texts, side
from tests.analysis.diff.elsewhere import renamed, shifted, with_topics
from tests.cases import cases
from tests.conftest import costly, some_of

OTHERS = ("compare-java-2", "compare-librdkafka-1", "compare-kafka-python-1", "compare-aiokafka-1")
TOPIC, GROUP = "java-orders-1", "java-billing-1"


def brief(comparison: DiffResult) -> list[tuple[str, str, str, str, str]]:
    """The entries, with names as they are in the recordings."""
    return sorted(entry_texts(comparison))


@pytest.mark.long
@pytest.mark.slow
@costly(2)
@given(other=st.sampled_from(OTHERS), chance=st.randoms(use_true_random=False))
def test_other_names_make_no_difference(tmp_path: Path, other: str, chance: random.Random) -> None:
    def name(old: str) -> str:
        return "".join(chance.choice("abcdefghijklmnopqrstuvwxyz") for _ in old)

    names = {old: name(old) for old in (TOPIC, GROUP)}
    one, changed = bundled("compare-java-1"), edited(bundled("compare-java-1"), tmp_path, renamed(names))
    before = compared(one, bundled(other))
    after = compared(changed, bundled(other))
    back = [tuple(_with_old(text, names) for text in entry) for entry in brief(after)]
    assert sorted(back) == brief(before)
    assert [pair.verdict for pair in after.pairs] == [pair.verdict for pair in before.pairs]
    assert any(f"topic {names[TOPIC]} of A is compared with" in note for note in after.ignored)


def _with_old(text: str, names: dict[str, str]) -> str:
    for old, new in names.items():
        text = text.replace(new, old)
    return text


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("other", OTHERS)
def test_topics_that_only_the_cluster_has_make_no_difference(tmp_path: Path, other: str) -> None:
    names = [f"somebodys-{n}" for n in range(50)]
    one, more = bundled("compare-java-1"), edited(bundled("compare-java-1"), tmp_path, with_topics(names))
    before, after = compared(one, bundled(other)), compared(more, bundled(other))
    assert brief(after) == brief(before)
    assert [note for note in after.ignored if "topics of A that no request names" in note]
    assert compared(one, more).is_same


@pytest.mark.long
def test_a_topic_that_is_listed_is_not_matched_with_one_that_is_produced_to(tmp_path: Path) -> None:
    listed = edited(bundled("compare-java-1"), tmp_path, with_topics(["aaa", "bbb"]))
    notes = compared(listed, bundled("compare-librdkafka-1")).ignored
    assert "topic java-orders-1 of A is compared with librdkafka-orders-1 of B" in notes
    assert not any("aaa of A is compared" in note for note in notes)


@pytest.mark.long
def test_a_name_that_one_side_has_only_seen_is_free_for_the_other(tmp_path: Path) -> None:
    """Each cluster lists the topic of the other run, too."""
    one = edited(bundled("compare-java-1"), tmp_path, with_topics(["java-orders-2"]))
    (tmp_path / "b").mkdir()
    other = edited(bundled("compare-java-2"), tmp_path / "b", with_topics(["java-orders-1"]))
    comparison = compared(one, other)
    assert entry_texts(comparison) == []
    assert "topic java-orders-1 of A is compared with java-orders-2 of B" in comparison.ignored


def groups(*names: str) -> tuple[dict[str, dict[str, None]], NameUses]:
    """Groups that a side joins."""
    keys = {
        MatchingKey(0, "JoinGroup", (EntityName("group", name),), ""): KeyProfile(array("q", [0])) for name in names
    }
    return {"group": dict.fromkeys(names)}, NameUses(keys)


@cases(
    ("a", "b", "text_a", "text_b"),
    [
        ("ga", "gb", "left group ga", "left group gb"),
        ("ga", "gb", "ga-1 left", "gb-1 left"),
        ("abc", "xyz", "abc", "xyz"),
        ("billing-1", "billing-2", "rebalancebilling-1ago", "rebalancebilling-2ago"),
    ],
)
def test_a_name_of_any_length_is_found_in_texts(a: str, b: str, text_a: str, text_b: str) -> None:
    (names_a, uses_a), (names_b, uses_b) = groups(a), groups(b)
    matching = NameMatching(names_a, names_b, (uses_a, uses_b))
    assert matching.value(0, text_a) == matching.value(1, text_b) != text_a


def test_a_short_name_is_not_found_inside_of_words() -> None:
    (names_a, uses_a), (names_b, uses_b) = groups("ga"), groups("gb")
    matching = NameMatching(names_a, names_b, (uses_a, uses_b))
    assert matching.value(0, "regain") == "regain"


@cases(
    ("path", "text"),
    [
        (("protocols", ElementLabel("roundrobin"), "name"), "roundrobin"),
        (("protocol_type",), "consumer"),
        (("protocol_name",), "range"),
    ],
)
def test_words_of_kafka_are_no_names(path: LeafPath, text: str) -> None:
    """A topic robin is none in roundrobin, nor a group consumer in its protocol's type."""
    (names_a, uses_a), (names_b, uses_b) = groups("robin", "consumer", "range"), groups("wren", "heron", "tern")
    matching = NameMatching(names_a, names_b, (uses_a, uses_b))
    assert matching.value_at(0, path, text) == text
    assert matching.path(0, path) == path
    assert matching.value_at(0, ("reason",), text) != text


@pytest.mark.slow
@pytest.mark.parametrize("other", OTHERS)
def test_other_partitions_make_no_difference(tmp_path: Path, other: str) -> None:
    """A program that has topics with other partitions does the same in them."""
    one, moved = bundled(other), edited(bundled(other), tmp_path, shifted)
    comparison = compared(one, moved)
    assert entry_texts(comparison) == []
    assert "partition numbers, as the topics of the two sides have different partitions" in comparison.ignored


WORDS = {"sarama-2.3.0": ("sarama-", "ramasa-"), "kafkajs": ("kafkajs-", "jskafka-"), "franz-go": ("franz-", "znarf-"),
         "java": ("java-", "avaj-")}  # fmt: skip
"""How the names of topics, groups and client ids of a recording begin, and other names of the same size."""


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("name", some_of(WORDS, "kafkajs", "java"))
def test_a_program_that_asks_for_all_topics_does_the_same_in_another_cluster(tmp_path: Path, name: str) -> None:
    """Other names, 50 more topics in front, other partitions: nothing of it is the client's doing."""

    def elsewhere(lines: Lines) -> Lines:
        shifted(lines)
        return renamed(dict([WORDS[name]]))(with_topics([f"somebodys-{n}" for n in range(50)])(lines))

    assert entry_texts(compared(bundled(name), edited(bundled(name), tmp_path, elsewhere))) == []


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize(("name", "other"), [("sarama-2.3.0", "franz-go"), ("kafkajs", "sarama-2.3.0")])
def test_a_report_is_the_same_of_another_cluster(tmp_path: Path, name: str, other: str) -> None:
    def elsewhere(lines: Lines) -> Lines:
        return renamed(dict([WORDS[name]]))(with_topics([f"somebodys-{n}" for n in range(50)])(lines))

    before = compared(bundled(name), bundled(other))
    after = compared(edited(bundled(name), tmp_path, elsewhere), bundled(other))
    old, new = WORDS[name]
    back = [tuple(text.replace(new, old) for text in entry) for entry in brief(after)]
    assert sorted(back) == brief(before)


@pytest.mark.long
def test_generated_names_are_matched_by_their_uses() -> None:
    """The first producer of franz-go has no transaction; of kafkajs, the second has one."""
    found = compared(bundled("franz-go"), bundled("kafkajs"))
    assert not [entry for entry in found.entries if entry.path.endswith("producer_id") and entry.part]
    [calls] = [entry for entry in found.entries if entry.api == "InitProducerId" and entry.reason is DiffReason.COUNT]
    assert (calls.a, calls.b, calls.subject) == ("5", "1", "")


@pytest.mark.long
def test_exchanges_between_brokers_are_left_out_and_counted() -> None:
    found = compared(bundled("franz-go"), bundled("kafkajs"))
    assert dict(found.a.skipped) == {"between brokers": 5}
    assert not [entry for entry in found.entries if entry.api == "WriteTxnMarkers"]
    quorum = bundled("kraft-quorum")
    among_brokers = diff(*(DiffSide(side(quorum).capture, "", parse("api == Vote")) for _ in "AB"))
    assert among_brokers.a.exchanges > 0  # nothing else is compared: they are meant


@pytest.mark.long
def test_a_transaction_of_one_side_is_one_difference() -> None:
    found = compared(bundled("java"), bundled("kafkajs")).entries
    alone = [entry for entry in found if entry.reason is DiffReason.ONE_SIDE and "teller" in entry.subject]
    assert [entry.api for entry in alone] == ["InitProducerId"]
    assert all(api in alone[0].explanation for api in ("AddPartitionsToTxn", "EndTxn", "TxnOffsetCommit", "Produce"))
    assert alone[0].settings == (("Java", "transactional.id"), ("kafkajs", "transactionalId"))
    assert not {entry.api for entry in found} & {"AddPartitionsToTxn", "EndTxn", "TxnOffsetCommit"}


@pytest.mark.long
def test_real_names_are_printed() -> None:
    comparison = compared(bundled("franz-go"), bundled("sarama-2.3.0"))
    words = [text for entry in comparison.entries for text in (entry.a, entry.b, entry.explanation, entry.subject)]
    assert not [each for each in words if "topic #" in each or "group #" in each or "transaction #" in each]
    assert any("franz-orders/sarama-2.3.0" in each for each in words)
    assert any("for franz-teller" in each for each in words)
