"""Fold differences that follow from others into their causes."""

import re
from collections import ChainMap
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Final

from dissector.analysis.diff.consequence_table import (
    CONNECTIONS,
    CONSEQUENCES,
    ECHOES,
    PROTOCOLS,
    SUBSCRIPTION,
    FieldKey,
    field_of,
)
from dissector.analysis.diff.group_consequences import (
    COMMIT,
    JOIN,
    JOIN_VERSION,
    MEMBER_ID,
    MEMBER_ID_REQUIRED,
    cause_in_group,
    has_all_values,
)
from dissector.analysis.diff.key_differences import ELEMENTS
from dissector.analysis.diff.login_consequences import cause_in_login
from dissector.analysis.diff.matching_keys import CLOSING_A_SESSION
from dissector.analysis.diff.producing_consequences import TRANSACTIONS, cause_in_producing
from dissector.analysis.diff.result import DiffEntry, DiffReason
from dissector.protocol.schema.error_codes import ErrorCode
from dissector.protocol.schema.field_names import ERROR_CODES

_NUMBER: Final = re.compile(r"\d+")
FETCH_LIMITS: Final[tuple[FieldKey, ...]] = tuple(
    ("Fetch", "request", name) for name in ("max_wait_ms", "topics.partitions.partition_max_bytes", "max_bytes")
)
"""How long a Fetch waits at most, and how much it brings."""
FEW_BYTES: Final = 1 << 16
"""A larger limit of a Fetch is seldom reached."""
TIMESTAMP: Final[FieldKey] = ("ListOffsets", "request", "topics.partitions.timestamp")
ISOLATION: Final[FieldKey] = ("Fetch", "request", "isolation_level")
COMMITTED: Final = "READ_COMMITTED"
STABLE: Final[FieldKey] = ("OffsetFetch", "request", "require_stable")
USER_DATA: Final[tuple[FieldKey, ...]] = (
    ("JoinGroup", "request", f"{SUBSCRIPTION}user_data"),
    ("JoinGroup", "request", f"{SUBSCRIPTION}user_data.generation"),
)
FETCH_RATES: Final[tuple[FieldKey, ...]] = (("Fetch", "", ""), ("Fetch", "", "interval"))
PER_CONNECTION: Final = frozenset(("ApiVersions", "SaslHandshake", "SaslAuthenticate"))
"""APIs that clients call once a connection."""
UNSUPPORTED: Final = f"with {ErrorCode.UNSUPPORTED_VERSION.name}"
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
    by_field: dict[FieldKey, DiffEntry] = {}
    by_subject: dict[str, dict[FieldKey, DiffEntry]] = {}
    for entry in sorted(joined, key=_rank_in_field):
        by_field[field_of(entry)] = entry
        of_subject = by_subject.setdefault(entry.subject, {})
        if field_of(entry) != TRANSACTIONS:  # one changes what is produced outside of any, too
            of_subject[field_of(entry)] = entry
    causes = [_cause(entry, ChainMap(by_subject[entry.subject], by_field)) for entry in joined]
    shown = {id(entry) for entry in by_field.values()}  # several entries can be of one field, with causes of their own
    cause_of = {
        field_of(entry): cause for entry, cause in zip(joined, causes, strict=True) if cause and id(entry) in shown
    }
    kept = [entry for entry, cause in zip(joined, causes, strict=True) if not cause and not _is_of_other_members(entry)]
    kept.sort(key=lambda entry: entry.subject)
    first = {field_of(entry): entry for entry in reversed(kept)}  # which stands for the others of its field
    with_subject = {(*field_of(entry), entry.subject): entry for entry in reversed(kept)}
    consequences: dict[int, list[DiffEntry]] = {}
    for entry, cause in zip(joined, causes, strict=True):
        root = _root(cause, cause_of) if cause else None
        if root in first:
            shown_with = with_subject.get((*root, entry.subject), first[root])
            consequences.setdefault(id(shown_with), []).append(entry)
    folded = [_with_consequences(entry, consequences.get(id(entry), [])) for entry in kept]
    return list(_fold_cluster_state(folded))


def _rank_in_field(entry: DiffEntry) -> tuple[bool, bool, bool]:
    """Return the rank of an entry among those of one field: the last one stands for the field."""
    is_of_several = FOLLOWED_BY in entry.explanation
    return entry.reason is DiffReason.COUNT, not entry.subject.endswith(MEMBER_ID_REQUIRED), is_of_several


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


def _cause(entry: DiffEntry, entries: Mapping[FieldKey, DiffEntry]) -> FieldKey | None:
    """Return the field that an entry follows from, if that field has an entry. Of several of a field, `entries` has the
    one with the same subject, if there is one."""
    field = field_of(entry)
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
            return field_of(requested)
    if entry.api == "ApiVersions" and not entry.part and entry.subject == UNSUPPORTED and version in entries:
        return version
    login = cause_in_login(entry, entries)
    if login is not None:
        return login
    connections = entries.get(CONNECTIONS)
    if field == (entry.api, "", "") and connections is not None and _is_once_a_connection(entry, connections):
        return CONNECTIONS
    return cause_in_group(entry, entries) or cause_in_producing(entry, entries) or _cause_if_alike(entry, entries)


def _cause_if_alike(entry: DiffEntry, entries: Mapping[FieldKey, DiffEntry]) -> FieldKey | None:
    """Return the field that an entry follows from if what both say fits: who reads what is committed wants offsets that
    no transaction changes (KIP-447); who waits longer for a Fetch, or takes more, sends fewer; an assignor's user
    data is decoded into fields of its own; before JoinGroup v4 no coordinator demands a member id (KIP-394); who joins
    once more gets one assignment more; who begins to read at the end may read nothing, and commits nothing."""
    field = field_of(entry)
    isolation = entries.get(ISOLATION)
    if field == STABLE and isolation and _sides_with(COMMITTED, isolation) == _sides_with("true", entry):
        return ISOLATION
    if field in FETCH_RATES:
        return next((each for each in FETCH_LIMITS if each in entries and _limits(entry, entries[each])), None)
    if field in USER_DATA and entry.reason is DiffReason.ONE_SIDE and PROTOCOLS in entries:
        return PROTOCOLS
    if field == COMMIT and entry.reason is DiffReason.ONE_SIDE and TIMESTAMP in entries:
        return TIMESTAMP
    is_unnamed = ["empty" in text.split(", ") for text in (entry.a, entry.b)]
    if field == MEMBER_ID and is_unnamed[0] != is_unnamed[1] and JOIN_VERSION in entries:
        return JOIN_VERSION
    if field == JOIN and entry.subject.endswith(MEMBER_ID_REQUIRED) and JOIN_VERSION in entries:
        return JOIN_VERSION
    join = entries.get(JOIN)
    if field == ("SyncGroup", "", "") and join and _numbers_of(join) == _numbers_of(entry):
        return JOIN
    return None


def _sides_with(word: str, entry: DiffEntry) -> tuple[bool, bool]:
    return word in entry.a, word in entry.b


def _numbers_of(entry: DiffEntry) -> tuple[object, ...]:
    """Return how often both sides send a request for what."""
    return entry.subject, entry.reason, entry.a, entry.b


def _limits(entry: DiffEntry, limits: DiffEntry) -> bool:
    """Return whether the side whose Fetch requests wait longer, or bring more, sends fewer of them."""
    found = [_NUMBER.search(text) for text in (limits.a, limits.b)]
    if entry.reason not in (DiffReason.COUNT, DiffReason.RATE, DiffReason.TIMING) or not all(found):
        return False
    a, b = (int(each[0]) for each in found if each)
    if limits.path.endswith("max_bytes") and min(a, b) > FEW_BYTES:
        return False
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
    if not one.part or (field_of(one), one.reason, one.explanation) != (
        field_of(other),
        other.reason,
        other.explanation,
    ):
        return False
    return has_all_values(one.a, other.a) and has_all_values(one.b, other.b)


def join_entries(one: DiffEntry, other: DiffEntry) -> DiffEntry:
    """Join two entries of one cause, with the texts of the first."""
    rows = [min((row for row in pair if row is not None), default=None)
            for pair in ((one.row_a, other.row_a), (one.row_b, other.row_b))]  # fmt: skip
    return replace(one, count_a=one.count_a + other.count_a, count_b=one.count_b + other.count_b,
                   row_a=rows[0], row_b=rows[1])  # fmt: skip


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
    versions = f" ({_versions(entry)})" if entry.reason is DiffReason.VERSION and entry.explanation else ""
    if not place:
        what = "requests" if entry.reason is DiffReason.ONE_SIDE else "number of requests"
        return " ".join(filter(None, (api, what, entry.subject)))
    return " ".join(filter(None, (api, place))) + versions


def _versions(entry: DiffEntry) -> str:
    """Return which versions have a field; its name is before the parentheses already."""
    name = entry.path.rpartition(".")[2]
    return entry.explanation.removeprefix(f"{name} ").replace("; ", ", ")
