"""Rules on members of classic groups, and on what members of all groups send to their coordinator."""

from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np

from dissector.analysis.conformance.declared_fields import is_empty, is_negative, is_one_of
from dissector.analysis.conformance.events import MessageEvent
from dissector.analysis.conformance.message_columns import MessageColumns
from dissector.analysis.conformance.proving import NOTHING, latest, since, unless
from dissector.analysis.conformance.rule import Proof, RuleBook, RuleMemory, RuleSide, Verdict, partitions
from dissector.bulk.body_fields import NO_TEXT, ElementNames
from dissector.core.arrays import Bool, Int64
from dissector.core.text import counted, duration
from dissector.findings.framework.read_fields import REQUEST, RESPONSE
from dissector.protocol.kernel.shredding import numbered_rows
from dissector.protocol.schema.error_codes import ErrorCode

RULES: Final = RuleBook()
_CLASSIC: Final = frozenset({"JoinGroup", "SyncGroup", "Heartbeat", "OffsetCommit", "LeaveGroup"})
_ERROR: Final = "response.error_code"
_GENERATION: Final = "generation_id_or_member_epoch"
_JOIN: Final = frozenset({"JoinGroup"})
_ASSIGNMENTS: Final = ElementNames("assignments", "member_id", "assignment")
_TEXT_BITS: Final = 32
"""The number of a text has less."""
DEFAULT_REBALANCE_MS: Final = 300_000
"""The rebalance timeout of members whose JoinGroup was not captured, or has none."""


class _Members(NamedTuple):
    """Members of groups, by message, `(m,)`."""

    group: Int64
    """A number for its name; `NO_TEXT` for messages of other APIs, and of requests that can't be read."""
    key: Int64
    """A number for group and member: for the one that joined, in a response to a JoinGroup."""
    joins: Bool
    """Which messages are such responses, without an error."""
    are_members: Bool
    """Which are of APIs that members use."""

    @classmethod
    def of(cls, columns: MessageColumns) -> "_Members":
        """Those of the messages of a capture."""
        return columns.once(cls._of)

    @classmethod
    def _of(cls, columns: MessageColumns) -> "_Members":
        are_members = columns.messages_of(columns.of(_CLASSIC))
        sent = columns.texts(_CLASSIC, ("group_id", "member_id"), side=REQUEST)
        joined = columns.texts(_JOIN, ("member_id",), side=RESPONSE)["member_id"]
        error = columns.numbers(_JOIN, ("error_code",), side=RESPONSE)["error_code"]
        joins = columns.is_response & error.is_there & (error.values == ErrorCode.NONE)
        member = np.where(joins, joined, sent["member_id"])
        member[member == NO_TEXT] = columns.empty_text
        key = numbered_rows(sent["group_id"], member)[0].astype(np.int64)
        return cls(sent["group_id"], key, joins, are_members)

    @property
    def requests(self) -> Bool:
        """Of which messages the request can be read."""
        are_read: Bool = self.group != NO_TEXT
        return are_read

    def unless(self, kept: Bool, breaks: Bool) -> Proof:
        """Proof of verdicts, but for those of members of which one message breaks the rule."""
        found = unless(kept.astype(np.int64), breaks, self.key)
        return found._replace(open=found.open & self.are_members)


def _spans(some: Bool, connection: Int64) -> Bool:
    """Which messages come from the first to the last of some of a connection."""
    places = np.flatnonzero(some)
    change = np.zeros(len(some) + 1, np.int64)
    _, first = np.unique(connection[places], return_index=True)
    _, last = np.unique(connection[places[::-1]], return_index=True)
    np.add.at(change, places[first], 1)
    np.add.at(change, places[::-1][last] + 1, -1)
    spans: Bool = np.cumsum(change[:-1]) > 0
    return spans


@RULES.memory("member-id-required", "KIP-394", {"JoinGroup"})
class MemberIdRequired(RuleMemory):
    """after MEMBER_ID_REQUIRED a member joins with the id of the response."""

    def __init__(self) -> None:
        self._given: dict[tuple[int, str], str] = {}

    @classmethod
    def proof(cls, columns: MessageColumns, apis: frozenset[str]) -> Proof:
        """It begins with an error."""
        required = columns.tested(apis, {_ERROR: is_one_of(ErrorCode.MEMBER_ID_REQUIRED)})
        if not required.any():
            return Proof.nothing(columns)
        sent = columns.texts(apis, ("group_id", "member_id"), side=REQUEST)
        given = columns.texts(apis, ("member_id",), side=RESPONSE)["member_id"]
        of_apis = columns.messages_of(columns.of(apis))
        key = numbered_rows(columns.connection, sent["group_id"])[0].astype(np.int64)
        gives = latest(key, columns.is_response & columns.messages_of(required))
        asks = columns.is_request & (sent["group_id"] != NO_TEXT)
        is_first = asks & (gives > latest(key, asks))
        found = unless(is_first.astype(np.int64), is_first & (sent["member_id"] != given[gives]), key)
        return found._replace(open=found.open & of_apis)

    def request(self, event: MessageEvent) -> Iterator[Verdict]:
        given = self._given.pop((event.connection, event.body.get("group_id", "")), None)
        if given is not None:
            member = event.body["member_id"]
            yield Verdict(event, member == given, "member_id", f"joins as {member!r}, but is {given!r}")

    def response(self, event: MessageEvent) -> None:
        if event.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self._given[event.connection, event.request.get("group_id", "")] = event.body["member_id"]


@RULES.request("group-protocols", "error INCONSISTENT_GROUP_PROTOCOL", {"JoinGroup"},
               reads={"request.protocol_type": None, "request.protocols": None})  # fmt: skip
def group_protocols(event: MessageEvent) -> Iterator[Verdict]:
    """JoinGroup has a protocol type and at least one protocol."""
    if event.body:
        yield Verdict(
            event, bool(event.body["protocol_type"] and event.body["protocols"]), "protocols", "there is none"
        )


@RULES.request(
    "subscription-format",
    "ConsumerProtocolSubscription.json; KIP-429",
    {"JoinGroup"},
    reads=dict.fromkeys(
        f"request.{name}" for name in ("protocol_type", "protocols", "protocols.name", "protocols.metadata")
    ),
)
def subscriptions(event: MessageEvent) -> Iterator[Verdict]:
    """a consumer's subscription has the fields of its version, owned_partitions since v1."""
    if event.body.get("protocol_type") == "consumer":
        for n, each in enumerate(event.body["protocols"]):
            decoded = each.get("metadata_decoded")
            missing = (decoded or {}).get("missing_fields", ())
            words = f"the subscription for {each['name']} " + (
                f"ends before {', '.join(missing)}" if missing else "can't be read to its end"
            )
            yield Verdict(event, decoded is not None and not missing, f"protocols[{n}].metadata", words)


@RULES.request(
    "assignment",
    "ConsumerProtocolAssignment.json",
    {"SyncGroup"},
    reads=dict.fromkeys(
        f"request.{name}" for name in ("protocol_type", "assignments.member_id", "assignments.assignment")
    ),
)
def assignments(event: MessageEvent) -> Iterator[Verdict]:
    """a leader assigns each partition to one member, in a format that can be read."""
    if event.body.get("protocol_type", "consumer") not in ("consumer", None):
        return
    owners: dict[tuple[str, int], str] = {}
    for n, each in enumerate(event.body.get("assignments", ())):
        path = f"assignments[{n}].assignment"
        decoded = each.get("assignment_decoded")
        if decoded is None:
            yield Verdict(event, not each["assignment"], path, "the assignment can't be read to its end")
            continue
        for topic in decoded.get("assigned_partitions", ()):
            for partition in topic["partitions"]:
                key = topic["topic"], partition
                owner = owners.setdefault(key, each["member_id"])
                words = f"{key[0]} partition {partition} belongs to {owner}, too"
                yield Verdict(event, owner == each["member_id"], path, words)


@RULES.memory(
    "empty-assignment", "SyncGroupResponse.json; Kafka's GroupCoordinator", {"SyncGroup"}, side=RuleSide.BROKER
)
class EmptyAssignments(RuleMemory):
    """a member gets the assignment that the leader made for it."""

    def __init__(self) -> None:
        self._made: dict[str, tuple[int, dict[str, bytes]]] = {}
        """By group: the newest generation with assignments, and these by member."""

    @classmethod
    def proof(cls, columns: MessageColumns, apis: frozenset[str]) -> Proof:
        """Members for whom the last leader of the group, in their generation, made an assignment get some bytes."""
        sent = columns.texts(apis, ("group_id", "member_id"), side=REQUEST)
        group, generation = sent["group_id"], columns.numbers(apis, ("generation_id",), side=REQUEST)["generation_id"]
        error = columns.numbers(apis, ("error_code",), side=RESPONSE)["error_code"]
        made = columns.elements(apis, _ASSIGNMENTS, side=REQUEST)
        places = columns.places.request[made.row]
        makes, repeats = np.zeros((2, len(group)), np.bool_)
        makes[places] = True
        members, first, times = np.unique(places << _TEXT_BITS | made.text, return_index=True, return_counts=True)
        repeats[places[first[times > 1]]] = True  # the last one counts
        before = latest(group, makes)
        has_some = np.isin(before << _TEXT_BITS | sent["member_id"], members[made.size[first] > 0])
        asks = columns.is_response & error.is_there & (error.values == ErrorCode.NONE) & (before != NOTHING)
        asks &= has_some & (generation.values == generation.values[before])
        is_odd = asks & columns.messages_of(columns.tested(apis, {"response.assignment": is_empty}))
        is_odd |= columns.messages_of(columns.of(apis) & ~columns.is_readable) | repeats
        found = unless(asks.astype(np.int64), is_odd, group)
        return found._replace(open=found.open & columns.messages_of(columns.of(apis)))

    def request(self, event: MessageEvent) -> None:
        made = {each["member_id"]: each["assignment"] for each in event.body.get("assignments", ())}
        if made:
            self._made[event.body["group_id"]] = event.body["generation_id"], made

    def response(self, event: MessageEvent) -> Iterator[Verdict]:
        generation, assignments = self._made.get(event.request.get("group_id", ""), (-1, {}))
        is_same = generation == event.request.get("generation_id")
        made = assignments.get(event.request.get("member_id", "")) if is_same else None
        if made and event.error_code == ErrorCode.NONE:
            got = event.body["assignment"]
            words = f"{counted(len(got), 'byte')} of an assignment of {counted(len(made), 'byte')}"
            yield Verdict(event, bool(got), "assignment", words)


@RULES.memory("stale-generation", "error ILLEGAL_GENERATION", _CLASSIC)
class Generations(RuleMemory):
    """a member does not use a generation older than the one that it joined."""

    def __init__(self) -> None:
        self._joined: dict[tuple[str, str], int] = {}

    @classmethod
    def proof(cls, columns: MessageColumns, apis: frozenset[str]) -> Proof:
        """A generation is not below that of the last response to a JoinGroup of the member."""
        members = _Members.of(columns)
        joined = columns.numbers(_JOIN, ("generation_id",), side=RESPONSE)["generation_id"].values
        sent = columns.numbers(apis, ("generation_id", _GENERATION), side=REQUEST)
        older, newer = sent["generation_id"], sent[_GENERATION]
        generation = np.where(older.is_there, older.values, newer.values)
        before = latest(members.key, members.joins)
        asks = columns.is_request & (older.is_there | newer.is_there) & (generation >= 0) & (before != NOTHING)
        return members.unless(asks, asks & (generation < joined[before]))

    def request(self, event: MessageEvent) -> Iterator[Verdict]:
        name = "generation_id" if "generation_id" in event.body else _GENERATION
        joined = self._joined.get((event.body.get("group_id", ""), event.body.get("member_id", "")))
        generation = event.body.get(name)
        if joined is not None and generation is not None and generation >= 0:
            yield Verdict(event, generation >= joined, name, f"generation {generation}, but it joined {joined}")

    def response(self, event: MessageEvent) -> None:
        if event.api == "JoinGroup" and event.error_code == ErrorCode.NONE:
            self._joined[event.request.get("group_id", ""), event.body["member_id"]] = event.body["generation_id"]


@RULES.memory("unknown-member", "Kafka's ConsumerCoordinator", _CLASSIC)
class UnknownMember(RuleMemory):
    """after UNKNOWN_MEMBER_ID a member does not use its id again."""

    def __init__(self) -> None:
        self._unknown: set[tuple[str, str]] = set()

    @classmethod
    def proof(cls, columns: MessageColumns, apis: frozenset[str]) -> Proof:
        """It begins with an error."""
        unknown = columns.tested(apis, {_ERROR: is_one_of(ErrorCode.UNKNOWN_MEMBER_ID)})
        return since(columns, unknown, apis, of_connection=False)

    def request(self, event: MessageEvent) -> Iterator[Verdict]:
        member = event.body.get("member_id", "")
        if (event.body.get("group_id", ""), member) in self._unknown and event.api != "LeaveGroup":
            yield Verdict(event, False, "member_id", f"{member!r} is not known to the group")

    def response(self, event: MessageEvent) -> Iterator[Verdict]:
        if event.error_code == ErrorCode.UNKNOWN_MEMBER_ID and event.request.get("member_id"):
            self._unknown.add((event.request.get("group_id", ""), event.request["member_id"]))
            yield Verdict(event, True, "", "")


@RULES.memory("rebalance-ignored", "KIP-62; max.poll.interval.ms", _CLASSIC)
class RejoinAfterRebalance(RuleMemory):
    """after REBALANCE_IN_PROGRESS a member joins again within its rebalance timeout."""

    def __init__(self) -> None:
        self._timeouts: dict[tuple[str, str], int] = {}
        self._notified_ns: dict[tuple[str, str], int] = {}

    @classmethod
    def proof(cls, columns: MessageColumns, apis: frozenset[str]) -> Proof:
        """A request comes within the timeout of the last response to a JoinGroup of the member, counted from the first
        such error since it last joined or left."""
        notices = columns.tested({"Heartbeat"}, {_ERROR: is_one_of(ErrorCode.REBALANCE_IN_PROGRESS)})
        if not notices.any():
            return Proof.nothing(columns)
        members = _Members.of(columns)
        clears = members.requests & columns.is_request & columns.messages_of(columns.of({"JoinGroup", "LeaveGroup"}))
        is_notice = columns.is_response & columns.messages_of(notices)
        cleared = latest(members.key, clears)
        is_first = is_notice & (latest(members.key, is_notice) <= cleared)
        first = latest(members.key, is_first)
        asks = members.requests & columns.is_request & (first > cleared)
        timeout = columns.numbers(_JOIN, ("rebalance_timeout_ms",), side=REQUEST)["rebalance_timeout_ms"]
        before = latest(members.key, members.joins)
        is_known = (before != NOTHING) & timeout.is_there[before]
        limit_ms = np.where(is_known, timeout.values[before], DEFAULT_REBALANCE_MS)
        return members.unless(asks, asks & (columns.time_ns - columns.time_ns[first] > limit_ms * 1_000_000))

    def request(self, event: MessageEvent) -> Iterator[Verdict]:
        key = event.body.get("group_id", ""), event.body.get("member_id", "")
        notified_ns = self._notified_ns.get(key)
        if notified_ns is None:
            return
        if event.api in ("JoinGroup", "LeaveGroup"):
            del self._notified_ns[key]
        limit, waited = self._timeouts.get(key, DEFAULT_REBALANCE_MS) * 1_000_000, event.time_ns - notified_ns
        yield Verdict(event, waited <= limit, "", f"{event.api} {duration(waited)} after it, of {duration(limit)}")

    def response(self, event: MessageEvent) -> None:
        key = event.request.get("group_id", ""), event.request.get("member_id", "")
        if event.api == "JoinGroup" and event.error_code == ErrorCode.NONE:
            self._timeouts[key[0], event.body["member_id"]] = event.request.get(
                "rebalance_timeout_ms", DEFAULT_REBALANCE_MS
            )
        elif event.api == "Heartbeat" and event.error_code == ErrorCode.REBALANCE_IN_PROGRESS:
            self._notified_ns.setdefault(key, event.time_ns)


@RULES.request(
    "committed-offset",
    "OffsetCommitRequest.json; Kafka's OffsetAndMetadata",
    {"OffsetCommit", "TxnOffsetCommit"},
    reads={"request.topics.partitions.committed_offset": is_negative},
)
def committed_offsets(event: MessageEvent) -> Iterator[Verdict]:
    """a committed offset is not negative."""
    for _, each, path in partitions(event.body, "topics"):
        offset = each["committed_offset"]
        yield Verdict(event, offset >= 0, f"{path}.committed_offset", f"offset {offset}")


@RULES.memory(
    "not-coordinator",
    "error NOT_COORDINATOR; Kafka's AbstractCoordinator",
    _CLASSIC | {"OffsetFetch", "ConsumerGroupHeartbeat", "FindCoordinator"},
)
class CoordinatorMoved(RuleMemory):
    """after NOT_COORDINATOR a client looks up the coordinator before it sends to the same broker again."""

    def __init__(self) -> None:
        self._moved: set[tuple[int, str]] = set()

    @classmethod
    def proof(cls, columns: MessageColumns, apis: frozenset[str]) -> Proof:
        """It begins with an error; a coordinator may be looked up on any connection, as long as such a one goes on."""
        moved = columns.tested(apis, {_ERROR: is_one_of(ErrorCode.NOT_COORDINATOR)})
        after = since(columns, moved, apis).open
        lookups = columns.is_request & columns.messages_of(columns.of({"FindCoordinator"}))
        return Proof(after | (lookups & _spans(after & columns.is_request, columns.connection)))

    def request(self, event: MessageEvent) -> Iterator[Verdict]:
        if event.api == "FindCoordinator":
            keys = {event.body.get("key"), *event.body.get("coordinator_keys", ())}
            self._moved = {each for each in self._moved if each[1] not in keys}
        elif (event.connection, event.body.get("group_id", "")) in self._moved:
            yield Verdict(event, False, "group_id", "the same broker gets a request again")

    def response(self, event: MessageEvent) -> Iterator[Verdict]:
        if event.error_code == ErrorCode.NOT_COORDINATOR and event.request.get("group_id"):
            self._moved.add((event.connection, event.request["group_id"]))
            yield Verdict(event, True, "", "")


@RULES.memory("generation-order", "Kafka's group coordinator", {"JoinGroup"}, side=RuleSide.BROKER)
class GenerationsGoUp(RuleMemory):
    """the generation of a group never decreases."""

    def __init__(self) -> None:
        self._last: dict[tuple[str, str], int] = {}

    @classmethod
    def proof(cls, columns: MessageColumns, apis: frozenset[str]) -> Proof:
        """A generation is not below that of the response before it, of the group at the broker."""
        members = _Members.of(columns)
        joined = columns.numbers(_JOIN, ("generation_id",), side=RESPONSE)["generation_id"].values
        key = numbered_rows(columns.server[columns.exchange], members.group)[0].astype(np.int64)
        before = latest(key, members.joins)
        is_lower = members.joins & (joined < np.where(before == NOTHING, 0, joined[before]))
        found = unless(members.joins.astype(np.int64), is_lower, key)
        return found._replace(open=found.open & columns.messages_of(columns.of(apis)))

    def response(self, event: MessageEvent) -> Iterator[Verdict]:
        if event.error_code == ErrorCode.NONE:
            key = event.exchange.fields.server, event.request.get("group_id", "")
            last, generation = self._last.get(key, 0), event.body["generation_id"]
            yield Verdict(event, generation >= last, "generation_id", f"generation {generation} after {last}")
            self._last[key] = max(last, generation)
