"""Words in names decide between names that work alike, and generated names go with their groups."""

import os
import subprocess
import sys
from array import array
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from dissector.analysis.diff import DiffReason
from dissector.analysis.diff.compared_values import EntityName
from dissector.analysis.diff.key_profile import KeyProfile
from dissector.analysis.diff.matching_keys import MatchingKey
from dissector.analysis.diff.name_matching import NameMatching
from dissector.analysis.diff.name_uses import NameUses
from dissector.analysis.diff.name_words import NameWords
from tests.analysis.diff.editing import compared, edited
from tests.analysis.diff.elsewhere import renamed
from tests.cases import cases
from tests.conftest import PCAPS
from tests.survey.recorded import plain

Sent = Sequence[tuple[str, str]]
"""APIs, and a topic that a request of each names."""


def matched(a: Sent, b: Sent) -> dict[str, str]:
    """Which topics of A match which of B; from B's view they are the same."""

    def match(*sides: Sent) -> dict[str, str]:
        names = [{"topic": dict.fromkeys(name for _, name in side)} for side in sides]
        return {each.a: each.b for each in NameMatching(names[0], names[1], [uses(side) for side in sides]).matched}

    found = match(a, b)
    assert match(b, a) == {other: one for one, other in found.items()}
    return found


def uses(sent: Sent) -> NameUses:
    keys: dict[MatchingKey, KeyProfile] = {}
    for api, name in sent:
        profile = keys.setdefault(MatchingKey(0, api, (), ""), KeyProfile())
        profile.fields.setdefault(("request", ("topic",)), Counter())[EntityName("topic", name)] += 1
        profile.first_rows["request", ("topic",)] = 0
    return NameUses(keys)


def produced(*names: str) -> Sent:
    return [("Produce", name) for name in names]


def fetched(*names: str) -> Sent:
    return [("Fetch", name) for name in names]


def test_words_decide_between_names_that_work_alike() -> None:
    found = matched(produced("tea.orders", "tea.beats-1"), produced("oak.beats-2", "oak.orders"))
    assert found == {"tea.orders": "oak.orders", "tea.beats-1": "oak.beats-2"}


def test_a_query_does_not_outweigh_words() -> None:
    """One run looks up the offsets of one topic, the other one those of the other one."""
    a = [*produced("tea.orders", "tea.beats"), ("ListOffsets", "tea.beats")]
    b = [*produced("oak.orders", "oak.beats"), ("ListOffsets", "oak.orders")]
    assert matched(a, b) == {"tea.orders": "oak.orders", "tea.beats": "oak.beats"}


def test_words_decide_nothing_against_the_use() -> None:
    found = matched([*produced("orders"), *fetched("stock")], [*produced("stock-b"), *fetched("orders-b")])
    assert found == {"orders": "stock-b", "stock": "orders-b"}


def test_names_without_a_word_in_common_match_in_the_order_of_their_appearance() -> None:
    assert matched(produced("tea", "milk"), produced("oak", "elm")) == {"tea": "oak", "milk": "elm"}


def test_pairs_that_are_certain_show_which_words_stand_for_which() -> None:
    a = [*produced("beats.tea", "syncs.shop"), *fetched("of.tea", "of.shop")]
    b = [*produced("syncs.elm", "beats.oak"), *fetched("of.elm", "of.oak")]
    pairs = {"beats.tea": "beats.oak", "syncs.shop": "syncs.elm", "of.tea": "of.oak", "of.shop": "of.elm"}
    assert matched(a, b) == pairs


@cases(
    ("learned", "a", "b", "likeness"),
    [
        ([], "orders-1", "ORDERS_2", 1.0),
        ([], "1", "1", 0.0),  # no word
        ([], "tea.orders", "oak.orders", 0.5),
        ([("tea.x", "oak.x")], "tea.orders", "oak.orders", 1.0),
        ([("tea", "oak"), ("tea", "elm")], "tea", "oak", 0.0),  # as often with one as with the other
        ([("tea", "oak"), ("milk", "oak")], "tea", "oak", 0.0),
        ([("tea", "oak"), ("tea", "oak"), ("milk", "oak")], "tea", "oak", 1.0),
        ([("tea", "oak.x")], "tea", "oak", 0.0),  # which of them it stands for is not known
        ([], "tea.tea", "tea", 2 / 3),
    ],
)
def test_likeness(learned: list[tuple[str, str]], a: str, b: str, likeness: float) -> None:
    words = NameWords()
    words.learn(learned)
    assert words.likeness(a, b) == pytest.approx(likeness)


def test_members_are_matched_by_their_groups() -> None:
    """The groups of the two sides appear in different orders."""

    def side(*groups: str) -> tuple[dict[str, dict[str, None]], NameUses]:
        keys = {}
        for group in groups:
            profile = keys[MatchingKey(0, "Heartbeat", (EntityName("group", group),), "")] = KeyProfile(array("q", [0]))
            profile.fields["request", ("member_id",)] = Counter([EntityName("member", f"member of {group}")])
            profile.first_rows["request", ("member_id",)] = 0
        members = dict.fromkeys(f"member of {group}" for group in groups)
        return {"group": dict.fromkeys(groups), "member": members}, NameUses(keys)

    (names_a, uses_a), (names_b, uses_b) = side("tea-mm2", "shop-mm2"), side("shop-mm3", "tea-mm3")
    matching = NameMatching(names_a, names_b, (uses_a, uses_b))
    for name in ("tea", "shop"):
        members = (EntityName("member", f"member of {name}-mm{n}") for n in (2, 3))
        assert len({matching.value(side, member) for side, member in enumerate(members)}) == 1


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("release", ["mirror-maker-3.4", "mirror-maker-4.3"])
def test_a_mirror_between_clusters_of_other_names_does_not_differ(release: str, tmp_path: Path) -> None:
    """But for its records, which have the names and the time. The names of clusters are in those of groups and topics,
    and which of the two comes first is chance."""
    other = edited(plain(release, 2), tmp_path, renamed({"tea": "oak", "shop": "mill"}))
    comparison = compared(plain(release), other)
    assert [each for each in comparison.entries if each.reason is not DiffReason.CONTENT] == []
    topics = [f"mm2-configs.billing-{release.replace('.', '-')}-plain-{n}.internal" for n in ("1-tea", "2-oak")]
    assert f"topic {topics[0]} of A is compared with {topics[1]} of B" in comparison.ignored


@pytest.mark.long
def test_two_runs_of_one_comparison_say_the_same() -> None:
    """Sets of texts have another order in each process: no entry may depend on it."""
    captures = [str(PCAPS / "clients" / f"mirror-maker-{release}" / "plain-1.pcapng.zst") for release in ("3.4", "4.3")]
    command = [sys.executable, "-m", "dissector", "diff", *captures]
    said = [
        subprocess.run(command, env=os.environ | {"PYTHONHASHSEED": seed}, stdout=-1, check=False).stdout
        for seed in ("0", "1")
    ]
    assert said[0].partition(b"\n")[0].endswith(b"differences")
    assert said[0] == said[1]
