"""What a client does, in a few words a line: for one column of the matrix, or for a screen about one side."""

from collections import Counter
from collections.abc import Callable
from statistics import median
from typing import Final

from dissector.analysis.diff.compared_values import ComparedValue, EntityName
from dissector.analysis.diff.formatting import format_count, format_interval, format_value, format_values
from dissector.analysis.diff.message_leaves import CLOSING, TOPIC_ID, path_without_labels
from dissector.analysis.diff.side_profile import KeyProfile, SideProfile
from dissector.core.text import duration, size

NOTHING: Final = "-"
"""Nothing of the kind was said."""
MIN_INTERVALS: Final = 3
"""Intervals of what is also sent out of turn, that make no rhythm yet."""


def side_behavior(side: SideProfile) -> dict[str, str]:
    """What one side does, by what it is called; then the versions of each API."""
    told = {name: words(side) for name, words in BEHAVIORS.items()}
    spoken: dict[str, Counter[int]] = {}
    for key, facts in side.facts.items():
        spoken.setdefault(key.api, Counter()).update(facts.versions)
    versions = {f"{api} version": ", ".join(f"v{n}" for n in sorted(seen)) for api, seen in spoken.items()}
    return told | dict(sorted(versions.items()))


def _facts(side: SideProfile, *apis: str) -> list[KeyProfile]:
    return [facts for key, facts in side.facts.items() if key.api in apis]


def _values(side: SideProfile, api: str, path: str) -> Counter[ComparedValue]:
    """All values of a request's field, of all exchanges."""
    found: Counter[ComparedValue] = Counter()
    for facts in _facts(side, api):
        for (part, own), values in facts.fields.items():
            if part == "request" and path_without_labels(own) == path:
                found.update(values)
    return found


def _field(api: str, path: str) -> Callable[[SideProfile], str]:
    """A line with the values of a request's field."""
    return lambda side: format_values(f"{api}Request", _values(side, api, path), path) or NOTHING


def _interval(*apis: str, least: int = 1) -> Callable[[SideProfile], str]:
    """A line with how often something is sent, and the median of its intervals where there are at least so many."""

    def words(side: SideProfile) -> str:
        facts = _facts(side, *apis)
        count = sum(len(each.rows) for each in facts)
        longest = max((each.intervals for each in facts), key=len, default=None)
        if longest is None or len(longest) < least:
            return format_count(count) if count else NOTHING
        return f"{format_count(count)}, {format_interval(median(longest))}"

    return words


def _software(side: SideProfile) -> str:
    return ", ".join(side.roles.who) or NOTHING


def _connections(side: SideProfile) -> str:
    return ", ".join(f"{count} {role}" for role, count in sorted(side.roles.connections.items())) or NOTHING


def _idempotence(side: SideProfile) -> str:
    ids = _values(side, "Produce", "topic_data.partition_data.records.producer_id")
    if not ids:
        return NOTHING
    return "yes" if any(isinstance(value, EntityName) for value in ids) else "no"


def _codecs(side: SideProfile) -> str:
    return ", ".join(sorted(side.batching.codecs)) or NOTHING


def _batches(side: SideProfile) -> str:
    batching = side.batching
    if not batching.records:
        return NOTHING
    each = (
        f"{len(batching.records):,} batches in {format_count(len(batching.per_request)).replace('once', '1 request')}"
    )
    return each.replace(" times", " requests")


def _per_batch(side: SideProfile) -> str:
    batching = side.batching
    if not batching.records:
        return NOTHING
    records, sizes = median(batching.records), median(batching.sizes)
    return f"{records:g} records, {size(round(sizes))} (largest {max(batching.records):,}, {size(max(batching.sizes))})"


def _linger(side: SideProfile) -> str:
    waits = side.batching.waits
    return f"{duration(round(max(0, median(waits)) * 1_000_000))} in the median" if waits else NOTHING


def _sessions(side: SideProfile) -> str:
    ids = _values(side, "Fetch", "session_id")
    if not ids:
        return NOTHING
    return "yes" if any(isinstance(value, EntityName) for value in ids) else "no"


def _assignors(side: SideProfile) -> str:
    """In the order of the request: a member votes for the first that all of them have."""
    return ", ".join(map(format_value, _values(side, "JoinGroup", "protocols.name"))) or NOTHING


def _metadata(side: SideProfile) -> str:
    asked = [(" ".join(map(str, key.subject)), len(facts.rows)) for key, facts in side.facts.items()
             if key.api == "Metadata"]  # fmt: skip
    count: Counter[str] = Counter()
    for subject, rows in asked:
        count[{"topics": "for some topics"}.get(subject, f"for {subject}")] += rows
    return ", ".join(f"{words} {format_count(n)}" for words, n in sorted(count.items())) or NOTHING


def _topic_ids(side: SideProfile) -> str:
    named = any(
        isinstance(value, EntityName)
        for facts in side.facts.values()
        for (part, own), values in facts.fields.items()
        if part == "request" and own[-1] == TOPIC_ID
        for value in values
    )
    return "yes" if named else "no"


def _retries(side: SideProfile) -> str:
    pauses = [pause for facts in side.facts.values() for pause in facts.retries.pauses]
    count = sum(sum(facts.retries.times.values()) for facts in side.facts.values())
    if not count:
        return NOTHING
    return format_count(count) + (f", after {duration(round(median(pauses)))}" if pauses else "")


def _shutdown(side: SideProfile) -> str:
    words = []
    if _facts(side, "JoinGroup"):
        words.append("leaves the group" if _facts(side, "LeaveGroup") else "does not leave the group")
    if any(isinstance(value, EntityName) for value in _values(side, "Fetch", "session_id")):
        closed = CLOSING in _values(side, "Fetch", "session_epoch")
        words.append("closes its fetch sessions" if closed else "leaves its fetch sessions open")
    if side.unanswered:
        words.append(f"{side.unanswered:,} without an answer")
    return ", ".join(words) or NOTHING


BEHAVIORS: Final[dict[str, Callable[[SideProfile], str]]] = {
    "software": _software,
    "connections": _connections,
    "metadata asked": _metadata,
    "metadata in all": _interval("Metadata", least=MIN_INTERVALS),
    "topic ids in requests": _topic_ids,
    "topics made by asking": _field("Metadata", "allow_auto_topic_creation"),
    "retries": _retries,
    "acks": _field("Produce", "acks"),
    "idempotence": _idempotence,
    "codec": _codecs,
    "batches": _batches,
    "a batch": _per_batch,
    "oldest record waits": _linger,
    "produce timeout (ms)": _field("Produce", "timeout_ms"),
    "fetch max wait (ms)": _field("Fetch", "max_wait_ms"),
    "fetch min bytes": _field("Fetch", "min_bytes"),
    "fetch max bytes": _field("Fetch", "max_bytes"),
    "fetch partition max": _field("Fetch", "topics.partitions.partition_max_bytes"),
    "fetch sessions": _sessions,
    "fetches": _interval("Fetch", least=MIN_INTERVALS),
    "isolation level": _field("Fetch", "isolation_level"),
    "assignors": _assignors,
    "session timeout (ms)": _field("JoinGroup", "session_timeout_ms"),
    "rebalance timeout (ms)": _field("JoinGroup", "rebalance_timeout_ms"),
    "heartbeats": _interval("Heartbeat", "ConsumerGroupHeartbeat"),
    "commits": _interval("OffsetCommit", least=MIN_INTERVALS),
    "shutdown": _shutdown,
}
"""What there is a line for, in the order of the matrix."""
