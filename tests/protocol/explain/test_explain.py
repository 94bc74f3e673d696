"""What `explain` is made of, held against the reader, the importer's own comparison, and facts of the KIPs."""

import pytest

from dissector.protocol.codec.plan import plan
from dissector.protocol.codec.reader import reader
from dissector.protocol.explain.changes import changes, history
from dissector.protocol.explain.diagram import Box, diagram, draw
from dissector.protocol.explain.example import example, example_batch
from dissector.protocol.explain.field_rows import field_rows
from dissector.protocol.explain.reference import header_lines, primitive_lines
from dissector.protocol.explain.release_diff import release_side
from dissector.protocol.explain.releases import known_releases, release_order, released_in, spans
from dissector.protocol.explain.target import UnknownTargetError, find_target
from dissector.protocol.records.batch import Batch
from dissector.protocol.records.to_json import frame_budget
from dissector.protocol.schema.importer.wire_layout import differences
from dissector.protocol.schema.importer.wire_layout import wire_layout as slots
from dissector.protocol.schema.loader import entries, message
from dissector.protocol.schema.model import SchemaError
from tests.cases import cases

EVERY = [(entry.name, version) for entry in entries() for version in entry.valid_versions]


@pytest.mark.long
def test_every_example_is_read_back_without_a_finding_and_its_leaves_tile_it() -> None:
    for name, version in EVERY:
        made = example(message(name), version)
        assert not [node.findings for node in made.tree.walk() if node.findings], (name, version)
        assert "".join(made.data[leaf.start : leaf.end].hex() for leaf in made.tree.leaves()[0]) == made.data.hex()
        if message(name).api_key is None:
            values, end = reader(name, version)(made.data, 0, len(made.data))
            assert end == len(made.data)
            assert (
                any(value not in (0, "", None, b"", []) for value in values.values()) or not plan(name, version).fields
            )


@pytest.mark.long
@pytest.mark.slow
def test_every_picture_fits_the_page_and_names_every_field() -> None:
    for name, version in EVERY:
        lines = list(diagram(plan(name, version)))
        assert all(len(line) <= 80 for line in lines), (name, version)
        letters = "".join("".join(lines).translate({ord(c): None for c in " |/+-"}))
        for line in field_rows(plan(name, version)):
            if line.type.startswith(("STRUCT", "COMPACT", "ARRAY", "STRING", "INT32", "INT64", "UUID")):
                assert line.name in letters, (name, version, line.name)


def test_a_picture_has_a_row_for_four_bytes_and_a_box_goes_on_in_the_next_one() -> None:
    dashes, gap = "+-+-+-+-+-+-+-+-", " " * 31
    assert list(draw([Box("code", 2), Box("number", 4), Box("name  STRING", None)])) == [
        dashes * 4 + "+",
        "|" + "code".center(31) + "|" + "number".center(31) + "|",
        dashes * 4 + "+",
        "|" + gap + "|",
        dashes * 4 + "+",
        f"/ {'name  STRING':<61} /",
        dashes * 4 + "+",
    ]
    middle = list(draw([Box("a", 1), Box("long", 8)]))[2]
    assert middle == "+-" * 8 + "+" + " " * 47 + "+"


def test_what_changed_is_what_the_importer_sees_as_different() -> None:
    """Two comparisons that share nothing: of plans, and of schemas laid out."""
    for entry in entries():
        found = message(entry.name)
        for version in list(found.valid_versions)[1:]:
            ours = list(changes(plan(found.name, version - 1), plan(found.name, version)))
            flexible = [found.flexible_versions.contains(v) for v in (version - 1, version)]
            theirs = list(differences(slots(found, version - 1), slots(found, version)))
            assert bool(ours) == bool(theirs or flexible[0] != flexible[1]), (found.name, version)


@cases(
    ("name", "version", "words"),
    [
        ("FetchRequest", 12, "flexible: compact lengths and tagged fields"),
        ("FetchRequest", 13, "topics.topic_id: added, UUID"),
        ("FetchRequest", 13, "topics.topic: removed (was COMPACT_STRING)"),
        ("MetadataRequest", 1, "topics: may be null"),
        ("MetadataResponse", 12, "topics.name: may be null"),
        ("CreateTopicsResponse", 5, "topics.topic_config_error_code: added, INT16, tag 0, default 0"),
    ],
)
def test_a_step_says_what_its_kip_says(name: str, version: int, words: str) -> None:
    [step] = [step for step in history(message(name)) if step.version == version]
    assert words in [str(change) for change in step.changes]


def test_an_api_is_found_by_any_of_its_names() -> None:
    for word in ("Fetch", "fetch", "1", "FETCH"):
        assert find_target(word).messages == (message("FetchRequest"), message("FetchResponse"))
    assert find_target("offset_commit").name == "OffsetCommit"
    assert find_target("fetchrequest").messages == (message("FetchRequest"),)
    assert find_target("ConsumerProtocolSubscription").api is None
    assert find_target("ListClientMetricsResources").name == "ListConfigResources"


@cases(
    ("word", "words"),
    [("ftch", "the names are those"), ("999", "no API has the key 999"), ("\x1b", "the names are those")],
)
def test_what_is_not_found_gets_one_line(word: str, words: str) -> None:
    with pytest.raises(UnknownTargetError, match=words):
        find_target(word)


def test_the_version_is_the_newest_stable_one_unless_given() -> None:
    assert find_target("Fetch").version(None) == message("FetchRequest").valid_versions.high
    unstable = find_target("InitProducerId")
    assert unstable.version(None) == message("InitProducerIdRequest").valid_versions.high - 1
    assert find_target("Fetch").version("v4") == 4
    for wrong in ("99", "-1", "x", "²", "9" * 5_000):
        with pytest.raises(UnknownTargetError, match=r"it has 0-\d+"):
            find_target("Fetch").version(wrong)


def test_releases_stand_in_their_order_and_neighbours_are_a_span() -> None:
    assert sorted(["3.10.0", "3.9.2", "4.0"], key=release_order) == ["3.9.2", "3.10.0", "4.0"]
    first, second, third, *_ = known_releases()
    assert spans([first, second]) == f"{first} to {second}"
    assert spans([third, first]) == f"{first}, {third}"
    assert released_in(message("ApiVersionsRequest"), 5) == known_releases()[-1]


def test_headers_stand_as_the_rules_and_their_exceptions_say() -> None:
    rows = {(row.api.name, str(row.versions)): (row.request, row.response) for row in header_lines()}
    assert rows["ApiVersions", "0-2"] == (1, 0)
    assert rows["ApiVersions", "3-5"] == (2, 0)
    assert rows["ControlledShutdown", "0"] == (0, 0)
    assert rows["Fetch", "0-11"] == (1, 0)
    assert rows["Fetch", f"12-{message('FetchRequest').valid_versions.high}"] == (2, 1)


def test_every_primitive_type_shows_its_bytes() -> None:
    rows = {line.name: line for line in primitive_lines()}
    assert rows["COMPACT_STRING"].data == b"\x06kafka"
    assert rows["UNSIGNED_VARINT"].data == b"\xac\x02"
    assert rows["NULLABLE_BYTES"].value == "null"


def test_the_example_batch_is_whole() -> None:
    batch = Batch.read(example_batch())
    assert batch.crc_valid
    assert [record.value for record in batch.records(frame_budget())] == [b"2 apples"]


def test_two_numbers_name_the_one_release_that_begins_with_them() -> None:
    assert release_side("3.9").label == "3.9.2"
    with pytest.raises(SchemaError, match="neither a jar nor a known release"):
        release_side("3")
