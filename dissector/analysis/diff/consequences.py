"""What follows from something else that differs: told with its cause and not as a cause of its own. And what tells
more than something else."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

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
"""By cause: an incremental Fetch names only what changed (KIP-227); aborted transactions are told to who reads what is
committed (KIP-98), as only idempotent producers have an id; a later subscription has more fields (KIP-429, KIP-792,
KIP-881); a broker leaves features from old clients out that they could not read (KIP-1022), and has a message for
success only in the versions that ask for one coordinator."""
ECHOES: Final = (
    ("JoinGroup", _SUBSCRIPTION, "members.metadata."),
    ("SyncGroup", "assignments.assignment.", "assignment."),
)
"""What a coordinator hands on from a request into a response."""
MAX_LISTED: Final = 6
IDENTITY: Final = "client_software_name"
STATISTICAL_REASONS: Final = (DiffReason.CODEC, DiffReason.BATCHING, DiffReason.CONTENT, DiffReason.ORDER)


def rank(entry: DiffEntry) -> int:
    """How much an entry tells, 0 the most: what somebody set; what is said more often, or by one side alone; what else
    a request has; versions; answers; names."""
    if entry.settings or entry.reason in STATISTICAL_REASONS:
        return 0
    if entry.path == IDENTITY:
        return 5
    if entry.reason is DiffReason.VERSION:
        return 3
    if not entry.part:
        return 1
    return 2 if entry.part == "request" else 4


def fold_consequences(entries: Iterable[DiffEntry]) -> list[DiffEntry]:
    """The entries without those that follow from another, which then says so."""
    found = _absorbed(entries)
    there = {_field(entry): entry for entry in found}
    causes = [_cause(entry, there) for entry in found]
    above = {_field(entry): cause for entry, cause in zip(found, causes, strict=True) if cause}
    follow: dict[FieldKey, list[DiffEntry]] = {}
    for entry, cause in zip(found, causes, strict=True):
        if cause:
            follow.setdefault(_root(cause, above), []).append(entry)
    kept = [entry for entry, cause in zip(found, causes, strict=True) if not cause]
    return [_with(entry, follow.get(_field(entry), [])) for entry in kept]


def _cause(entry: DiffEntry, there: dict[FieldKey, DiffEntry]) -> FieldKey | None:
    """What an entry follows from, if that is told."""
    field = _field(entry)
    version = (entry.api, "", "version")
    if entry.reason is DiffReason.VERSION and field != version:
        return version if version in there else None
    for cause, fields in CONSEQUENCES.items():
        if field in fields and cause in there:
            return cause
    for api, asked, answered in ECHOES:
        request = (api, "request", asked + entry.path.removeprefix(answered))
        if field[:2] == (api, "response") and entry.path.startswith(answered) and request in there:
            return request
    join = there.get(("JoinGroup", "", ""))
    if field == ("SyncGroup", "", "") and join and (join.reason, join.a, join.b) == (entry.reason, entry.a, entry.b):
        return _field(join)
    return None


def _root(field: FieldKey, causes: dict[FieldKey, FieldKey]) -> FieldKey:
    while field in causes:
        field = causes[field]
    return field


def _absorbed(entries: Iterable[DiffEntry]) -> list[DiffEntry]:
    """Entries of one field and one reason, of which one says all that the other says: one entry."""
    out: list[DiffEntry] = []
    for entry in sorted(entries, key=lambda each: -len(each.a) - len(each.b)):
        same = next((n for n, each in enumerate(out) if _says_all(each, entry)), None)
        if same is None:
            out.append(entry)
        else:
            out[same] = join_entries(out[same], entry)
    return out


def _says_all(one: DiffEntry, other: DiffEntry) -> bool:
    if not one.part or (_field(one), one.reason, one.words) != (_field(other), other.reason, other.words):
        return False
    pairs = ((one.a, other.a), (one.b, other.b))
    return all(set(less.split(", ")) <= set(more.split(", ")) for more, less in pairs)


def join_entries(one: DiffEntry, other: DiffEntry) -> DiffEntry:
    """Two entries of one cause, in the words of the first."""
    rows = [min((row for row in pair if row is not None), default=None)
            for pair in ((one.row_a, other.row_a), (one.row_b, other.row_b))]  # fmt: skip
    return replace(one, count_a=one.count_a + other.count_a, count_b=one.count_b + other.count_b,
                   row_a=rows[0], row_b=rows[1])  # fmt: skip


def _field(entry: DiffEntry) -> FieldKey:
    return entry.api, entry.part, entry.path


def _with(entry: DiffEntry, following: list[DiffEntry]) -> DiffEntry:
    names = sorted({_called(each, entry) for each in following})
    more = f" and {len(names) - MAX_LISTED} more" if len(names) > MAX_LISTED else ""
    words = f"and with it {', '.join(names[:MAX_LISTED])}{more}" if names else ""
    return replace(entry, words="; ".join(filter(None, (entry.words, words))))


def _called(entry: DiffEntry, cause: DiffEntry) -> str:
    """What follows: its API where that is another, its place, and the versions that have it where that is why."""
    api = entry.api if entry.api != cause.api else ""
    echoes = (to for of, _, to in ECHOES if of == entry.api and entry.path.startswith(to))
    echo = next(echoes, None) if entry.part == "response" else None
    path = echo.rstrip(".") if echo else entry.path
    place = ".".join(filter(None, (entry.part, path)))
    since = f" ({_since(entry)})" if entry.reason is DiffReason.VERSION else ""
    return " ".join(filter(None, (api, place))) + since


def _since(entry: DiffEntry) -> str:
    """The field's own name is said already."""
    own = entry.path.rpartition(".")[2]
    return entry.words.replace(f"{own} is there ", "").replace(" is there ", " ").replace("; ", ", ")
