"""What a client does with a name because a list had it in time is chance; what it does of its own accord is not."""

from array import array
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from dissector.analysis.diff.compared_values import EntityName
from dissector.analysis.diff.key_profile import KeyProfile
from dissector.analysis.diff.listed_names import listed_on_one_side
from dissector.analysis.diff.matching_keys import ALL_TOPICS, MatchingKey, Subject
from dissector.analysis.diff.message_leaves import NOT_EMPTY, ElementLabel
from dissector.analysis.diff.name_matching import NameMatching
from dissector.analysis.diff.name_uses import NameUses
from tests.analysis.diff.editing import Lines, bundled, compared, edited, entry_texts, of
from tests.cases import cases
from tests.survey.recorded import plain

Sent = Sequence[tuple[str, str]]
"""APIs with the topic that each names; or ``list`` with the topics that it has."""


def side(sent: Sent) -> tuple[dict[str, dict[str, None]], NameUses]:
    keys: dict[MatchingKey, KeyProfile] = {}
    names: dict[str, None] = {}
    for row, (api, text) in enumerate(sent):
        subject: Subject = ALL_TOPICS if api == "list" else ()
        key = MatchingKey(0, "Metadata" if api == "list" else api, subject, "")
        profile = keys.setdefault(key, KeyProfile())
        profile.rows = array("q", [*profile.rows, row])
        if api == "list":
            profile.fields.setdefault(("response", ("topics",)), Counter())[NOT_EMPTY] += 1
        for name in text.split():
            label = ElementLabel(EntityName("topic", name))
            part = "response" if api == "list" else "request"
            for field in ("error_code", "topic_id") if row % 2 else ("error_code",):  # in some versions alone
                place = (part, ("topics", label, field))
                profile.fields.setdefault(place, Counter())[0] += 1
                profile.first_rows.setdefault(place, row)
            names.setdefault(name)
    return {"topic": names}, NameUses(keys)


def left_out(a: Sent, b: Sent) -> dict[str, set[str]]:
    """What A alone does because of a list, by API, in both orders of the sides."""
    (names_a, uses_a), (names_b, uses_b) = side(a), side(b)
    found = listed_on_one_side((uses_a, uses_b), NameMatching(names_a, names_b, (uses_a, uses_b)))
    turned = listed_on_one_side((uses_b, uses_a), NameMatching(names_b, names_a, (uses_b, uses_a)))
    assert found == turned[::-1]
    return {api: {name.text for name in names} for api, names in found[0].items()}


MADE = ("CreateTopics", "beats")


@cases(
    ("a", "b", "expected"),
    [
        ([MADE, ("list", "beats"), ("Fetch", "beats")], [("list", ""), MADE],
         {"Metadata": {"beats"}, "Fetch": {"beats"}}),
        ([MADE, ("list", "beats"), ("Fetch", "beats")], [("list", ""), MADE, ("list", "beats")], {"Fetch": {"beats"}}),
        # near misses: the other side saw it in all of its lists, or got none; it was used before it was listed
        ([MADE, ("list", "beats"), ("Fetch", "beats")], [MADE, ("list", "beats")], {}),
        ([MADE, ("list", "beats"), ("Fetch", "beats")], [MADE, ("list", "beats"), ("list", "beats")], {}),
        ([MADE, ("list", "beats"), ("Fetch", "beats")], [MADE], {}),
        ([MADE, ("Fetch", "beats"), ("list", "beats")], [("list", ""), MADE], {}),
        # a name that one side alone knows: it queries what it finds, and works with what it is told
        ([("list", "foo"), ("DescribeConfigs", "foo")], [("list", "")],
         {"Metadata": {"foo"}, "DescribeConfigs": {"foo"}}),
        ([("list", "foo"), ("Fetch", "foo")], [("list", "")], {}),
        # what is called after it
        ([MADE, ("list", "beats"), ("Fetch", "beats"), ("Produce", "shop.beats"), ("Produce", "drumbeats")],
         [("list", ""), MADE], {"Metadata": {"beats"}, "Fetch": {"beats"}, "Produce": {"shop.beats"}}),
        ([MADE, ("list", "beats"), ("Produce", "shop.beats")], [("list", ""), MADE], {}),
    ],
)  # fmt: skip
def test_a_list_that_came_too_early_is_chance(a: Sent, b: Sent, expected: dict[str, set[str]]) -> None:
    assert left_out(a, b) == expected


def without_warm(lines: Lines, *, listed: bool) -> Lines:
    """Leave out what is asked of the group `warm`, which the lab has used before; let it be `listed` nevertheless."""
    for line in of(lines, "ListGroups"):
        groups = line["response"]["body"]["groups"]
        assert any(each["group_id"] == "warm" for each in groups)
        line["response"]["body"]["groups"] = [each for each in groups if listed or each["group_id"] != "warm"]

    def asks(line: dict[str, object]) -> bool:
        return line.get("api") in ("FindCoordinator", "OffsetFetch") and "'warm'" in str(line["request"])

    return [line for line in lines if not asks(line)]


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("listed", [False, True])
def test_a_group_that_somebody_else_had_is_chance(tmp_path: Path, *, listed: bool) -> None:
    """MirrorMaker looks up the offsets of all groups; a connection does nothing else with a coordinator."""
    path = plain("mirror-maker-4.3")
    found = compared(path, edited(path, tmp_path, lambda lines: without_warm(lines, listed=listed)))
    expected = [("", "connections"), ("FindCoordinator", "")] if listed else []
    assert sorted(each[:2] for each in entry_texts(found)) == expected
    assert any("A alone does with group warm" in note for note in found.ignored) is not listed


@pytest.mark.long
@pytest.mark.slow
def test_what_has_configs_is_named(tmp_path: Path) -> None:
    """A topic and a broker are not two values of one field; each has configs of its own."""

    def without_broker(lines: Lines) -> Lines:
        return [line for line in lines if line not in of(lines, "DescribeConfigs")[1:]]

    path = bundled("java-admin")
    found = entry_texts(compared(path, edited(path, tmp_path, without_broker)))
    assert ("DescribeConfigs", "request.resources", "only on one side", "broker 1", "") in found
    assert {path for api, path, *_ in found if api == "DescribeConfigs"} <= {
        "",
        "request.resources",
        "request.include_synonyms",
    }
    assert {api for api, *_ in found} == {"DescribeConfigs"}
