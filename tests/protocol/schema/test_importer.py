"""Merging releases: nothing is lost, and what a person must decide stops the import until it is decided."""

from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissector.protocol.schema.importer.jars import Release
from dissector.protocol.schema.importer.merge import merge_releases
from dissector.protocol.schema.importer.resolutions import OtherLayout, Renamed, Resolutions, read_resolutions
from dissector.protocol.schema.importer.run import UnresolvedError, disagreements, merged
from dissector.protocol.schema.importer.wire_layout import wire_layout
from dissector.protocol.schema.model import MessageSchema, SchemaError, Versions
from dissector.protocol.schema.table import message_of
from tests.cases import cases


def field(name: str, versions: str = "0+", kind: str = "int32", **more: object) -> dict[str, object]:
    return {"name": name, "type": kind, "versions": versions, **more}


def sample(valid: str, *fields: dict[str, object], flexible: str = "none", **more: object) -> MessageSchema:
    head = {"apiKey": 1, "type": "request", "name": "SampleRequest", "validVersions": valid}
    return message_of(head | {"flexibleVersions": flexible, "fields": list(fields), **more}, "SampleRequest.json")


def release(label: str, message: MessageSchema) -> Release:
    return Release(label, {message.name: message})


NO_RESOLUTIONS: Final = Resolutions()


def union(older: MessageSchema, newer: MessageSchema, resolutions: Resolutions = NO_RESOLUTIONS) -> MessageSchema:
    found = merged([release("1.0", older), release("2.0", newer)], resolutions)
    return found.messages[newer.name]


def names(message: MessageSchema, version: int) -> list[str]:
    return [slot.name for slot in wire_layout(message, version)]


def test_versions_that_the_newer_release_dropped_keep_their_fields_in_their_place() -> None:
    old = sample("0-3", field("A"), field("Gone", "0-1"), field("B", "1+"), field("C", "2+"))
    new = sample("2-5", field("A", "2+"), field("B", "2+"), field("C", "2+"), field("D", "5+"))
    both = union(old, new)
    assert [names(both, v) for v in (0, 1, 2, 5)] == [
        ["A", "Gone"], ["A", "Gone", "B"], ["A", "B", "C"], ["A", "B", "C", "D"],
    ]  # fmt: skip
    assert (str(both.valid_versions), str(both.deprecated_versions)) == ("0-5", "0-1")
    assert {label: str(v) for label, v in both.releases.items()} == {"1.0": "0-3", "2.0": "2-5"}


def test_a_field_that_the_newer_release_says_of_all_its_versions_does_not_reach_the_older_ones() -> None:
    both = union(sample("0-1", field("A")), sample("2-3", field("A"), field("B")))
    assert [names(both, v) for v in range(4)] == [["A"], ["A"], ["A", "B"], ["A", "B"]]


def test_a_message_that_the_newest_release_lacks_is_deprecated_as_a_whole() -> None:
    other = message_of({"type": "data", "name": "Other", "validVersions": "0", "flexibleVersions": "none"}, "Other")
    found = merge_releases([release("1.0", sample("0-2", field("A"))), release("2.0", other)])
    assert str(found["SampleRequest"].deprecated_versions) == "0-2"


def test_a_name_that_changed_stops_the_import_and_the_report_says_where() -> None:
    old, new = sample("0-1", field("Old")), sample("1-2", field("New"))
    with pytest.raises(UnresolvedError) as caught:
        union(old, new)
    report = str(caught.value)
    assert "SampleRequest v1 New: 2.0 says int32, default 0; 1.0 says absent" in report
    assert "v0" not in report


def test_a_stable_name_wins_and_the_old_one_is_an_alias() -> None:
    old, new = sample("0-1", field("Old")), sample("1-2", field("New"))
    both = union(old, new, Resolutions(renamed=(Renamed("SampleRequest", "Old", ("New",)),)))
    assert [names(both, v) for v in range(3)] == [["New"]] * 3
    assert both.fields[0].aliases == ("Old",)


def test_a_name_inside_a_struct_is_resolved_by_its_path() -> None:
    def of(inner: str) -> MessageSchema:
        return sample("0", field("Top", kind="[]Part", fields=[field(inner)]))

    both = union(of("Old"), of("New"), Resolutions(renamed=(Renamed("SampleRequest", "Old", ("Top", "New")),)))
    assert both.fields[0].fields[0].aliases == ("Old",)


@cases(
    ("change", "words"),
    [
        ({"kind": "int64"}, "2.0 says int64, default 0; 1.0 says int32, default 0"),
        ({"default": "7"}, "2.0 says int32, default 7; 1.0 says int32, default 0"),
        ({"taggedVersions": "1+", "tag": 0}, "2.0 says int32, tag 0, default 0"),
    ],
)
def test_a_changed_field_stops_the_import(change: dict[str, str], words: str) -> None:
    old, new = sample("1", field("A"), flexible="1+"), sample("1", field("A", **change), flexible="1+")
    with pytest.raises(UnresolvedError) as caught:
        union(old, new)
    assert words in str(caught.value)


def test_a_tag_that_the_newer_release_adds_is_no_disagreement_and_one_that_it_drops_is() -> None:
    plain = sample("1", field("A"), flexible="1+")
    tagged = sample("1", field("A"), field("B", "1+", taggedVersions="1+", tag=0), flexible="1+")
    assert names(union(plain, tagged), 1) == ["A", "B"]
    with pytest.raises(UnresolvedError, match=r"2\.0 says absent; 1\.0 says int32, tag 0"):
        union(tagged, plain)


def test_a_changed_order_and_a_version_that_became_flexible_stop_the_import() -> None:
    one, two = field("A"), field("B")
    with pytest.raises(UnresolvedError, match=r"\(order\): 2.0 says B A; 1.0 says A B"):
        union(sample("0", one, two), sample("0", two, one))
    with pytest.raises(UnresolvedError, match=r"\(flexible\): 2.0 says True; 1.0 says False"):
        union(sample("0"), sample("0", flexible="0+"))


def test_another_spelling_of_a_default_or_a_range_is_no_disagreement() -> None:
    old = sample("0-1", field("A", "0-1", default="0x10"), field("B", kind="bool"))
    new = sample("0-2", field("A", "0+", default=16), field("B", kind="bool", default="false"))
    assert str(union(old, new).fields[0].versions) == "0+"


def test_a_layout_that_loses_is_kept_as_an_alternative_of_its_versions() -> None:
    old, new = sample("0-1", field("A")), sample("0-2", field("A"), field("B"))
    resolutions = Resolutions(other_layouts=(OtherLayout("SampleRequest", Versions.parse("0-1"), "1.0"),))
    found = merged([release("1.0", old), release("2.0", new)], resolutions)
    assert names(found.messages["SampleRequest"], 0) == ["A", "B"]
    [other] = found.alternatives
    assert (names(other.message, 0), str(other.message.valid_versions)) == (["A"], "0-1")


@cases(
    "stale",
    [
        Resolutions(renamed=(Renamed("SampleRequest", "Never", ("A",)),)),
        Resolutions(renamed=(Renamed("NeverRequest", "SampleRequest"),)),
        Resolutions(other_layouts=(OtherLayout("SampleRequest", Versions.parse("0"), "1.0"),)),
        Resolutions(other_layouts=(OtherLayout("SampleRequest", Versions.parse("0"), "9.9"),)),
    ],
)
def test_a_decision_that_nothing_needs_stops_the_import(stale: Resolutions) -> None:
    with pytest.raises(UnresolvedError, match="stale"):
        union(sample("0", field("A")), sample("0-1", field("A")), stale)


def test_a_file_of_decisions_with_a_mistake_is_refused() -> None:
    for text in ("[", '{"other": []}', '{"renamed": [{"message": "A"}]}', '{"otherLayout": [{"versions": "x"}]}'):
        with pytest.raises(SchemaError, match=r"resolutions\.json"):
            read_resolutions(text)


@st.composite
def histories(draw: st.DrawFn) -> tuple[MessageSchema, MessageSchema]:
    """One message as two releases have it: the same history, cut to each release's versions as Kafka cuts it."""
    low, last = draw(st.integers(0, 4)), draw(st.integers(4, 6))
    spans = draw(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=6))

    def cut(valid: str, first: int, high: int) -> MessageSchema:
        fields = []
        for number, (start, length) in enumerate(spans):
            end = start + length
            if start > high or end < first:
                continue
            begin = max(start, first)
            fields.append(field(f"F{number}", f"{begin}+" if end >= high else f"{begin}-{end}"))
        return sample(valid, *fields)

    return cut(f"0-{last - 1}", 0, last - 1), cut(f"{low}-{last}", low, last)


@given(histories())
def test_every_version_of_both_releases_keeps_its_layout(history: tuple[MessageSchema, MessageSchema]) -> None:
    old, new = history
    releases = [release("1.0", old), release("2.0", new)]
    assert disagreements(releases, merge_releases(releases)) == []
