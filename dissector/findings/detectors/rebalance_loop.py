"""Consumer groups that rebalance again and again."""

from collections import Counter
from typing import ClassVar, Final, NamedTuple

from dissector.core.arrays import Bool
from dissector.core.finding import Severity
from dissector.findings.explanation import Explanation
from dissector.findings.framework.decoded_exchange import DecodedExchange
from dissector.findings.framework.detector import Aggregator
from dissector.findings.framework.examined_rows import ExaminedRows
from dissector.findings.framework.extractor import Extractor, Scope
from dissector.findings.framework.open_findings import FindingSink
from dissector.findings.framework.recurrence import SECOND, BoundedStates, Burst
from dissector.findings.framework.wording import tally
from dissector.protocol.schema.api_keys import ApiKey
from dissector.protocol.schema.error_codes import ErrorCode
from dissector.protocol.schema.errors import error_name

REASONS: Final = frozenset((
    ErrorCode.ILLEGAL_GENERATION, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.REBALANCE_IN_PROGRESS,
    ErrorCode.MEMBER_ID_REQUIRED, ErrorCode.FENCED_INSTANCE_ID, ErrorCode.FENCED_MEMBER_EPOCH,
))  # fmt: skip
"""Errors that make a member join again."""
MANY: Final = 5
SPAN_NS: Final = 60 * SECOND


class GroupEvent(NamedTuple):
    """A member joins, or has to join again."""

    client: str
    time_ns: int
    joined: bool
    """Whether it joined. Otherwise `reasons` has the errors."""
    generation: object
    joins: bool
    """Whether the exchange is a join (JoinGroup, ConsumerGroupHeartbeat), and not one of a member that has joined."""
    reasons: tuple[int, ...]


class GroupExtractor(Extractor):
    """Observes joins and rejections of members, by group."""

    apis: ClassVar = frozenset((
        ApiKey.OFFSET_COMMIT, ApiKey.JOIN_GROUP, ApiKey.HEARTBEAT, ApiKey.SYNC_GROUP, ApiKey.CONSUMER_GROUP_HEARTBEAT,
    ))  # fmt: skip

    def needed(self, rows: ExaminedRows, is_clean: Bool) -> Bool:
        """Without an error, only JoinGroup shows anything."""
        found: Bool = ~is_clean | (rows.api_key == ApiKey.JOIN_GROUP)
        return found

    def examine_exchange(self, exchange: DecodedExchange) -> None:
        """Observe JoinGroup, and errors of the other APIs."""
        reasons = tuple(sorted(REASONS.intersection(exchange.errors)))
        if exchange.api_key == ApiKey.JOIN_GROUP or reasons:
            joined = exchange.api_key == ApiKey.JOIN_GROUP and not exchange.errors
            generation = exchange.response.get("generation_id") if joined else None
            joins = exchange.api_key in (ApiKey.JOIN_GROUP, ApiKey.CONSUMER_GROUP_HEARTBEAT)
            client = self.context.client(exchange.connection)
            event = GroupEvent(client, exchange.response_ns, joined, generation, joins, reasons)
            self.observe((str(exchange.request.get("group_id")),), exchange.row, exchange.position, event)


class RebalanceLoop(Aggregator[GroupEvent]):
    """Finds groups that rebalance again and again."""

    extractor: ClassVar = GroupExtractor
    explanation: ClassVar = Explanation(
        "rebalance-loop",
        "Group rebalances again and again",
        Severity.WARNING,
        "A group had five new generations or more, or its members had to join again as often, without a pause of a "
        "minute. MEMBER_ID_REQUIRED once for each new member is normal and is not counted.",
        "A member that takes longer than max.poll.interval.ms to process what it polled leaves and joins again. One "
        "whose heartbeats are late (session.timeout.ms) is removed: UNKNOWN_MEMBER_ID, ILLEGAL_GENERATION. Members "
        "that start and stop one after the other, and assignors that disagree, cause it too.",
        "Process less at a time (max.poll.records) or allow more time (max.poll.interval.ms); keep "
        "heartbeat.interval.ms at a third of session.timeout.ms or less; give members a group.instance.id so that a "
        "restart causes no rebalance; use the cooperative-sticky assignor, or group.protocol=consumer.",
    )

    def __init__(self, found: FindingSink, scope: Scope) -> None:
        super().__init__(found, scope)
        self._burst = Burst()
        self._generation: object = None
        self._reasons: Counter[str] = Counter()
        self._needs_id: BoundedStates[str, list[bool]] = BoundedStates(list)
        """Clients that received MEMBER_ID_REQUIRED, and so a member id to join again with."""

    def add(self, row: int, observed: GroupEvent) -> None:
        """Count new generations and members that have to join again."""
        if observed.joined:
            counts = observed.generation != self._generation
            self._generation = observed.generation
            self._needs_id.forget(observed.client)
        else:
            counts = self._has_to_rejoin(observed)
        self._reasons.update(error_name(code) for code in observed.reasons)
        if counts and self._burst.is_on(observed.time_ns, MANY, SPAN_NS):
            why = f" ({tally(self._reasons)})" if self._reasons else ""
            words = f"group {self.scope[0]} rebalanced {self._burst.count:,} times{why}"
            self.report_burst(self._burst, row, observed.time_ns, words, "response.body")

    def _has_to_rejoin(self, observed: GroupEvent) -> bool:
        """Return whether a member has to join again, other than once for its first id."""
        if not observed.joins or ErrorCode.MEMBER_ID_REQUIRED not in observed.reasons:
            return observed.joins and bool(observed.reasons)
        needed = self._needs_id.of(observed.client)
        again = bool(needed)
        needed[:] = [True]
        return again
