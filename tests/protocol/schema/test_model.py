"""Versions, names, and what a table must not say."""

from collections.abc import Mapping

import pytest

from dissector.protocol.schema.model import NONE, Field, SchemaError, Versions
from dissector.protocol.schema.table import message_of
from tests.cases import cases


def table(*fields: Mapping[str, object], **more: object) -> dict[str, object]:
    """A small message table, correct unless the test makes it otherwise."""
    head = {"type": "data", "name": "Sample", "validVersions": "0-3", "flexibleVersions": "2+"}
    return head | more | {"fields": list(fields)}


@cases("text", ["0", "1-4", "3+", "none"])
def test_a_range_is_written_as_it_was_read(text: str) -> None:
    assert str(Versions.parse(text)) == text


@cases("text", ["", "-1", "4-1", "1-", "+", "1,2", " 1", "99999"])
def test_what_is_no_range_of_versions_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a range"):
        Versions.parse(text)


def test_a_range_contains_both_its_ends_and_nothing_beyond() -> None:
    found = [v for v in range(7) if Versions.parse("2-4").contains(v)]
    assert found == [2, 3, 4] == list(Versions.parse("2-4"))
    assert not NONE
    assert not any(NONE.contains(v) for v in range(-1, 3))


def test_ranges_without_a_common_version_intersect_to_none() -> None:
    assert Versions.parse("0-2").intersect(Versions.parse("3+")) == NONE
    assert Versions.parse("0-5").intersect(Versions.parse("3+")) == Versions.parse("3-5")


@cases(
    ("name", "snake", "camel"),
    [
        ("SessionTimeoutMs", "session_timeout_ms", "sessionTimeoutMs"),
        ("Name", "name", "name"),
        ("groupId", "group_id", "groupId"),
        ("ISRNodes", "isrnodes", "iSRNodes"),
        ("LastStableOffset2Max", "last_stable_offset2_max", "lastStableOffset2Max"),
    ],
)
def test_names_are_spelled_as_on_the_protocol_page_and_in_kafkas_json(name: str, snake: str, camel: str) -> None:
    field = Field(name, "int8", Versions.parse("0+"))
    assert (field.snake_name, field.camel_name) == (snake, camel)


def test_a_common_struct_is_resolved_at_every_use() -> None:
    inner = {"name": "Id", "type": "int32", "versions": "0+"}
    uses = [{"name": name, "type": kind, "versions": "0+"} for name, kind in (("One", "Node"), ("More", "[]Node"))]
    message = message_of(table(*uses, commonStructs=[{"name": "Node", "fields": [inner]}]), "Sample.json")
    assert [[f.name for f in field.fields] for field in message.fields] == [["Id"], ["Id"]]
    assert [field.element_type for field in message.fields] == ["Node", "Node"]


@cases(
    ("wrong", "words"),
    [
        ({"type": "int33"}, "type 'int33' is not known"),
        ({"type": "Node"}, "struct Node has no fields"),
        ({"versions": "x"}, "versions 'x' is not a range"),
        ({"tag": 0}, "tag and taggedVersions go together"),
        ({"tag": 0, "taggedVersions": "1+"}, "taggedVersions 1+ reaches beyond"),
        ({"tag": -1, "taggedVersions": "2+"}, "tag -1 is not a number from 0"),
        ({"nullableVersions": "0+"}, "int32 cannot be null"),
        ({"flexibleVersions": "0+"}, "flexibleVersions 0+ reaches beyond 2+"),
        ({"ignorable": "yes"}, "ignorable 'yes' is neither true nor false"),
        ({"default": [1]}, "is not a plain value"),
        ({"about": "prose"}, "has unknown about"),
    ],
)
def test_a_mistake_names_the_table_and_the_field(wrong: dict[str, object], words: str) -> None:
    field = {"name": "Epoch", "type": "int32", "versions": "0+"} | wrong
    with pytest.raises(SchemaError) as caught:
        message_of(table(field), "Sample.json")
    assert str(caught.value).startswith("Sample.json: Epoch: ")
    assert words in str(caught.value)


def test_a_name_or_a_tag_that_stands_twice_is_a_mistake() -> None:
    field = {"name": "Epoch", "type": "int32", "versions": "2+", "tag": 0, "taggedVersions": "2+"}
    with pytest.raises(SchemaError, match="Epoch: stands twice"):
        message_of(table(field, field), "Sample.json")
    with pytest.raises(SchemaError, match="Other: tag 0 is taken"):
        message_of(table(field, field | {"name": "Other"}), "Sample.json")


def test_a_struct_that_contains_itself_is_a_mistake_not_a_recursion() -> None:
    inner = {"name": "Next", "type": "Node", "versions": "0+"}
    with pytest.raises(SchemaError, match="struct Node contains itself"):
        message_of(table(inner, commonStructs=[{"name": "Node", "fields": [inner]}]), "Sample.json")
