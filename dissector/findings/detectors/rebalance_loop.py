"""Consumer groups that do not come to rest."""

from collections import Counter
from typing import ClassVar, Final, NamedTuple

from dissector.core.finding import Severity
from dissector.findings.explanation import Explanation
from dissector.findings.framework.decoded_exchange import DecodedExchange
from dissector.findings.framework.detector import Aggregator
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
    """A member joins, or has to."""

    client: str
    time_ns: int
    joined: bool
    """It is in; else `reasons` say why it is not."""
    generation: object
    joins: bool
    """Whether it is told when it joins, and not on the way."""
    reasons: tuple[int, ...]


class GroupExtractor(Extractor):
    """What members ask of a group's coordinator."""

    apis: ClassVar = frozenset((
        ApiKey.OFFSET_COMMIT, ApiKey.JOIN_GROUP, ApiKey.HEARTBEAT, ApiKey.SYNC_GROUP, ApiKey.CONSUMER_GROUP_HEARTBEAT,
    ))  # fmt: skip

    def examine_exchange(self, exchange: DecodedExchange) -> None:
        """What is neither a new member's nor an error is left out."""
        reasons = tuple(sorted(REASONS.intersection(exchange.errors)))
        if exchange.api_key == ApiKey.JOIN_GROUP or reasons:
            joined = exchange.api_key == ApiKey.JOIN_GROUP and not exchange.errors
            generation = exchange.response.get("generation_id") if joined else None
            joins = exchange.api_key in (ApiKey.JOIN_GROUP, ApiKey.CONSUMER_GROUP_HEARTBEAT)
            client = self.context.client(exchange.connection)
            turn = GroupEvent(client, exchange.response_ns, joined, generation, joins, reasons)
            self.observe((str(exchange.request.get("group_id")),), exchange.row, exchange.position, turn)


class RebalanceLoop(Aggregator[GroupEvent]):
    """A group that joins and syncs again and again."""

    extractor: ClassVar = GroupExtractor
    explanation: ClassVar = Explanation(
        "rebalance-loop",
        "A group that rebalances again and again",
        Severity.WARNING,
        "A group began five generations or more, or its members were sent back as often, with no minute of quiet. "
        "MEMBER_ID_REQUIRED once for each new member is normal and is not counted.",
        "A member that takes longer than max.poll.interval.ms to process what it polled leaves and comes back; one "
        "whose heartbeats are late (session.timeout.ms) is thrown out: UNKNOWN_MEMBER_ID, ILLEGAL_GENERATION. Members "
        "that start and stop one after the other do it, and assignors that do not agree.",
        "Process less at a time (max.poll.records) or allow more time (max.poll.interval.ms); keep "
        "heartbeat.interval.ms at a third of session.timeout.ms; give members a group.instance.id so that a restart is "
        "no rebalance; use the cooperative-sticky assignor, or group.protocol=consumer.",
    )

    def __init__(self, found: FindingSink, scope: Scope) -> None:
        super().__init__(found, scope)
        self._burst = Burst()
        self._generation: object = None
        self._reasons: Counter[str] = Counter()
        self._asked_for_id: BoundedStates[str, list[bool]] = BoundedStates(list)
        """Clients that were told to come back with the id that they were given."""

    def add(self, row: int, observed: GroupEvent) -> None:
        """A new generation counts, and so does a member that was sent back."""
        if observed.joined:
            counts = observed.generation != self._generation
            self._generation = observed.generation
            self._asked_for_id.forget(observed.client)
        else:
            counts = self._is_sent_back(observed)
        self._reasons.update(error_name(code) for code in observed.reasons)
        if counts and self._burst.is_on(observed.time_ns, MANY, SPAN_NS):
            why = f" ({tally(self._reasons)})" if self._reasons else ""
            words = f"group {self.scope[0]} began anew {self._burst.count:,} times{why}"
            self.report_burst(self._burst, row, observed.time_ns, words, "response.body")

    def _is_sent_back(self, observed: GroupEvent) -> bool:
        """Whether it is told to join again, other than once for its first id."""
        if not observed.joins or ErrorCode.MEMBER_ID_REQUIRED not in observed.reasons:
            return observed.joins and bool(observed.reasons)
        asked = self._asked_for_id.of(observed.client)
        again = bool(asked)
        asked[:] = [True]
        return again
