"""What a client does, one short text for each behavior, and where its messages are that show it; the behavior of any
number of sides side by side: a line for each behavior, a column for each side."""

from array import array
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from dissector.analysis.diff.batching import LONGEST_WAIT_MS, MIN_BATCHES
from dissector.analysis.diff.captured_span import lacking
from dissector.analysis.diff.compared_values import ComparedValue, EntityName
from dissector.analysis.diff.formatting import format_interval, format_value, format_values
from dissector.analysis.diff.kept_numbers import median_of
from dissector.analysis.diff.key_profile import KeyProfile
from dissector.analysis.diff.leaving import leaving
from dissector.analysis.diff.matching_keys import CLOSING_A_SESSION, GROUP_PROTOCOLS
from dissector.analysis.diff.message_leaves import path_without_labels, time_set
from dissector.analysis.diff.produce_pace import linger_ns
from dissector.analysis.diff.side import DiffSide
from dissector.analysis.diff.side_profile import SideProfile
from dissector.core.text import counted, duration, size
from dissector.protocol.schema.field_names import TOPIC_ID

NOTHING: Final = "-"
WITHOUT_RESPONSES: Final = "APIs without responses"
SHUTDOWN: Final = "shutdown"
ON_LEAVING: Final = "commits on leaving"
MIN_INTERVALS: Final = 3
"""Of requests that are also sent out of turn: fewer intervals make no rhythm yet."""
CLOCK_MS: Final = 1_000
"""A clock that differs from that of the capture."""
CLOSING: Final = (CLOSING_A_SESSION,)
VERSION: Final = " version"
"""The end of the names of versions: ``Fetch version``."""
VERSION_FIELD: Final = "header.request_api_version"


LEAVING: Final = frozenset((-1, -2))
"""Epochs of a heartbeat with which a member leaves, for good or to come back as the same instance."""
UNCHANGED: Final[tuple[ComparedValue, ...]] = (-1, None, 0)
"""Of a setting in a heartbeat: not said again, or, in the response to a member that leaves, of no use."""


GROUP_MEMBERS: Final = ("JoinGroup", *GROUP_PROTOCOLS)
"""APIs with which a client is a member of a group."""


class BehaviorPlace(NamedTuple):
    """APIs whose exchanges show a behavior, none for all; the path of the field in the request's body, without indices,
    empty for none; a condition besides."""

    apis: tuple[str, ...] = ()
    path: str = ""
    condition: str = ""

    @property
    def filter(self) -> str:
        """The filter that selects these exchanges; empty for all."""
        apis = f"api == {self.apis[0]}" if len(self.apis) == 1 else f"api in {{{', '.join(self.apis)}}}"
        return " && ".join(filter(None, (apis if self.apis else "", self.condition)))


NO_RESPONSE: Final = BehaviorPlace(condition="!(exists latency) && exists request.size")


class Behavior(NamedTuple):
    """A line of the matrix: its text for a side, and the place of the messages that show it."""

    describe: Callable[[SideProfile], str]
    place: BehaviorPlace
    shown_by: tuple[str, ...] | None = None
    """Of a behavior that is the same in each recording, and so a line of baselines, the APIs that show it, empty for
    all; None for what depends on one run."""


@dataclass(frozen=True, slots=True)
class BehaviorMatrix:
    """`rows` are the lines: the name of a behavior, and the text of each side in the order of `labels`."""

    labels: tuple[str, ...]
    rows: tuple[tuple[str, tuple[str, ...]], ...]
    not_compared: tuple[str, ...] = ()
    """Sentences on what the captures lack of their connections (`captured_span`)."""

    @property
    def is_same(self) -> bool:
        """Whether all sides behave the same."""
        return all(len(set(texts)) <= 1 for _, texts in self.rows)


def build_matrix(sides: Sequence[DiffSide]) -> BehaviorMatrix:
    """Return the behavior of all sides. A behavior that none of them has is left out."""
    profiles = [SideProfile(side, {}, {}) for side in sides]
    columns = [side_behavior(each) for each in profiles]
    names = dict.fromkeys(name for column in columns for name in column)
    rows = [(name, tuple(column.get(name, NOTHING) for column in columns)) for name in names]
    used = tuple((name, texts) for name, texts in rows if any(text != NOTHING for text in texts))
    lacks = tuple(
        f"{each.side.label} lacks {words}: what it does not show, it may do"
        for each in profiles
        if (words := lacking(each.span))
    )
    return BehaviorMatrix(tuple(side.label for side in sides), used, lacks)


def side_behavior(side: SideProfile) -> dict[str, str]:
    """Return the texts of one side by behavior; then the versions of each API."""
    texts = {name: behavior.describe(side) for name, behavior in BEHAVIORS.items()}
    versions = {f"{api}{VERSION}": ", ".join(f"v{n}" for n in sorted(each)) for api, each in side.versions.items()}
    return texts | dict(sorted(versions.items()))


def place_of(behavior: str) -> BehaviorPlace | None:
    """Return where a behavior shows; None for a name that the matrix does not have."""
    if behavior.endswith(VERSION):
        return BehaviorPlace((behavior.removesuffix(VERSION),))
    return BEHAVIORS[behavior].place if behavior in BEHAVIORS else None


def _profiles(side: SideProfile, *apis: str) -> list[KeyProfile]:
    return [profile for key, profile in side.keys.items() if key.api in apis]


def _values(side: SideProfile, api: str, path: str, of: str = "request") -> Counter[ComparedValue]:
    """Return all values of a field of requests or responses, of all exchanges but those that close a session. Of what
    is left of a timeout it is the timeout."""
    found: Counter[ComparedValue] = Counter()
    profiles = (profile for key, profile in side.keys.items() if key.api == api and key.subject != CLOSING)
    for profile in profiles:
        for (part, field_path), values in profile.fields.items():
            if part == of and path_without_labels(field_path) == path:
                for value, count in values.items():
                    found[time_set(value)] += count
    return found


def _field(api: str, path: str) -> Behavior:
    """Describe by the values of a request's field."""
    return _fields(path, api)


def _fields(path: str, *apis: str, part: str = "request") -> Behavior:
    """Describe by the values of a field that the requests of several APIs have, or their responses. A heartbeat says
    -1, or nothing, for what has not changed (KIP-848)."""

    def describe(side: SideProfile) -> str:
        texts = []
        for each in apis:
            found = _values(side, each, path, part)
            if each in GROUP_PROTOCOLS:
                found = Counter({value: count for value, count in found.items() if value not in UNCHANGED})
            texts.append(format_values(f"{each}{part.capitalize()}", found, path))
        return ", ".join(dict.fromkeys(filter(None, texts))) or NOTHING

    return Behavior(describe, BehaviorPlace(apis, path), apis)


def _rate(*apis: str, least: int = 1) -> Behavior:
    """Describe by the number of requests, and their median interval if there are at least so many intervals."""

    def describe(side: SideProfile) -> str:
        profiles = _profiles(side, *apis)
        count = sum(len(each.rows) for each in profiles)
        longest = max((each.intervals_ns for each in profiles), key=len, default=None)
        if longest is None or len(longest) < least:
            return f"{count:,}" if count else NOTHING
        return f"{count:,}, {format_interval(median_of(longest))}"

    return Behavior(describe, BehaviorPlace(apis))


def _batched(describe: Callable[[SideProfile], str], shown_by: tuple[str, ...] | None = None) -> Behavior:
    """Describe by the batches that a producer sends."""
    return Behavior(describe, BehaviorPlace(("Produce",), "topic_data.partition_data.records"), shown_by)


def _software(side: SideProfile) -> str:
    return ", ".join(side.labeled_clients) or NOTHING


def _connections(side: SideProfile) -> str:
    return ", ".join(f"{count} {role}" for role, count in sorted(side.roles.connections.items())) or NOTHING


def _has_names(ids: Counter[ComparedValue]) -> str:
    """Describe whether any id is one: 0 is no session, and -1 no producer."""
    if not ids:
        return NOTHING
    return "yes" if any(isinstance(value, EntityName) for value in ids) else "no"


def _idempotence(side: SideProfile) -> str:
    return _has_names(_values(side, "Produce", "topic_data.partition_data.records.producer_id"))


def _compression(side: SideProfile) -> str:
    return ", ".join(sorted(side.batches.codecs)) or NOTHING


def _batches(side: SideProfile) -> str:
    batches = side.batches
    if not batches.records:
        return NOTHING
    return f"{counted(len(batches.records), 'batch', 'batches')} in {counted(len(batches.per_request), 'request')}"


def _batch_size(side: SideProfile) -> str:
    batches = side.batches
    if not batches.records:
        return NOTHING
    records, sizes = median_of(batches.records), median_of(batches.sizes)
    unit = "record" if records == 1 else "records"
    return f"{records:g} {unit}, {size(round(sizes))} (max {max(batches.records):,}, {size(max(batches.sizes))})"


def _linger(side: SideProfile) -> str:
    """Describe how long a producer lets records wait for more, if their times are those at which they were produced: as
    a comparison of two sides does, by batches whose first record came when all before it was sent."""
    waits_ms, lingers_ms = side.batches.waits_ms, side.batches.lingers_ms
    if waits_ms and (min(waits_ms) < -CLOCK_MS or max(waits_ms) > LONGEST_WAIT_MS):
        return "the program sets the timestamps"
    median_ns = linger_ns(side)
    if median_ns is None:
        return NOTHING
    few = "" if len(lingers_ms) >= MIN_BATCHES else f" ({counted(len(lingers_ms), 'batch', 'batches')})"
    return f"median {duration(median_ns)}{few}"


def _fetch_sessions(side: SideProfile) -> str:
    return _has_names(_values(side, "Fetch", "session_id"))


def _assignors(side: SideProfile) -> str:
    """In the order of the request: a member votes for the first one that all members have."""
    return ", ".join(map(format_value, _values(side, "JoinGroup", "protocols.name"))) or NOTHING


def _group_protocol(side: SideProfile) -> str:
    protocols = {"JoinGroup": "classic"} | GROUP_PROTOCOLS
    return ", ".join(name for api, name in protocols.items() if _profiles(side, api)) or NOTHING


def _static_membership(side: SideProfile) -> str:
    """Describe whether members have a name of their own (KIP-345), which is that of one run."""
    fields = {"JoinGroup": "group_instance_id"}
    found = [_values(side, api, fields.get(api, "instance_id")) for api in GROUP_MEMBERS if _profiles(side, api)]
    if not found:
        return NOTHING
    return "yes" if any(isinstance(value, EntityName) for values in found for value in values) else "no"


def _metadata(side: SideProfile) -> str:
    counts: Counter[str] = Counter()
    for key, profile in side.keys.items():
        if key.api == "Metadata":
            subject = " ".join(map(str, key.subject))
            counts[{"topics": "some topics"}.get(subject, subject)] += len(profile.rows)
    return ", ".join(f"{count:,} for {subject}" for subject, count in sorted(counts.items())) or NOTHING


def _topic_ids(side: SideProfile) -> str:
    has_ids = any(
        isinstance(value, EntityName)
        for profile in side.keys.values()
        for (part, path), values in profile.fields.items()
        if part == "request" and path[-1] == TOPIC_ID
        for value in values
    )
    return "yes" if has_ids else "no"


def _retries(side: SideProfile) -> str:
    backoffs_ns = array("q", [each for profile in side.keys.values() for each in profile.retries.backoffs_ns])
    count = sum(profile.retry_count for profile in side.keys.values())
    if not count:
        return NOTHING
    return f"{count:,}" + (f", after {duration(round(median_of(backoffs_ns)))}" if backoffs_ns else "")


def _missing_responses(side: SideProfile) -> str:
    return f"{side.unanswered:,}" if side.unanswered else NOTHING


def _without_responses(side: SideProfile) -> str:
    """Name the APIs of which no request got a response."""
    sent, lost = Counter[str](), Counter[str]()
    for key, profile in side.keys.items():
        sent[key.api] += len(profile.rows)
        lost[key.api] += len(profile.lost)
    return ", ".join(sorted(api for api in sent if sent[api] == lost[api])) or "none"


def _commits_on_leaving(side: SideProfile) -> str:
    """Describe whether a client commits as it leaves its group; nothing if it may have had nothing to commit."""
    found = [each for key in side.keys if (each := leaving(side, side.keys, key)) is not None]
    if any(each.commits for each in found):
        return "yes"
    return "no" if any(each.has_read for each in found) else NOTHING


def _shutdown(side: SideProfile) -> str:
    texts = []
    if _profiles(side, "JoinGroup"):
        texts.append("leaves the group" if _profiles(side, "LeaveGroup") else "does not leave the group")
    epochs = [found for api in GROUP_PROTOCOLS if (found := _values(side, api, "member_epoch"))]
    texts += ["leaves the group" if LEAVING & found.keys() else "does not leave the group" for found in epochs]
    if any(isinstance(value, EntityName) for value in _values(side, "Fetch", "session_id")):
        closes = any(key.api == "Fetch" and key.subject == CLOSING for key in side.keys)
        texts.append("closes its fetch sessions" if closes else "keeps its fetch sessions open")
    return ", ".join(dict.fromkeys(texts)) or NOTHING


BEHAVIORS: Final[dict[str, Behavior]] = {
    "software": Behavior(_software, BehaviorPlace(("ApiVersions",), "client_software_name")),
    "connections": Behavior(_connections, BehaviorPlace()),
    "metadata requests": Behavior(_metadata, BehaviorPlace(("Metadata",), "topics")),
    "metadata total": _rate("Metadata", least=MIN_INTERVALS),
    "missing responses": Behavior(_missing_responses, NO_RESPONSE),
    WITHOUT_RESPONSES: Behavior(_without_responses, NO_RESPONSE, ()),
    "topic ids in requests": Behavior(
        _topic_ids, BehaviorPlace(("Produce", "Fetch", "Metadata", "OffsetCommit", "OffsetFetch")), ()
    ),
    "auto topic creation": _field("Metadata", "allow_auto_topic_creation"),
    "retries": Behavior(_retries, BehaviorPlace(condition="error")),
    "acks": _field("Produce", "acks"),
    "idempotence": Behavior(_idempotence, BehaviorPlace(("InitProducerId", "Produce")), ("Produce",)),
    "compression": _batched(_compression, ("Produce",)),
    "batches": _batched(_batches),
    "batch size": _batched(_batch_size),
    "observed linger": _batched(_linger),
    "produce timeout (ms)": _field("Produce", "timeout_ms"),
    "transaction timeout (ms)": _field("InitProducerId", "transaction_timeout_ms"),
    "fetch max wait (ms)": _field("Fetch", "max_wait_ms"),
    "fetch min bytes": _field("Fetch", "min_bytes"),
    "fetch max bytes": _field("Fetch", "max_bytes"),
    "fetch partition max": _field("Fetch", "topics.partitions.partition_max_bytes"),
    "fetch sessions": Behavior(_fetch_sessions, BehaviorPlace(("Fetch",), "session_id"), ("Fetch",)),
    "fetches": _rate("Fetch", least=MIN_INTERVALS),
    "isolation level": _field("Fetch", "isolation_level"),
    "client rack": _field("Fetch", "rack_id"),
    "offset reset": _field("ListOffsets", "topics.partitions.timestamp"),
    "group protocol": Behavior(_group_protocol, BehaviorPlace(GROUP_MEMBERS), GROUP_MEMBERS),
    "static membership": Behavior(_static_membership, BehaviorPlace(GROUP_MEMBERS), GROUP_MEMBERS),
    "assignors": Behavior(_assignors, BehaviorPlace(("JoinGroup",), "protocols.name"), ("JoinGroup",)),
    "remote assignor": _field("ConsumerGroupHeartbeat", "server_assignor"),
    "session timeout (ms)": _field("JoinGroup", "session_timeout_ms"),
    "rebalance timeout (ms)": _fields(
        "rebalance_timeout_ms", "JoinGroup", "ConsumerGroupHeartbeat", "StreamsGroupHeartbeat"
    ),
    "heartbeat interval (ms)": _fields("heartbeat_interval_ms", *GROUP_PROTOCOLS, part="response"),
    "heartbeats": _rate("Heartbeat", *GROUP_PROTOCOLS),
    "offset commits": _rate("OffsetCommit", least=MIN_INTERVALS),
    ON_LEAVING: Behavior(_commits_on_leaving, BehaviorPlace(("OffsetCommit", "LeaveGroup")), GROUP_MEMBERS),
    SHUTDOWN: Behavior(_shutdown, BehaviorPlace(("LeaveGroup", "Fetch"), "session_epoch"), ("Fetch", *GROUP_MEMBERS)),
}
"""The lines of the matrix, in order."""
