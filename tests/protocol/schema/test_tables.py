"""The tables that ship: all load, agree with their index, and have no version of no release missing."""

import json
import re
from importlib.resources import files

import pytest

from dissector.protocol.schema import loader
from dissector.protocol.schema.errors import error_name, is_retriable, known_errors
from dissector.protocol.schema.headers import request_header_version, response_header_version
from dissector.protocol.schema.importer.write import table_text
from dissector.protocol.schema.index import IndexEntry
from dissector.protocol.schema.model import Versions
from tests.cases import cases

ENTRIES = loader.entries()
TABLES = files("dissector.protocol.schema") / "tables"


@cases("entry", ENTRIES, ids=lambda e: e.name)
def test_a_table_loads_agrees_with_the_index_and_is_written_as_it_stands(entry: IndexEntry) -> None:
    message = loader.message(entry.name)
    for name in IndexEntry._fields:
        assert getattr(message, name) == getattr(entry, name), name
    assert table_text(message) == TABLES.joinpath(f"{entry.name}.json").read_text(encoding="utf-8")


def test_every_table_is_in_the_index() -> None:
    tables = {path.name for path in TABLES.iterdir() if path.name.endswith(".json")}
    assert tables == {f"{e.name}.json" for e in ENTRIES} | {"index.json"}


def test_the_versions_of_a_message_are_those_of_its_releases_together() -> None:
    for entry in ENTRIES:
        message = loader.message(entry.name)
        assert set(message.valid_versions) == {v for versions in message.releases.values() for v in versions}


def test_tables_hold_fields_and_no_prose() -> None:
    # The longest thing that a fact needs is a name or a range; prose has words with blanks between.
    for entry in ENTRIES:
        text = TABLES.joinpath(f"{entry.name}.json").read_text(encoding="utf-8")
        assert not [s for s in re.findall(r'"((?:[^"\\]|\\.)*)"', text) if " " in s], entry.name


def test_all_apis_are_there_with_every_version_that_was_released() -> None:
    apis = loader.apis()
    assert len(apis) == 95
    assert sum(len(list(each.versions)) for each in apis) == 368
    assert [each.key for each in apis] == sorted(each.key for each in apis)
    assert {each.key for each in apis} >= set(range(82))


@cases(
    ("key", "name", "versions", "deprecated"),
    [
        (0, "Produce", "0-13", "0-2"),
        (1, "Fetch", "0-18", "0-3"),
        (4, "LeaderAndIsr", "0-7", "0-7"),
        (18, "ApiVersions", "0-5", "none"),
        (76, "ShareGroupHeartbeat", "0-1", "0"),
    ],
)
def test_what_kafka_4_removed_is_there_and_deprecated(key: int, name: str, versions: str, deprecated: str) -> None:
    api = loader.api(key)
    assert api is not None
    assert (api.name, str(api.versions), str(api.deprecated_versions)) == (name, versions, deprecated)
    assert (loader.request(key).name, loader.response(key).name) == (f"{name}Request", f"{name}Response")


def test_an_unknown_key_or_name_is_reported_as_such() -> None:
    assert loader.api(9999) is None
    with pytest.raises(KeyError):
        loader.message("NoSuchRequest")


def test_an_old_name_stays_as_an_alias() -> None:
    [partitions] = [f for topic in loader.message("VoteRequest").fields for f in topic.fields if f.name == "Partitions"]
    aliases = {f.name: f.aliases for f in partitions.fields if f.aliases}
    assert aliases["ReplicaEpoch"] == ("CandidateEpoch",)
    assert [a.aliases for a in loader.apis() if a.key == 74] == [("ListClientMetricsResources",)]


def test_another_layout_of_the_same_version_can_be_loaded() -> None:
    name = "ReadShareGroupStateSummaryResponse"
    [other] = loader.alternatives(name, 0)
    assert other.name == name
    assert other.fields != loader.message(name).fields
    assert other.valid_versions == Versions.parse("0")
    assert loader.alternatives(name, 1) == loader.alternatives("FetchRequest", 0) == ()


def test_every_alternative_in_the_index_loads() -> None:
    rows = json.loads(TABLES.joinpath("index.json").read_text(encoding="utf-8"))["alternatives"]
    assert rows
    for row in rows:
        for version in Versions.parse(row["versions"]):
            assert loader.alternatives(row["name"], version)


@cases(
    ("key", "version", "request_version", "response_version"),
    [
        (18, 0, 1, 0),
        (18, 3, 2, 0),  # ApiVersions: never flexible in its response's header (KIP-511)
        (7, 0, 0, 0),  # ControlledShutdown v0: before there was a client id
        (7, 1, 1, 0),
        (7, 3, 2, 1),
        (1, 11, 1, 0),
        (1, 12, 2, 1),
    ],
)
def test_headers_follow_the_body_but_for_two_exceptions(
    key: int, version: int, request_version: int, response_version: int
) -> None:
    assert request_header_version(key, version) == request_version
    assert response_header_version(key, version) == response_version


def test_a_header_of_an_unknown_api_is_a_key_error() -> None:
    with pytest.raises(KeyError):
        request_header_version(9999, 0)


def test_every_error_code_has_a_unique_name() -> None:
    codes = known_errors()
    assert list(codes) == list(range(-1, len(codes) - 1))
    assert len({each.name for each in codes.values()}) == len(codes)
    assert all(re.fullmatch("[A-Z_0-9]+", each.name) for each in codes.values())


@cases(
    ("code", "name", "retriable"),
    [
        (-1, "UNKNOWN_SERVER_ERROR", False),
        (0, "NONE", False),
        (3, "UNKNOWN_TOPIC_OR_PARTITION", True),
        (6, "NOT_LEADER_OR_FOLLOWER", True),
        (35, "UNSUPPORTED_VERSION", False),
        (12345, "UNKNOWN(12345)", False),
    ],
)
def test_errors_have_kafkas_names(code: int, name: str, retriable: bool) -> None:
    assert (error_name(code), is_retriable(code)) == (name, retriable)
