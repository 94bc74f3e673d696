"""Imported releases laid over the tables: what is new is there, what was there stays."""

from pathlib import Path

import pytest
from hypothesis import given

from dissector.protocol.schema.importer.jars import read_release
from dissector.protocol.schema.importer.keep import in_memory, labelled
from dissector.protocol.schema.importer.layout import version_differences
from dissector.protocol.schema.importer.merge import extend
from dissector.protocol.schema.index import Entry, entry_of
from dissector.protocol.schema.loader import entries, message, try_import
from dissector.protocol.schema.model import Message, SchemaError
from dissector.protocol.schema.overlay import Imported, overlay
from dissector.protocol.schema.table import message_of
from tests.protocol.schema.releases import Schema, haunt, jar, newer_heartbeat, schema
from tests.protocol.schema.test_importer import histories

SHIPPED: dict[str, Entry] = {entry.name: entry for entry in entries()}


def imported(tmp_path: Path, schemas: list[Schema]) -> Imported:
    return in_memory(labelled(read_release("9.9.0", [jar(tmp_path / "a.jar", schemas)])))


def test_a_new_version_is_added_and_the_others_stay(tmp_path: Path) -> None:
    over = overlay(SHIPPED, message, [imported(tmp_path, newer_heartbeat())])
    ours, theirs = message("HeartbeatRequest"), message_of(newer_heartbeat()[0], "a test")
    merged, high = over.messages["HeartbeatRequest"], ours.valid_versions.high
    assert list(merged.valid_versions) == [*ours.valid_versions, high + 1]
    assert not any(list(version_differences(merged, ours, version)) for version in ours.valid_versions)
    assert not list(version_differences(merged, theirs, high + 1))
    assert str(merged.releases["9.9.0"]) == f"0-{high + 1}"
    assert not merged.deprecated_versions.contains(high + 1)


def test_what_the_tables_have_is_left_alone_even_where_an_import_says_otherwise(tmp_path: Path) -> None:
    changed = schema("HeartbeatRequest")
    changed["fields"][0]["type"] = "bytes"
    over = overlay(SHIPPED, message, [imported(tmp_path, [changed])])
    assert not over.messages
    assert "9.9.0" in over.releases["HeartbeatRequest"]


def test_a_new_version_of_a_message_that_was_otherwise_before_keeps_both(tmp_path: Path) -> None:
    """The fork's own layout of old versions does not reach the tables; its layout of the new one is taken."""
    changed = newer_heartbeat()
    changed[0]["fields"] = [{"name": "Everything", "type": "bytes", "versions": "0+"}]
    merged = overlay(SHIPPED, message, [imported(tmp_path, changed)]).messages["HeartbeatRequest"]
    ours = message("HeartbeatRequest")
    assert not any(list(version_differences(merged, ours, version)) for version in ours.valid_versions)
    assert [f.name for f in merged.fields if f.versions.contains(merged.valid_versions.high)] == ["Everything"]


def test_an_api_under_another_name_is_the_same_api(tmp_path: Path) -> None:
    renamed = newer_heartbeat()
    renamed[0]["name"], renamed[1]["name"] = "PulseRequest", "PulseResponse"
    over = overlay(SHIPPED, message, [imported(tmp_path, renamed)])
    assert set(over.messages) == {"HeartbeatRequest", "HeartbeatResponse"}
    assert "PulseRequest" in over.messages["HeartbeatRequest"].aliases


def test_two_imports_of_the_same_news_are_one(tmp_path: Path) -> None:
    first = imported(tmp_path, newer_heartbeat() + haunt())
    second = Imported("9.9.1", first.entries, first.table)
    over = overlay(SHIPPED, message, [first, second])
    assert set(over.messages) == {"HeartbeatRequest", "HeartbeatResponse", "HauntRequest", "HauntResponse"}
    assert set(over.releases["HauntRequest"]) == {"9.9.0", "9.9.1"}


def test_a_request_without_its_response_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match=r"API keys \[201\] lack a request or a response"):
        try_import(imported(tmp_path, haunt()[:1]))
    with pytest.raises(SchemaError, match="HeartbeatRequest and HeartbeatResponse have other versions"):
        try_import(imported(tmp_path, newer_heartbeat()[:1]))


def test_a_version_that_cannot_be_laid_over_the_tables_is_refused(tmp_path: Path) -> None:
    """The same name for another type in a new version: a schema has no room for both."""
    changed = newer_heartbeat()
    changed[0]["fields"][0] |= {"type": "int64"}
    with pytest.raises(SchemaError, match=r"HeartbeatRequest v5 can't be laid over the tables: GroupId"):
        overlay(SHIPPED, message, [imported(tmp_path, changed)])


@given(histories())
def test_extending_keeps_the_known_versions_and_adds_the_others(history: tuple[Message, Message]) -> None:
    for known, other in (history, history[::-1]):
        merged = extend(known, other)
        for version in merged.valid_versions:
            source = known if known.valid_versions.contains(version) else other
            assert not list(version_differences(merged, source, version))


def test_an_entry_is_what_the_index_says() -> None:
    for name in ("FetchRequest", "RequestHeader", "ListConfigResourcesRequest"):
        assert entry_of(message(name)) == SHIPPED[name]
