"""Consumer groups that do not come to rest."""

from collections import Counter
from typing import ClassVar, Final

from dissector.analysis.findings.explanation import Explanation
from dissector.analysis.findings.finder import Around, BodyFinder
from dissector.analysis.findings.found import Found
from dissector.analysis.findings.recurring import SECOND, Burst, Recent
from dissector.analysis.findings.seen import Seen
from dissector.analysis.findings.words import tally
from dissector.findings import Severity
from dissector.protocol.schema.errors import error_name

OFFSET_COMMIT, JOIN_GROUP, HEARTBEAT, SYNC_GROUP, CONSUMER_GROUP_HEARTBEAT = 8, 11, 12, 14, 68
MEMBER_ID_REQUIRED: Final = 79
REASONS: Final = {22, 25, 27, MEMBER_ID_REQUIRED, 82, 110}
"""ILLEGAL_GENERATION, UNKNOWN_MEMBER_ID, REBALANCE_IN_PROGRESS, FENCED_INSTANCE_ID, FENCED_MEMBER_EPOCH."""
MANY: Final = 5
SPAN_NS: Final = 60 * SECOND


class _Group:
    """What is known of a group."""

    def __init__(self) -> None:
        self.burst = Burst()
        self.generation: object = None
        self.reasons: Counter[str] = Counter()
        self.asked_for_id: set[str] = set()
        """Clients that were told to come back with the id that they were given."""


class RebalanceLoop(BodyFinder):
    """A group that joins and syncs again and again."""

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
    apis: ClassVar = frozenset((OFFSET_COMMIT, JOIN_GROUP, HEARTBEAT, SYNC_GROUP, CONSUMER_GROUP_HEARTBEAT))

    def __init__(self, found: Found, around: Around) -> None:
        super().__init__(found, around)
        self._groups: Recent[str, _Group] = Recent(_Group)

    def look(self, seen: Seen) -> None:
        """A new generation counts, and so does a member that was sent back."""
        reasons = REASONS.intersection(seen.errors)
        if seen.key != JOIN_GROUP and not reasons:
            return
        group = self._groups.of(str(seen.request.get("group_id")))
        if seen.key == JOIN_GROUP and not seen.errors:
            counts = seen.response.get("generation_id") != group.generation
            group.generation = seen.response.get("generation_id")
            group.asked_for_id.discard(self.around.client(seen.connection))
        else:
            counts = self._is_sent_back(group, seen, reasons)
        group.reasons.update(error_name(code) for code in reasons)
        if counts and group.burst.is_on(seen.answered_ns, MANY, SPAN_NS):
            why = f" ({tally(group.reasons)})" if group.reasons else ""
            name = seen.request.get("group_id")
            words = f"group {name} began anew {group.burst.count:,} times{why}"
            self.burst(group.burst, seen.row, seen.answered_ns, words, "response.body")

    def _is_sent_back(self, group: _Group, seen: Seen, reasons: set[int]) -> bool:
        """Whether it is told to join again, other than once for its first id."""
        if seen.key not in (JOIN_GROUP, CONSUMER_GROUP_HEARTBEAT):
            return False
        if MEMBER_ID_REQUIRED not in reasons:
            return bool(reasons)
        client = self.around.client(seen.connection)
        again = client in group.asked_for_id
        group.asked_for_id.add(client)
        return again
