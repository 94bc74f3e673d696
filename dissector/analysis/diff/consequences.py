"""Fold differences that follow from others into their causes, and rank entries by significance."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from dissector.analysis.diff.matching_keys import CLOSING_A_SESSION
from dissector.analysis.diff.result import DiffEntry, DiffReason

FieldKey = tuple[str, str, str]
"""API, part and path."""
_SUBSCRIPTION: Final = "protocols.metadata."
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
    ("InitProducerId", "", ""): (("Produce", "request", "topic_data.partition_data.records.producer_id"),),
    ("JoinGroup", "request", "protocols"): (
        ("JoinGroup", "request", f"{_SUBSCRIPTION}user_data.generation"),
        ("JoinGroup", "response", "protocol_name"),
    ),
    ("JoinGroup", "request", f"{_SUBSCRIPTION}version"): tuple(
        ("JoinGroup", "request", _SUBSCRIPTION + name) for name in ("owned_partitions", "generation_id", "rack_id")
    ),
    ("ApiVersions", "request", "client_software_name"): (("ApiVersions", "request", "client_software_version"),),
    ("ApiVersions", "", "version"): (("ApiVersions", "response", "supported_features"),),
    ("FindCoordinator", "", "version"): (("FindCoordinator", "response", "error_message"),),
}
"""By cause: an incremental Fetch names only what changed (KIP-227); brokers list aborted transactions only for
READ_COMMITTED (KIP-98), where only idempotent producers have an id; a later subscription has more fields (KIP-429,
KIP-792, KIP-881); a broker hides features that an old client could not read (KIP-1022), and sends a message for success
only in the versions that look up a single coordinator."""
ECHOES: Final = (
    ("JoinGroup", _SUBSCRIPTION, "members.metadata."),
    ("SyncGroup", "assignments.assignment.", "assignment."),
)
"""API, path in the request, path in the response: what a coordinator copies from a request into a response."""
CLOSES: Final = f"for {CLOSING_A_SESSION}"
MAX_LISTED: Final = 6
FOLLOWED_BY: Final = "also changes "
"""How the part of an explanation begins that lists consequences."""
SOFTWARE_NAME: Final = "client_software_name"
STATISTICAL_REASONS: Final = (DiffReason.CODEC, DiffReason.BATCHING, DiffReason.CONTENT, DiffReason.ORDER)


def significance(entry: DiffEntry) -> int:
    """Return the rank of an entry, 0 first: settings; counts and requests of one side; other fields of requests;
    versions; responses; names of clients."""
    if entry.settings or entry.reason in STATISTICAL_REASONS:
        return 0
    if entry.path == SOFTWARE_NAME:
        return 5
    if entry.reason is DiffReason.VERSION:
        return 3
    if not entry.part:
        return 1
    return 2 if entry.part == "request" else 4


def fold_consequences(entries: Iterable[DiffEntry]) -> list[DiffEntry]:
    """Return the entries without those that follow from another one, which lists them in its explanation."""
    joined = _join_covered(entries)
    by_field = {_field(entry): entry for entry in joined}
    causes = [_cause(entry, by_field) for entry in joined]
    cause_of = {_field(entry): cause for entry, cause in zip(joined, causes, strict=True) if cause}
    consequences: dict[FieldKey, list[DiffEntry]] = {}
    for entry, cause in zip(joined, causes, strict=True):
        if cause:
            consequences.setdefault(_root(cause, cause_of), []).append(entry)
    kept = [entry for entry, cause in zip(joined, causes, strict=True) if not cause]
    return [_with_consequences(entry, consequences.get(_field(entry), [])) for entry in kept]


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
    if entry.api == "Fetch" and entry.explanation == CLOSES and session in entries:
        return session
    join = entries.get(("JoinGroup", "", ""))
    if field == ("SyncGroup", "", "") and join and (join.reason, join.a, join.b) == (entry.reason, entry.a, entry.b):
        return _field(join)
    return None


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
    pairs = ((one.a, other.a), (one.b, other.b))
    return all(set(less.split(", ")) <= set(more.split(", ")) for more, less in pairs)


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
    text = f"{FOLLOWED_BY}{', '.join(names[:MAX_LISTED])}{more}" if names else ""
    return replace(entry, explanation="; ".join(filter(None, (entry.explanation, text))))


def _consequence_name(entry: DiffEntry, cause: DiffEntry) -> str:
    """Return the name of a consequence: its API if another one, its field, and the versions that have it if that is
    why it differs."""
    api = entry.api if entry.api != cause.api else ""
    echoes = (in_response for of, _, in_response in ECHOES if of == entry.api and entry.path.startswith(in_response))
    echo = next(echoes, None) if entry.part == "response" else None
    path = echo.rstrip(".") if echo else entry.path
    place = ".".join(filter(None, (entry.part, path)))
    versions = f" ({_versions(entry)})" if entry.reason is DiffReason.VERSION else ""
    if not api and not place:
        return f"requests {entry.explanation}"
    return " ".join(filter(None, (api, place))) + versions


def _versions(entry: DiffEntry) -> str:
    """Return which versions have a field; its name is before the parentheses already."""
    name = entry.path.rpartition(".")[2]
    return entry.explanation.removeprefix(f"{name} ").replace("; ", ", ")
