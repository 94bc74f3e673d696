"""Names of numbers: every field that could have them has them, or is plain for a reason."""

import json
import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from importlib.resources import files

from dissector.protocol.schema import enums, loader
from dissector.protocol.schema.errors import known_errors
from dissector.protocol.schema.model import Field
from tests.cases import cases

RANGES = {"bool": (0, 1), "uint16": (0, 2**16 - 1), "uint32": (0, 2**32 - 1)}
RANGES |= {f"int{bits}": (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) for bits in (8, 16, 32, 64)}
LOOKS_LIKE_AN_ENUM = re.compile(
    r"(^|_)(acks|code|filter|kind|level|mechanism|mode|operations?|permission|protocol|source|state|status|types?)$"
)


def _walk(message: str, fields: tuple[Field, ...]) -> Iterator[tuple[str, str, Field]]:
    for field in fields:
        yield message, f"{message}.{field.snake_name}", field
        yield from _walk(message, field.fields)


FIELDS = [row for entry in loader.entries() for row in _walk(entry.name, loader.message(entry.name).fields)]
PATTERNS = {**enums.field_patterns(), **enums.plain_fields()}


@cases("pattern", PATTERNS)
def test_a_pattern_matches_fields_of_the_tables_and_nothing_but_numbers(pattern: str) -> None:
    types = {field.element_type for _, name, field in FIELDS if fnmatchcase(name, pattern)}
    assert types
    assert types <= RANGES.keys()


def test_a_field_can_hold_every_number_of_its_enum() -> None:
    for message, name, field in FIELDS:
        enum = enums.enum_of(message, name.partition(".")[2])
        if enum is not None:
            low, high = RANGES[field.element_type]
            assert [n for n in enums.members(enum) if not low <= n <= high] == [], (name, enum)


def test_no_field_matches_two_patterns() -> None:
    for _, name, _ in FIELDS:
        assert sum(fnmatchcase(name, pattern) for pattern in PATTERNS) < 2, name


def test_every_number_that_looks_like_an_enum_has_one_or_is_plain_for_a_reason() -> None:
    small = RANGES.keys() - {"bool", "int64"}
    looks = {name for _, name, f in FIELDS if f.element_type in small and LOOKS_LIKE_AN_ENUM.search(f.snake_name)}
    assert len(looks) > 50
    assert not [name for name in looks if not any(fnmatchcase(name, pattern) for pattern in PATTERNS)]
    assert all(len(reason.split()) > 3 for reason in enums.plain_fields().values())


def test_every_enum_of_a_field_is_there() -> None:
    assert set(enums.field_patterns().values()) <= set(enums.enums())


def test_imported_and_added_names_are_well_formed_and_name_their_source() -> None:
    for file in ("enums.json", "enum_additions.json"):
        text = files("dissector.protocol.schema").joinpath(file).read_text(encoding="utf-8")
        for enum, row in json.loads(text).items():
            assert row["source"], enum
            assert all(re.fullmatch("[A-Z][A-Z0-9_]*", name) for name in row["names"].values()), enum
            assert len(set(row["names"].values())) == len(row["names"]), enum


def test_additions_replace_no_name_of_apache() -> None:
    folder = files("dissector.protocol.schema")
    imported = json.loads(folder.joinpath("enums.json").read_text(encoding="utf-8"))
    additions = json.loads(folder.joinpath("enum_additions.json").read_text(encoding="utf-8"))
    for enum in additions.keys() & imported.keys():
        assert not additions[enum]["names"].keys() & imported[enum]["names"].keys(), enum
        assert additions[enum]["members"] == imported[enum]["members"], enum


@cases("enum", enums.enums())
def test_a_name_leads_back_to_its_number(enum: str) -> None:
    for number, name in enums.members(enum).items():
        assert enums.name_of(enum, number) == name
        assert enums.number_of(enum, name) == enums.number_of(enum, name.lower()) == number


@cases(
    ("message", "path", "number", "name"),
    [
        ("CreateAclsRequest", "creations[0].operation", 3, "READ"),
        ("CreateAclsRequest", "creations[0].resource_type", 4, "CLUSTER"),
        ("DescribeConfigsRequest", "resources[0].resource_type", 4, "BROKER"),
        ("ListConfigResourcesRequest", "resource_types[2]", 16, "CLIENT_METRICS"),
        ("DescribeAclsResponse", "resources[0].acls[1].permission_type", 9, "UNKNOWN(9)"),
        ("DescribeConfigsResponse", "results[0].configs[0].config_source", 5, "DEFAULT_CONFIG"),
        ("FetchRequest", "isolation_level", 1, "READ_COMMITTED"),
        ("ProduceRequest", "acks", -1, "ALL"),
        ("ListOffsetsRequest", "topics[0].partitions[0].timestamp", -2, "EARLIEST"),
        ("ListOffsetsRequest", "topics[0].partitions[0].timestamp", 1_700_000_000_000, ""),
        ("ConsumerGroupHeartbeatRequest", "member_epoch", -2, "LEAVE_GROUP_STATIC"),
        ("ShareFetchRequest", "topics[0].partitions[0].acknowledgement_batches[0].acknowledge_types[3]", 0, "GAP"),
        ("EndTxnRequest", "committed", True, "COMMIT"),
        ("RequestHeader", "request_api_key", 18, "ApiVersions"),
        ("MetadataResponse", "topics[0].error_code", 3, "UNKNOWN_TOPIC_OR_PARTITION"),
        ("AddPartitionsToTxnResponse", "partition_error_code", 1234, "UNKNOWN(1234)"),
        ("MetadataResponse", "topics[0].topic_authorized_operations", 0b1_0001_1000, "READ, WRITE, DESCRIBE"),
        ("MetadataResponse", "cluster_authorized_operations", -2_147_483_648, "OMITTED"),
        ("DescribeGroupsResponse", "groups[0].authorized_operations", 1 << 30 | 8, "READ, UNKNOWN(30)"),
        ("DescribeGroupsResponse", "groups[0].authorized_operations", 0, ""),
    ],
)
def test_a_field_knows_what_its_number_is_called(message: str, path: str, number: int, name: str) -> None:
    enum = enums.enum_of(message, path)
    assert enum is not None
    assert enums.name_of(enum, number) == name


@cases(
    ("message", "path"),
    [
        ("FetchRequest", "max_bytes"),
        ("MetadataRequest", "include_cluster_authorized_operations"),
        ("SaslHandshakeRequest", "mechanism"),
        ("DescribeGroupsResponse", "groups[0].group_state"),
        ("UpdateFeaturesRequest", "feature_updates[0].max_version_level"),
        ("NoSuchRequest", "no_such_field"),
    ],
)
def test_other_fields_have_no_enum(message: str, path: str) -> None:
    assert enums.enum_of(message, path) is None


def test_a_set_is_named_by_the_bits_of_its_members() -> None:
    read = enums.number_of("AuthorizedOperations", "read")
    assert read == 1 << (enums.number_of("AclOperation", "READ") or 0)
    assert enums.number_of("AclOperation", "no_such_operation") is None


def test_error_codes_are_an_enum_like_any_other() -> None:
    assert dict(enums.members("ErrorCode")) == {code: each.name for code, each in known_errors().items()}
