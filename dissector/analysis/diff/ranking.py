"""What a difference is about, and how much it matters: the order of a report, and its summary.

The reader is the developer of a client. Requests without a response come first: they may be lost. Then comes what
becomes of records, what is read, the group, connections and metadata, administration. Versions differ between any two
clients, and come last; within an API settings come first, and what a broker responded comes last.
"""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Final

from dissector.analysis.diff.connection_roles import OFFSET_APIS, ROLE_NEUTRAL_APIS, ROLES
from dissector.analysis.diff.result import DiffEntry, DiffReason


class Area(StrEnum):
    """What entries are about, in the order of a report."""

    UNANSWERED = "Without a response"
    PRODUCING = "Producing"
    CONSUMING = "Consuming"
    GROUPS = "Groups"
    CONNECTING = "Connecting"
    ADMINISTRATION = "Administration"
    VERSIONS = "Versions"


_BY_ROLE: Final = {
    "produce": Area.PRODUCING,
    "transaction coordinator": Area.PRODUCING,
    "fetch": Area.CONSUMING,
    "share fetch": Area.CONSUMING,
    "group coordinator": Area.GROUPS,
}
_BY_API: Final = {"InitProducerId": Area.PRODUCING, "TxnOffsetCommit": Area.PRODUCING, "": Area.CONNECTING}
MOST_IMPORTANT: Final = (
    ("Produce", "acks"), ("InitProducerId", ""), ("Produce", "transactional_id"),
    ("Produce", "topic_data.partition_data.records"), ("Produce", "topic_data.partition_data.records.compression"),
    ("Fetch", "isolation_level"), ("JoinGroup", "protocols"), ("Fetch", "session_id"),
)  # fmt: skip
"""API and path of the entries that come first in their area."""
SOFTWARE_NAME: Final = "client_software_name"
STATISTICAL_REASONS: Final = (DiffReason.CODEC, DiffReason.BATCHING, DiffReason.CONTENT, DiffReason.ORDER)


def area_of(entry: DiffEntry) -> Area:
    """Return what an entry is about."""
    if entry.reason is DiffReason.UNANSWERED:
        return Area.UNANSWERED
    if entry.path == "version" and not entry.part:
        return Area.VERSIONS
    if entry.api in _BY_API:
        return _BY_API[entry.api]
    if entry.api in ROLE_NEUTRAL_APIS:
        return Area.GROUPS if entry.api == "FindCoordinator" else Area.CONNECTING
    if entry.api in OFFSET_APIS:
        return Area.CONSUMING
    return _BY_ROLE.get(ROLES.get(entry.api, ""), Area.ADMINISTRATION)


def significance(entry: DiffEntry) -> int:
    """Return the rank of an entry, 0 first: what matters most; settings; counts and requests of one side; other fields
    of requests; responses; names of clients."""
    if (entry.api, entry.path) in MOST_IMPORTANT and entry.part != "response":
        return 0
    if entry.settings or entry.reason in STATISTICAL_REASONS:
        return 1
    if entry.path == SOFTWARE_NAME:
        return 5
    if not entry.part:
        return 2
    return 3 if entry.part == "request" else 4


def ordered(entries: Iterable[DiffEntry], first_rows: Mapping[str, int]) -> list[DiffEntry]:
    """Sort: the areas in their order; in each the APIs by the most significant of their entries, then by their first
    exchange on either side."""
    listed = list(entries)
    areas, reasons = list(Area), list(DiffReason)
    best: dict[tuple[Area, str], int] = {}
    for entry in listed:
        key = area_of(entry), entry.api
        best[key] = min(best.get(key, significance(entry)), significance(entry))
    return sorted(listed, key=lambda entry: (
        areas.index(area_of(entry)), best[area_of(entry), entry.api], first_rows.get(entry.api, -1), entry.api,
        significance(entry), entry.part, entry.path, reasons.index(entry.reason), entry.subject,
        entry.explanation))  # fmt: skip
