"""Fold differences that follow from others into their causes."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final

from dissector.analysis.diff.field_comparison import ELEMENTS
from dissector.analysis.diff.matching_keys import CLOSING_A_SESSION, GROUP_PROTOCOLS
from dissector.analysis.diff.message_leaves import PRODUCER_FIELDS
from dissector.analysis.diff.result import DiffEntry, DiffReason
from dissector.exchange.info_column import ERROR_CODES
from dissector.protocol.embedded.messages import MISSING
from dissector.protocol.schema.error_codes import ErrorCode

FieldKey = tuple[str, str, str]
"""API, part and path."""
_SUBSCRIPTION: Final = "protocols.metadata."
_BATCHES: Final = "topic_data.partition_data.records."
INSTANCE: Final[FieldKey] = ("JoinGroup", "request", "group_instance_id")
PROTOCOLS: Final[FieldKey] = ("JoinGroup", "request", "protocols")
CONSEQUENCES: Final[dict[FieldKey, tuple[FieldKey, ...]]] = {
    ("Fetch", "request", "session_id"): (
        ("Fetch", "request", "session_epoch"),
        ("Fetch", "request", "topics"),
        ("Fetch", "request", "forgotten_topics_data"),
        ("Fetch", "response", "session_id"),
        ("Fetch", "response", "responses"),
    ),
    ("Fetch", "request", "session_epoch"): (("Fetch", "response", "session_id"),),
    ("Fetch", "request", "isolation_level"): (
        ("ListOffsets", "request", "isolation_level"),
        ("Fetch", "response", "responses.partitions.aborted_transactions"),
    ),
    ("InitProducerId", "", ""): (
        *(("Produce", "request", f"{_BATCHES}{name}") for name in PRODUCER_FIELDS),
        ("Fetch", "response", "responses.partitions.aborted_transactions"),
    ),
    ("Produce", "request", f"{_BATCHES}producer_epoch"): (("Produce", "request", f"{_BATCHES}base_sequence"),),
    ("Produce", "", "linger"): (("Produce", "", ""),),
    ("Produce", "", "version"): (("Produce", "request", f"{_BATCHES}magic"),),
    ("Produce", "request", f"{_BATCHES}magic"): tuple(
        ("Produce", "request", _BATCHES + name) for name in ("timestamp_type", "transactional")
    ),
    PROTOCOLS: (
        ("JoinGroup", "response", "protocol_name"),
        ("SyncGroup", "request", "protocol_name"),
        ("SyncGroup", "response", "protocol_name"),
    ),
    ("JoinGroup", "request", f"{_SUBSCRIPTION}{MISSING}"): (
        ("JoinGroup", "request", f"{_SUBSCRIPTION}owned_partitions"),
    ),
    ("JoinGroup", "request", f"{_SUBSCRIPTION}version"): tuple(
        ("JoinGroup", "request", _SUBSCRIPTION + name) for name in ("owned_partitions", "generation_id", "rack_id")
    ),
    ("ApiVersions", "request", "client_software_name"): (("ApiVersions", "request", "client_software_version"),),
    ("ApiVersions", "", "version"): (("ApiVersions", "response", "supported_features"),),
    ("FindCoordinator", "", "version"): (("FindCoordinator", "response", "error_message"),),
    ("OffsetCommit", "request", "topics.partitions.committed_metadata"): (
        ("OffsetFetch", "response", "topics.partitions.metadata"),
    ),
    ("OffsetCommit", "request", "topics.partitions.committed_leader_epoch"): (
        ("OffsetFetch", "response", "topics.partitions.committed_leader_epoch"),
    ),
    INSTANCE: (
        *(
            (api, "request", "group_instance_id")
            for api in ("SyncGroup", "Heartbeat", "OffsetCommit", "TxnOffsetCommit")
        ),
        ("JoinGroup", "response", "members.group_instance_id"),
        ("LeaveGroup", "request", "members.group_instance_id"),
        ("LeaveGroup", "response", "members.group_instance_id"),
    ),
    ("OffsetFetch", "request", "topics"): (("OffsetFetch", "request", "topics.partition_indexes"),),
    ("OffsetFetch", "request", "member_epoch"): (("OffsetFetch", "request", "member_id"),),
    ("ListOffsets", "request", "topics.partitions.timestamp"): (
        ("ListOffsets", "response", "topics.partitions.timestamp"),
        ("ListOffsets", "response", "topics.partitions.offset"),
    ),
    ("DescribeConfigs", "request", "resources.configuration_keys"): (
        ("DescribeConfigs", "response", "results.configs"),
    ),
    ("DescribeGroups", "request", "include_authorized_operations"): (
        ("DescribeGroups", "response", "groups.authorized_operations"),
    ),
    ("Metadata", "request", "include_topic_authorized_operations"): (
        ("Metadata", "response", "topics.topic_authorized_operations"),
    ),
    ("Metadata", "request", "include_cluster_authorized_operations"): (
        ("Metadata", "response", "cluster_authorized_operations"),
    ),
    ("CreateTopics", "request", "topics.num_partitions"): (("CreateTopics", "response", "topics.num_partitions"),),
}
"""By cause: an incremental Fetch names only what changed (KIP-227); who lingers sends fewer batches; brokers list
aborted transactions only for READ_COMMITTED (KIP-98), where only idempotent producers have an id; the version of
Produce says which magic batches have, and later ones have more attributes (KIP-32, KIP-98); a later subscription has
more fields (KIP-429, KIP-792, KIP-881); a broker hides features that an old client could not read (KIP-1022), and
sends a message for success only in the versions that look up a single coordinator; a static member has its name in
all requests of its group (KIP-345); a broker returns what was committed, and answers what was asked."""
_NUMBER: Final = re.compile(r"\d+")
CLASSIC_GROUP: Final = frozenset(("JoinGroup", "SyncGroup", "Heartbeat", "LeaveGroup"))
COMMIT: Final[FieldKey] = ("OffsetCommit", "", "")
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
WAIT: Final[FieldKey] = ("Fetch", "request", "max_wait_ms")
USER_DATA: Final[tuple[FieldKey, ...]] = (
    ("JoinGroup", "request", f"{_SUBSCRIPTION}user_data"),
    ("JoinGroup", "request", f"{_SUBSCRIPTION}user_data.generation"),
)
MEMBER_ID: Final[FieldKey] = ("JoinGroup", "request", "member_id")
JOIN: Final[FieldKey] = ("JoinGroup", "", "")
SAID_AGAIN: Final[tuple[FieldKey, ...]] = (
    *(("JoinGroup", "request", _SUBSCRIPTION + name) for name in ("generation_id", "owned_partitions",
                                                                  "user_data.generation")),
    ("JoinGroup", "request", "reason"),
)  # fmt: skip
"""What a member says only when it joins again, or otherwise then (KIP-429, KIP-792, KIP-800)."""
LEAVE: Final[FieldKey] = ("LeaveGroup", "", "")
SKIPS: Final[FieldKey] = ("JoinGroup", "response", "skip_assignment")
RECORDS: Final[FieldKey] = ("Produce", "request", "topic_data.partition_data.records")
PARTITIONS: Final[tuple[FieldKey, ...]] = (
    ("Produce", "request", "topic_data.partition_data"), ("Produce", "response", "responses.partition_responses"),
)  # fmt: skip
"""Where other records go."""
END_VERSION: Final[FieldKey] = ("EndTxn", "", "version")
IMPLIED: Final[tuple[FieldKey, ...]] = (("AddPartitionsToTxn", "", ""), ("AddOffsetsToTxn", "", ""))
"""What no client requests that ends its transactions with v5: Produce and TxnOffsetCommit do it as well (KIP-890)."""
JOIN_VERSION: Final[FieldKey] = ("JoinGroup", "", "version")
FETCH_RATES: Final[tuple[FieldKey, ...]] = (("Fetch", "", ""), ("Fetch", "", "interval"))
PER_CONNECTION: Final = frozenset(("ApiVersions", "SaslHandshake", "SaslAuthenticate"))
"""APIs that clients call once a connection."""
CONNECTIONS: Final[FieldKey] = ("", "", "connections")
MEMBER_ID_REQUIRED: Final = f"with {ErrorCode.MEMBER_ID_REQUIRED.name}"
UNSUPPORTED: Final = f"with {ErrorCode.UNSUPPORTED_VERSION.name}"
ECHOES: Final = (
    ("JoinGroup", _SUBSCRIPTION, "members.metadata."),
    ("SyncGroup", "assignments.assignment.", "assignment."),
)
"""API, path in the request, path in the response: what a coordinator copies from a request into a response."""
CLOSES: Final = f"for {CLOSING_A_SESSION}"
ABOUT_THE_CLUSTER: Final = frozenset(
    ("ApiVersions", "Metadata", "DescribeCluster", "DescribeTopicPartitions", "DescribeConfigs", "DescribeLogDirs",
     "DescribeQuorum", "ListGroups", "ListTransactions", "ListOffsets", "OffsetFetch", "DescribeProducers")
)  # fmt: skip
"""APIs whose responses say what a cluster is and has: no client sets that."""
THE_CLUSTERS: Final = "what the clusters have"
MAX_LISTED: Final = 6
FOLLOWED_BY: Final = "also changes "
"""How the part of an explanation begins that lists consequences."""


def fold_consequences(entries: Iterable[DiffEntry]) -> list[DiffEntry]:
    """Return the entries without those that follow from another one, which lists them in its explanation."""
    joined = _join_covered(entries)
    by_field = {_field(entry): entry for entry in sorted(joined, key=lambda entry: entry.reason is DiffReason.COUNT)}
    causes = [_cause(entry, by_field) for entry in joined]
    shown = {id(entry) for entry in by_field.values()}  # several entries can be of one field, with causes of their own
    cause_of = {
        _field(entry): cause for entry, cause in zip(joined, causes, strict=True) if cause and id(entry) in shown
    }
    consequences: dict[FieldKey, list[DiffEntry]] = {}
    for entry, cause in zip(joined, causes, strict=True):
        if cause:
            consequences.setdefault(_root(cause, cause_of), []).append(entry)
    kept = [entry for entry, cause in zip(joined, causes, strict=True) if not cause and not _is_of_other_members(entry)]
    kept.sort(key=lambda entry: entry.subject)  # of several entries for the requests of an API, the first has them
    folded = [_with_consequences(entry, consequences.pop(_field(entry), [])) for entry in kept]
    return list(_fold_cluster_state(folded))


def _is_of_other_members(entry: DiffEntry) -> bool:
    """Return whether an entry is about subscriptions that a leader is told and that are not its own: those of members
    that are not in the capture, or are compared themselves."""
    api, _, in_response = ECHOES[0]
    return entry.api == api and entry.part == "response" and entry.path.startswith(in_response)


def _fold_cluster_state(entries: Iterable[DiffEntry]) -> Iterator[DiffEntry]:
    """Yield entries, of the differences between responses about the cluster the first one of each API: it lists the
    others."""
    clusters: dict[str, list[DiffEntry]] = {}
    for entry in entries:
        if _is_cluster_state(entry):
            clusters.setdefault(entry.api, []).append(entry)
        else:
            yield entry
    for first, *more in clusters.values():
        words = "; ".join(filter(None, (first.explanation, THE_CLUSTERS)))
        yield _with_consequences(replace(first, explanation=words), more)


def _is_cluster_state(entry: DiffEntry) -> bool:
    name = entry.path.rpartition(".")[2]
    return entry.api in ABOUT_THE_CLUSTER and entry.part == "response" and name not in ERROR_CODES


def _cause(entry: DiffEntry, entries: dict[FieldKey, DiffEntry]) -> FieldKey | None:
    """Return the field that an entry follows from, if that field has an entry."""
    field = _field(entry)
    version = (entry.api, "", "version")
    if entry.reason is DiffReason.VERSION and field != version:
        return version if version in entries else None
    for cause, fields in CONSEQUENCES.items():
        if field in fields and cause in entries:
            return cause
    for api, in_request, in_response in ECHOES:
        request = (api, "request", in_request + entry.path.removeprefix(in_response))
        if field[:2] == (api, "response") and entry.path.startswith(in_response) and request in entries:
            return request
    session = ("Fetch", "request", "session_id")
    if entry.api == "Fetch" and not entry.part and entry.subject == CLOSES and session in entries:
        return session
    if entry.part == "response" and entry.explanation == ELEMENTS:
        requested = next((each for each in entries.values() if _asks_for(each, entry)), None)
        if requested is not None:
            return _field(requested)
    if entry.api == "ApiVersions" and not entry.part and entry.subject == UNSUPPORTED and version in entries:
        return version
    connections = entries.get(CONNECTIONS)
    if field == (entry.api, "", "") and connections is not None and _is_once_a_connection(entry, connections):
        return CONNECTIONS
    return _cause_in_group(entry, entries) or _cause_if_alike(entry, entries)


def _cause_in_group(entry: DiffEntry, entries: dict[FieldKey, DiffEntry]) -> FieldKey | None:
    """Return what another way of being in a group changes with an entry."""
    if _is_of_static_member(entry, entries.get(INSTANCE)):
        return INSTANCE
    if _is_of_lost_commits(entry, entries.get(COMMIT)):
        return COMMIT
    if _is_of_joins(entry, entries.get(JOIN)):
        return JOIN
    return _group_protocol(entry, entries)


def _is_of_joins(entry: DiffEntry, join: DiffEntry | None) -> bool:
    """Return whether an entry follows from one side joining its group more often: that side looks up its offsets after
    each, and says what it had before, besides what both say."""
    if join is None or join.reason is not DiffReason.COUNT:
        return False
    a_joins = join.count_a > join.count_b
    if _field(entry) == ("OffsetFetch", "", ""):
        return entry.reason is DiffReason.COUNT and (entry.count_a > entry.count_b) == a_joins
    more, less = (entry.a, entry.b) if a_joins else (entry.b, entry.a)
    return _field(entry) in SAID_AGAIN and has_all_values(more, less)


def _is_of_static_member(entry: DiffEntry, instance: DiffEntry | None) -> bool:
    """Return whether an entry follows from static membership: no coordinator demands another id of a static member,
    which begins without one after each restart, and does not leave its group (KIP-345); its leader need not assign
    again (KIP-814)."""
    if instance is None or (instance.a == "null") == (instance.b == "null"):
        return False
    static, other = (entry.b, entry.a) if instance.a == "null" else (entry.a, entry.b)
    field = _field(entry)
    if field == MEMBER_ID:
        return "empty" in static.split(", ") and "empty" not in other.split(", ")
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
    if _field(entry) == FIND_COORDINATOR:
        return entry.reason in (DiffReason.COUNT, DiffReason.RATE) and (entry.count_a > entry.count_b) == a_loses
    return _field(entry) in COMMITTED and (entry.a if a_loses else entry.b).startswith("-1")


def _group_protocol(entry: DiffEntry, entries: dict[FieldKey, DiffEntry]) -> FieldKey | None:
    """Return the heartbeats of another group protocol that are in place of the requests of the classic one, for these
    and for what follows from the protocol."""
    heartbeats = next((each for api in GROUP_PROTOCOLS if (each := entries.get((api, "", "")))), None)
    if heartbeats is None or heartbeats.reason is not DiffReason.ONE_SIDE:
        return None
    if entry.api in CLASSIC_GROUP and not entry.part and _is_instead(entry, heartbeats):
        return _field(heartbeats)
    join = entries.get(JOIN)
    follows = _field(entry) in FETCHED_OFFSETS and join is not None and _is_instead(join, heartbeats)
    return _field(heartbeats) if follows else None


def _is_instead(entry: DiffEntry, other: DiffEntry) -> bool:
    """Return whether one side alone has an entry's requests, and the other side alone those of the other entry."""
    is_alone = entry.reason is DiffReason.ONE_SIDE and other.reason is DiffReason.ONE_SIDE
    return is_alone and bool(entry.count_a) != bool(other.count_a)


def _cause_if_alike(entry: DiffEntry, entries: dict[FieldKey, DiffEntry]) -> FieldKey | None:
    """Return the field that an entry follows from if what both say fits: who waits longer for a Fetch sends fewer; an
    assignor's user data is decoded into fields of its own; before JoinGroup v4 no coordinator demands a member id
    (KIP-394); who joins once more gets one assignment more; with EndTxn v5 nobody adds partitions to transactions."""
    field = _field(entry)
    if field in FETCH_RATES and WAIT in entries and _waits(entry, entries[WAIT]):
        return WAIT
    if field in USER_DATA and entry.reason is DiffReason.ONE_SIDE and PROTOCOLS in entries:
        return PROTOCOLS
    is_unnamed = ["empty" in text.split(", ") for text in (entry.a, entry.b)]
    if field == MEMBER_ID and is_unnamed[0] != is_unnamed[1] and JOIN_VERSION in entries:
        return JOIN_VERSION
    if field == JOIN and entry.subject.endswith(MEMBER_ID_REQUIRED) and JOIN_VERSION in entries:
        return JOIN_VERSION
    records = entries.get(RECORDS)
    if field in PARTITIONS and records and records.reason is DiffReason.CONTENT and entry.explanation == ELEMENTS:
        return RECORDS
    if field in IMPLIED and entry.reason is DiffReason.ONE_SIDE and END_VERSION in entries:
        return END_VERSION
    join = entries.get(JOIN)
    if field == ("SyncGroup", "", "") and join and (join.reason, join.a, join.b) == (entry.reason, entry.a, entry.b):
        return _field(join)
    return None


def _waits(entry: DiffEntry, waits: DiffEntry) -> bool:
    """Return whether the side whose Fetch requests wait longer sends fewer of them."""
    found = [_NUMBER.search(text) for text in (waits.a, waits.b)]
    if entry.reason not in (DiffReason.COUNT, DiffReason.RATE, DiffReason.TIMING) or not all(found):
        return False
    a, b = (int(each[0]) for each in found if each)
    return (a > b) == (entry.count_a < entry.count_b)


def _asks_for(request: DiffEntry, response: DiffEntry) -> bool:
    """Return whether a request has the array elements, on the same sides, that a response has."""
    elements = [(each.api, each.explanation, each.a, each.b) for each in (request, response)]
    return request.part == "request" and elements[0] == elements[1]


def _is_once_a_connection(entry: DiffEntry, connections: DiffEntry) -> bool:
    """Return whether both sides send a request once a connection, so that its number is that of the connections."""
    return (
        entry.api in PER_CONNECTION
        and entry.reason in (DiffReason.COUNT, DiffReason.RATE)
        and entry.count_a <= connections.count_a
        and entry.count_b <= connections.count_b
    )


def _root(field: FieldKey, causes: dict[FieldKey, FieldKey]) -> FieldKey:
    while field in causes:
        field = causes[field]
    return field


def _join_covered(entries: Iterable[DiffEntry]) -> list[DiffEntry]:
    """Join entries of one field and reason where one has all values of the other."""
    out: list[DiffEntry] = []
    for entry in sorted(entries, key=lambda each: -len(each.a) - len(each.b)):
        same = next((n for n, each in enumerate(out) if _covers(each, entry)), None)
        if same is None:
            out.append(entry)
        else:
            out[same] = join_entries(out[same], entry)
    return out


def _covers(one: DiffEntry, other: DiffEntry) -> bool:
    if not one.part or (_field(one), one.reason, one.explanation) != (_field(other), other.reason, other.explanation):
        return False
    return has_all_values(one.a, other.a) and has_all_values(one.b, other.b)


def has_all_values(more: str, less: str) -> bool:
    """Return whether a list of values, as an entry has it, has all of another one."""
    return set(less.split(", ")) <= set(more.split(", "))


def join_entries(one: DiffEntry, other: DiffEntry) -> DiffEntry:
    """Join two entries of one cause, with the texts of the first."""
    rows = [min((row for row in pair if row is not None), default=None)
            for pair in ((one.row_a, other.row_a), (one.row_b, other.row_b))]  # fmt: skip
    return replace(one, count_a=one.count_a + other.count_a, count_b=one.count_b + other.count_b,
                   row_a=rows[0], row_b=rows[1])  # fmt: skip


def _field(entry: DiffEntry) -> FieldKey:
    return entry.api, entry.part, entry.path


def _with_consequences(entry: DiffEntry, consequences: list[DiffEntry]) -> DiffEntry:
    names = sorted({_consequence_name(each, entry) for each in consequences})
    more = f" and {len(names) - MAX_LISTED} more" if len(names) > MAX_LISTED else ""
    if not names:
        return entry
    text = f"{', '.join(names[:MAX_LISTED])}{more}"
    if FOLLOWED_BY in entry.explanation:
        return replace(entry, explanation=f"{entry.explanation}, {text}")
    return replace(entry, explanation="; ".join(filter(None, (entry.explanation, f"{FOLLOWED_BY}{text}"))))


def _consequence_name(entry: DiffEntry, cause: DiffEntry) -> str:
    """Return the name of a consequence: its API if another one, its field, and the versions that have it if that is
    why it differs."""
    api = entry.api if entry.api != cause.api else ""
    echoes = (in_response for of, _, in_response in ECHOES if of == entry.api and entry.path.startswith(in_response))
    echo = next(echoes, None) if entry.part == "response" else None
    path = echo.rstrip(".") if echo else entry.path
    place = ".".join(filter(None, (entry.part, path)))
    versions = f" ({_versions(entry)})" if entry.reason is DiffReason.VERSION else ""
    if not place:
        what = "requests" if entry.reason is DiffReason.ONE_SIDE else "number of requests"
        return " ".join(filter(None, (api, what, entry.subject)))
    return " ".join(filter(None, (api, place))) + versions


def _versions(entry: DiffEntry) -> str:
    """Return which versions have a field; its name is before the parentheses already."""
    name = entry.path.rpartition(".")[2]
    return entry.explanation.removeprefix(f"{name} ").replace("; ", ", ")
