"""Imported releases laid over the tables: what is new is there, what was there stays."""

from pathlib import Path

from dissector.protocol.schema.importer.jars import read_release
from dissector.protocol.schema.importer.user_releases import in_memory, labelled
from dissector.protocol.schema.importer.wire_layout import version_differences
from dissector.protocol.schema.index import IndexEntry, index_entry
from dissector.protocol.schema.loader import entries, message, try_import
from dissector.protocol.schema.overlay import ImportedRelease, overlay
from dissector.protocol.schema.table import message_of
from tests.cases import cases
from tests.protocol.schema.releases import Schema, haunt, jar, newer_heartbeat, schema

SHIPPED: dict[str, IndexEntry] = {entry.name: entry for entry in entries()}


def imported(tmp_path: Path, schemas: list[Schema]) -> ImportedRelease:
    return in_memory(labelled(read_release("9.9.0", [jar(tmp_path / "a.jar", schemas)])))


def test_a_new_version_is_added_and_is_laid_out_as_the_import_says(tmp_path: Path) -> None:
    over = overlay(SHIPPED, message, [imported(tmp_path, newer_heartbeat())])
    ours, theirs = message("HeartbeatRequest"), message_of(newer_heartbeat()[0], "a test")
    now, high = over.messages["HeartbeatRequest"], ours.valid_versions.high
    assert list(now.valid_versions) == [*ours.valid_versions, high + 1]
    source = over.source("HeartbeatRequest", high + 1)
    assert source is not None
    assert not list(version_differences(source, theirs, high + 1))
    assert str(now.releases["9.9.0"]) == f"0-{high + 1}"
    assert now.flexible_versions == ours.flexible_versions
    assert not now.deprecated_versions.contains(high + 1)


def test_what_the_tables_have_is_left_alone_even_where_an_import_says_otherwise(tmp_path: Path) -> None:
    changed = schema("HeartbeatRequest")
    changed["fields"][0]["type"] = "bytes"
    over = overlay(SHIPPED, message, [imported(tmp_path, [changed])])
    assert not over.messages
    assert "9.9.0" in over.releases["HeartbeatRequest"]


def test_a_new_version_is_taken_whatever_the_import_says_of_the_old_ones(tmp_path: Path) -> None:
    changed = newer_heartbeat()
    changed[0]["fields"] = [{"name": "GroupId", "type": "int64", "versions": "0+"}]
    over = overlay(SHIPPED, message, [imported(tmp_path, changed)])
    source = over.source("HeartbeatRequest", 5)
    assert source is not None
    assert [f.type for f in source.fields] == ["int64"]


def test_an_api_under_another_name_is_the_same_api(tmp_path: Path) -> None:
    renamed = newer_heartbeat()
    renamed[0]["name"], renamed[1]["name"] = "PulseRequest", "PulseResponse"
    over = overlay(SHIPPED, message, [imported(tmp_path, renamed)])
    assert set(over.messages) == {"HeartbeatRequest", "HeartbeatResponse"}
    assert "PulseRequest" in over.messages["HeartbeatRequest"].aliases


def test_two_imports_of_the_same_news_are_one(tmp_path: Path) -> None:
    first = imported(tmp_path, newer_heartbeat() + haunt())
    second = ImportedRelease("9.9.1", first.entries, first.table)
    over = overlay(SHIPPED, message, [first, second])
    assert set(over.messages) == {"HeartbeatRequest", "HeartbeatResponse", "HauntRequest", "HauntResponse"}
    assert set(over.releases["HauntRequest"]) == {"9.9.0", "9.9.1"}


@cases(
    ("schemas", "name", "words"),
    [
        (haunt()[:1], "HauntRequest", "do not have the same versions"),
        (newer_heartbeat()[:1], "HeartbeatRequest", "do not have the same versions"),
        ([{**each, "validVersions": "7-8"} for each in newer_heartbeat()], "HeartbeatRequest", "are not one range"),
        (
            [{**newer_heartbeat()[0], "type": "data"}],
            "HeartbeatRequest",
            "the tables have another message of this name",
        ),
    ],
)
def test_what_can_not_be_taken_is_left_out_and_the_rest_is_not(
    tmp_path: Path, schemas: list[Schema], name: str, words: str
) -> None:
    other = {"type": "data", "name": "Sample", "validVersions": "0", "flexibleVersions": "none", "fields": []}
    over = try_import(imported(tmp_path, [*schemas, other]))
    assert words in over.left_out[name]
    assert set(over.messages) == set(over.sources) == {"Sample"}


def test_an_entry_is_what_the_index_says() -> None:
    for name in ("FetchRequest", "RequestHeader", "ListConfigResourcesRequest"):
        assert index_entry(message(name)) == SHIPPED[name]
