"""What follows from another way of being in a group: static membership, commits that are lost, joining more often,
rebalances, the protocol of KIP-848."""

from collections.abc import Mapping
from typing import Final

from dissector.analysis.diff.consequence_table import CONNECTIONS, INSTANCE, SUBSCRIPTION, FieldKey, field_of
from dissector.analysis.diff.matching_keys import GROUP_PROTOCOLS
from dissector.analysis.diff.message_leaves import EMPTY, NOT_EMPTY
from dissector.analysis.diff.result import DiffEntry, DiffReason
from dissector.protocol.schema.error_codes import ErrorCode

CLASSIC_GROUP: Final = frozenset(("JoinGroup", "SyncGroup", "Heartbeat", "LeaveGroup"))
COMMIT: Final[FieldKey] = ("OffsetCommit", "", "")
COMMIT_INTERVAL: Final[FieldKey] = ("OffsetCommit", "", "interval")
COMMITS_ON_LEAVING: Final[FieldKey] = ("OffsetCommit", "", "on_leaving")
FIND_COORDINATOR: Final[FieldKey] = ("FindCoordinator", "", "")
COMMITTED: Final[tuple[FieldKey, ...]] = tuple(
    ("OffsetFetch", "response", f"topics.partitions.{name}") for name in ("committed_offset", "committed_leader_epoch")
)
"""What a broker returns of what was committed."""
FETCHED_OFFSETS: Final[frozenset[FieldKey]] = frozenset((
    ("OffsetFetch", "", ""),
    *(("OffsetFetch", "request", name) for name in ("member_id", "member_epoch")),
    *COMMITTED,
))  # fmt: skip
"""What depends on the group protocol: a member of KIP-848 fetches offsets with its epoch, after other assignments."""
OFFSET_VERSIONS: Final[tuple[FieldKey, ...]] = (("OffsetFetch", "", "version"), ("OffsetCommit", "", "version"))
"""Java's consumer of KIP-848 names topics by their ids, since v10, and its classic one does not."""
SOFTWARE: Final[frozenset[FieldKey]] = frozenset(
    ("ApiVersions", "request", f"client_software_{name}") for name in ("name", "version")
)
BY_ID: Final[tuple[FieldKey, ...]] = (
    ("Metadata", "request", "topics.name"),
    ("Metadata", "request", "topics.topic_id"),
)
"""How a member of KIP-848 asks for the topics that it is assigned, of which it is told the ids alone."""
MEMBER_ID: Final[FieldKey] = ("JoinGroup", "request", "member_id")
JOIN: Final[FieldKey] = ("JoinGroup", "", "")
SAID_AGAIN: Final[tuple[FieldKey, ...]] = (
    *(("JoinGroup", "request", SUBSCRIPTION + name)
      for name in ("generation_id", "owned_partitions", "user_data.generation", "user_data.task_offset_sums",
                   "user_data.task_offset_sums.offset_sum")),
    ("JoinGroup", "request", "reason"),
    MEMBER_ID,
)  # fmt: skip
"""What a member says only when it joins again, or otherwise then (KIP-429, KIP-792, KIP-800); one of Streams has tasks
by then, and says of those that run that they need no more of their state (KIP-441)."""
USER_DATA: Final[FieldKey] = ("JoinGroup", "request", f"{SUBSCRIPTION}user_data")
"""What an assignor tells its next leader; nothing at first."""
TOLD: Final = f"responses with {ErrorCode.REBALANCE_IN_PROGRESS.name}"
"""In the explanation of how often both sides join: other members came or went."""
DONE_AGAIN: Final = frozenset(
    ("Metadata", "FindCoordinator", "ListOffsets", "OffsetForLeaderEpoch", "OffsetCommit", "DescribeCluster",
     "DescribeTopicPartitions")
)  # fmt: skip
"""What a client requests for partitions that it loses and gets, and the leader of Streams before it assigns any."""
OF_OTHERS: Final[FieldKey] = ("OffsetFetch", "response", "topics.partitions.metadata")
"""What comes from the member that had a partition before."""
NUMBERS: Final = (DiffReason.COUNT, DiffReason.RATE, DiffReason.ONE_SIDE)
ASSIGNED: Final = "assignments."
MEMBERS: Final[FieldKey] = ("JoinGroup", "response", "members")
"""Of a further member, which is not the leader, empty."""
TOPICS: Final[FieldKey] = ("Fetch", "request", "topics")
LEAVE: Final[FieldKey] = ("LeaveGroup", "", "")
REASON: Final[FieldKey] = ("JoinGroup", "request", "reason")
GIVEN_ID: Final = "with the given member-id"
"""Part of what Java gives as the reason of a second join (KIP-800)."""
SKIPS: Final[FieldKey] = ("JoinGroup", "response", "skip_assignment")
JOIN_VERSION: Final[FieldKey] = ("JoinGroup", "", "version")
MEMBER_ID_REQUIRED: Final = f"with {ErrorCode.MEMBER_ID_REQUIRED.name}"


def cause_in_group(entry: DiffEntry, entries: Mapping[FieldKey, DiffEntry]) -> FieldKey | None:
    """Return what another way of being in a group changes with an entry."""
    if _is_of_static_member(entry, entries.get(INSTANCE)):
        return INSTANCE
    if _is_of_lost_commits(entry, entries.get(COMMIT)):
        return COMMIT
    if _is_of_leaving(entry, entries.get(COMMITS_ON_LEAVING)):
        return COMMITS_ON_LEAVING
    if _is_of_joins(entry, entries.get(JOIN)):
        return JOIN
    return _group_protocol(entry, entries)


def _is_of_leaving(entry: DiffEntry, leaving: DiffEntry | None) -> bool:
    """Return whether an entry follows from one side alone committing as it leaves: it commits by itself before, too."""
    is_number = field_of(entry) in (COMMIT, COMMIT_INTERVAL) and entry.reason in (*NUMBERS, DiffReason.TIMING)
    return is_number and leaving is not None and (entry.count_a > entry.count_b) == (leaving.count_a > leaving.count_b)


def _is_of_joins(entry: DiffEntry, join: DiffEntry | None) -> bool:
    """Return whether an entry follows from one side joining its group more often: that side looks up its offsets after
    each, and says what it had before, besides what both say."""
    if join is None or join.reason is not DiffReason.COUNT:
        return False
    a_joins = join.count_a > join.count_b
    if field_of(entry) == ("OffsetFetch", "", ""):
        return entry.reason is DiffReason.COUNT and (entry.count_a > entry.count_b) == a_joins
    more, less = (entry.a, entry.b) if a_joins else (entry.b, entry.a)
    if field_of(entry) in SAID_AGAIN and has_all_values(more, less):
        return True
    if field_of(entry) == USER_DATA and entry.reason is DiffReason.ONE_SIDE and not less:
        return True
    return TOLD in join.explanation and _is_of_rebalances(entry, more, less, a_joins=a_joins)


def _is_of_rebalances(entry: DiffEntry, more: str, less: str, *, a_joins: bool) -> bool:
    """Return whether an entry follows from rebalances: `more` and `less` is what the side has that joins more often,
    and the other one. It is told of them, begins to read again, on further connections, and gets partitions that other
    members had; as the leader it assigns some to these."""
    field = field_of(entry)
    if not entry.part:
        is_more = (entry.count_a > entry.count_b) == a_joins and entry.count_a != entry.count_b
        is_told = entry.api == "Heartbeat" and entry.subject.endswith(ErrorCode.REBALANCE_IN_PROGRESS.name)
        is_done_again = field in {(api, "", "") for api in DONE_AGAIN} and entry.reason in NUMBERS
        is_of_members = entry.reason is DiffReason.COUNT and (
            field == LEAVE or (field == JOIN and entry.subject.endswith(MEMBER_ID_REQUIRED))
        )
        return is_more and (is_told or is_done_again or is_of_members or field == CONNECTIONS)
    if field == TOPICS:  # a session that begins again asks for what is no news to the one before it (KIP-227)
        return {*more.split(", "), *less.split(", ")} == {EMPTY.text, NOT_EMPTY.text}
    is_assigned = entry.api == "SyncGroup" and entry.part == "request" and f"{entry.path}.".startswith(ASSIGNED)
    return (field in (OF_OTHERS, MEMBERS) or is_assigned) and has_all_values(more, less)


def _is_of_static_member(entry: DiffEntry, instance: DiffEntry | None) -> bool:
    """Return whether an entry follows from static membership: no coordinator demands another id of a static member,
    which begins without one after each restart, and does not leave its group (KIP-345); its leader need not assign
    again (KIP-814)."""
    if instance is None or (instance.a == "null") == (instance.b == "null"):
        return False
    static, other = (entry.b, entry.a) if instance.a == "null" else (entry.a, entry.b)
    field = field_of(entry)
    if field == MEMBER_ID:
        return "empty" in static.split(", ") and "empty" not in other.split(", ")
    if field == REASON:
        return GIVEN_ID in other and static == "empty"
    if field == SKIPS:
        return "true" in static.split(", ") and "true" not in other.split(", ")
    is_refused = field == JOIN and entry.subject.endswith(MEMBER_ID_REQUIRED)
    return (is_refused or field == LEAVE) and entry.reason is DiffReason.ONE_SIDE and static == "0"


def _is_of_lost_commits(entry: DiffEntry, commits: DiffEntry | None) -> bool:
    """Return whether an entry follows from commits that the broker closed on: the side that loses them finds no
    committed offsets, and looks for the coordinator again after each."""
    if commits is None or commits.reason is not DiffReason.UNANSWERED:
        return False
    a_loses = commits.count_a > commits.count_b
    if field_of(entry) == FIND_COORDINATOR:
        return entry.reason in (DiffReason.COUNT, DiffReason.RATE) and (entry.count_a > entry.count_b) == a_loses
    return field_of(entry) in COMMITTED and (entry.a if a_loses else entry.b).startswith("-1")


def _group_protocol(entry: DiffEntry, entries: Mapping[FieldKey, DiffEntry]) -> FieldKey | None:
    """Return the heartbeats of another group protocol that are in place of the requests of the classic one, for these
    and for what follows from the protocol."""
    heartbeats = next((each for api in GROUP_PROTOCOLS if (each := entries.get((api, "", "")))), None)
    if heartbeats is None or heartbeats.reason is not DiffReason.ONE_SIDE:
        return None
    if entry.api in CLASSIC_GROUP and not entry.part and _is_instead(entry, heartbeats):
        return field_of(heartbeats)
    join = entries.get(JOIN)
    if join is None or not _is_instead(join, heartbeats):
        return None
    more, less = (entry.a, entry.b) if heartbeats.count_a else (entry.b, entry.a)
    if field_of(entry) in OFFSET_VERSIONS and SOFTWARE.isdisjoint(entries):
        return field_of(heartbeats) if _newest(more) > _newest(less) else None
    is_by_id = field_of(entry) in BY_ID and len(more.split(", ")) > len(less.split(", "))
    return field_of(heartbeats) if is_by_id or field_of(entry) in FETCHED_OFFSETS else None


def _newest(versions: str) -> int:
    return max(int(each.removeprefix("v")) for each in versions.split(", "))


def _is_instead(entry: DiffEntry, other: DiffEntry) -> bool:
    """Return whether one side alone has an entry's requests, and the other side alone those of the other entry."""
    is_alone = entry.reason is DiffReason.ONE_SIDE and other.reason is DiffReason.ONE_SIDE
    return is_alone and bool(entry.count_a) != bool(other.count_a)


def has_all_values(more: str, less: str) -> bool:
    """Return whether a list of values, as an entry has it, has all of another one."""
    return set(less.split(", ")) <= set(more.split(", "))
