"""Which differences are listed with which others."""

from dataclasses import replace

from dissector.analysis.diff import DiffEntry, DiffReason
from dissector.analysis.diff.consequence_table import SUBSCRIPTION
from dissector.analysis.diff.consequences import fold_consequences
from dissector.analysis.diff.group_consequences import TOLD
from dissector.analysis.diff.key_differences import ELEMENTS
from tests.cases import cases

AGAIN = "also changes SyncGroup number of requests"


def counted(api: str, subject: str, a: int, b: int) -> DiffEntry:
    return DiffEntry(api, "", "", DiffReason.COUNT, str(a), str(b), a, b, subject=subject)


def alone(api: str, a: int, b: int) -> DiffEntry:
    return DiffEntry(api, "", "", DiffReason.ONE_SIDE, str(a), str(b), a, b)


@cases("order", [(0, 1, 2, 3), (3, 2, 1, 0), (1, 0, 3, 2)])
def test_assignments_follow_from_the_joins_of_their_own_group(order: tuple[int, ...]) -> None:
    """Although both groups of a mirror join once more."""
    entries = [
        counted(api, f"for {group}", a, b)
        for group, a, b in (("tea-mm2", 4, 5), ("shop-mm2", 5, 6))
        for api in ("JoinGroup", "SyncGroup")
    ]
    folded = fold_consequences([entries[n] for n in order])
    assert [(each.api, each.subject, each.explanation) for each in folded] == [
        ("JoinGroup", f"for {group}", f"{AGAIN} for {group}") for group in ("shop-mm2", "tea-mm2")
    ]


def test_assignments_of_another_group_do_not_follow() -> None:
    entries = [counted("JoinGroup", "for tea-mm2", 4, 5), counted("SyncGroup", "for shop-mm2", 4, 5)]
    assert fold_consequences(entries) == sorted(entries, key=lambda each: each.subject)


def test_what_follows_from_joining_more_often_is_listed_with_the_group_that_has_it() -> None:
    joins = [counted("JoinGroup", "for shop", 2, 1), counted("JoinGroup", "for tea", 1, 3)]
    found = fold_consequences([*joins, counted("OffsetFetch", "for tea", 1, 3)])
    assert [each.explanation for each in found] == ["", "also changes OffsetFetch number of requests for tea"]


@cases("reason, follows", [(DiffReason.CONTENT, True), (DiffReason.BATCHING, False)])
def test_other_records_go_to_other_partitions(reason: DiffReason, *, follows: bool) -> None:
    place = "topic_data.partition_data"
    records = DiffEntry("Produce", "request", f"{place}.records", reason, "7 records", "9 records", 7, 9)
    elements = DiffEntry("Produce", "request", place, DiffReason.ONE_SIDE, "partition 0", "partition 1", 2, 3, ELEMENTS)
    found = fold_consequences([records, elements])
    assert [each.explanation for each in found] == ([f"also changes request.{place}"] if follows else [ELEMENTS, ""])


STATE = f"{SUBSCRIPTION}user_data.task_offset_sums"


def said(path: str, a: str, b: str) -> DiffEntry:
    return DiffEntry("JoinGroup", "request", path, DiffReason.VALUE, a, b, 1, 3)


@cases(
    "more, follows",
    [
        (counted("DescribeCluster", "", 1, 3), True),
        (counted("DescribeTopicPartitions", "", 0, 2), True),
        (said(f"{STATE}.offset_sum", "an offset", "an offset, -2"), True),
        (said(STATE, "empty", "empty, not empty"), True),
        (counted("DescribeCluster", "", 3, 1), False),
        (counted("DescribeConfigs", "", 1, 3), False),
        (said(f"{STATE}.offset_sum", "an offset", "-2"), False),
        (said(STATE, "empty", "not empty"), False),  # from its first join on: of an earlier run
        (said("protocols", "stream", "stream, range"), False),
    ],
)
def test_what_streams_says_and_asks_when_it_joins_again(more: DiffEntry, *, follows: bool) -> None:
    join = replace(counted("JoinGroup", "", 1, 3), explanation=f"{TOLD}: {{a}} 0, {{b}} 1")
    assert len(fold_consequences([join, more])) == (1 if follows else 2)


def version(api: str, a: str, b: str) -> DiffEntry:
    return DiffEntry(api, "", "version", DiffReason.VERSION, a, b, 1, 1)


PROTOCOL = [alone("ConsumerGroupHeartbeat", 0, 9), alone("JoinGroup", 1, 0)]
UPGRADE = DiffEntry("ApiVersions", "request", "client_software_version", DiffReason.VALUE, "4.2.0", "4.3.1", 5, 5)


@cases(
    ("entries", "kept"),
    [
        ([*PROTOCOL, version("OffsetFetch", "v9", "v10")], 1),  # Java's other consumer
        ([*PROTOCOL, version("OffsetFetch", "v10", "v9")], 2),
        ([*PROTOCOL, version("Fetch", "v17", "v18")], 2),
        ([*PROTOCOL, version("OffsetFetch", "v9", "v10"), UPGRADE], 3),
        ([version("OffsetFetch", "v9", "v10")], 1),
    ],
)
def test_a_consumer_of_another_group_protocol_has_other_versions(entries: list[DiffEntry], kept: int) -> None:
    assert len(fold_consequences(entries)) == kept


@cases(
    ("a", "b", "follows"),
    [
        ("0 READ_UNCOMMITTED", "1 READ_COMMITTED", True),
        ("1 READ_COMMITTED", "0 READ_UNCOMMITTED", False),  # Java wants them in any case
        ("", "", False),
    ],
)
def test_who_reads_what_is_committed_asks_for_stable_offsets(a: str, b: str, *, follows: bool) -> None:
    stable = DiffEntry("OffsetFetch", "request", "require_stable", DiffReason.DEFAULT, "false", "true", 1, 1)
    isolation = DiffEntry("Fetch", "request", "isolation_level", DiffReason.DEFAULT, a, b, 1, 1)
    found = fold_consequences([stable, *([isolation] if a else [])])
    assert (stable in found) is not follows
    if follows:
        assert [each.explanation for each in found] == ["also changes OffsetFetch request.require_stable"]


def asked(path: str, a: str, b: str) -> DiffEntry:
    return DiffEntry("Fetch", "request", path, DiffReason.VALUE, a, b, 14, 28)


SMALLER = DiffEntry("Produce", "request", "topic_data.partition_data.records", DiffReason.BATCHING, "5", "3", 64, 113)
RETRIED = replace(counted("Produce", "", 0, 6), explanation="retries after NOT_LEADER_OR_FOLLOWER")


@cases(
    ("cause", "entry", "follows"),
    [
        (asked("rack_id", "empty", "eu-1"), said(f"{SUBSCRIPTION}rack_id", "null", "eu-1"), True),
        (asked("rack_id", "empty", "eu-1"), said(f"{SUBSCRIPTION}owned_partitions", "null", "eu-1"), False),
        (SMALLER, counted("Produce", "", 32, 57), True),
        (SMALLER, counted("Produce", "", 57, 32), False),
        (SMALLER, RETRIED, False),
        (RETRIED, counted("Metadata", "", 3, 9), True),
        (RETRIED, counted("Metadata", "", 9, 3), False),
        (RETRIED, replace(counted("Metadata", "", 3, 9), path="interval", reason=DiffReason.TIMING), True),
        (asked("topics.partitions.partition_max_bytes", "1048576", "2048"), counted("Fetch", "", 14, 28), True),
        (asked("max_bytes", "52428800", "2048"), counted("Fetch", "", 14, 28), True),
        (asked("max_bytes", "52428800", "2048"), counted("Fetch", "", 28, 14), False),
        (asked("max_bytes", "104857600", "52428800"), counted("Fetch", "", 14, 28), False),
        (asked("min_bytes", "1", "2048"), counted("Fetch", "", 14, 28), False),
        (replace(RETRIED, explanation="retries after CORRUPT_MESSAGE"), counted("Metadata", "", 3, 9), False),
        (replace(RETRIED, explanation=""), counted("Metadata", "", 3, 9), False),
        (said("group_instance_id", "null", "till-1"),
         said("reason", "need to re-join with the given member-id: a member", "empty"), True),
        (said("group_instance_id", "null", "till-1"),
         said("reason", "need to re-join with the given member-id: a member", "empty, need to revoke"), False),
        (said("group_instance_id", "till-1", "null"),
         said("reason", "need to re-join with the given member-id: a member", "empty"), False),
    ],
)  # fmt: skip
def test_what_follows_from_a_setting_or_a_leader(cause: DiffEntry, entry: DiffEntry, *, follows: bool) -> None:
    assert len(fold_consequences([entry, cause])) == (1 if follows else 2)


def logged_in(api: str, path: str, reason: DiffReason, a: int = 0, b: int = 5) -> DiffEntry:
    return DiffEntry(api, "request" if path else "", path, reason, f"{a}", f"{b}", a, b)


MECHANISM = logged_in("SaslHandshake", "mechanism", DiffReason.VALUE)
LOGIN = logged_in("SaslHandshake", "", DiffReason.ONE_SIDE)


@cases(
    ("cause", "entry", "follows"),
    [
        (MECHANISM, logged_in("SaslAuthenticate", "auth_bytes.nonce", DiffReason.ONE_SIDE), True),
        (MECHANISM, logged_in("SaslAuthenticate", "", DiffReason.COUNT, 5, 10), True),
        (MECHANISM, logged_in("SaslAuthenticate", "error_code", DiffReason.VALUE), False),
        (LOGIN, logged_in("SaslAuthenticate", "", DiffReason.ONE_SIDE), True),
        (LOGIN, logged_in("ApiVersions", "", DiffReason.COUNT, 5, 10), True),
        (LOGIN, logged_in("ApiVersions", "", DiffReason.COUNT, 10, 5), False),
        (LOGIN, logged_in("Metadata", "", DiffReason.COUNT, 5, 10), False),
    ],
)
def test_what_follows_from_another_way_of_logging_in(cause: DiffEntry, entry: DiffEntry, *, follows: bool) -> None:
    assert len(fold_consequences([entry, cause])) == (1 if follows else 2)


def test_a_transaction_stands_for_an_id_outside_of_any() -> None:
    words = "also changes requests of Produce"
    begins = replace(alone("InitProducerId", 0, 1), subject="for teller", explanation=words)
    others = [alone("InitProducerId", 1, 0), alone("Produce", 200, 0)]
    assert [entry.subject for entry in fold_consequences([*others, begins])] == ["for teller"]
    assert len(fold_consequences([alone("InitProducerId", 0, 2), begins])) == 2
