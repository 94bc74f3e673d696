"""Consumer groups that do not come to rest."""

from collections import Counter
from typing import ClassVar, Final, NamedTuple

from dissector.core.finding import Severity
from dissector.findings.explanation import Explanation
from dissector.findings.framework.decoded_exchange import Seen
from dissector.findings.framework.extractor import BodyNoter, Maker, Scope
from dissector.findings.framework.open_findings import Telling
from dissector.findings.framework.recurrence import SECOND, Burst, Recent
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


class Turn(NamedTuple):
    """A member joins, or is told to."""

    client: str
    time_ns: int
    joined: bool
    """It is in; else `reasons` say why it is not."""
    generation: object
    joins: bool
    """Whether it is told when it joins, and not on the way."""
    reasons: tuple[int, ...]


class GroupNoter(BodyNoter):
    """What members ask of a group's coordinator."""

    apis: ClassVar = frozenset((
        ApiKey.OFFSET_COMMIT, ApiKey.JOIN_GROUP, ApiKey.HEARTBEAT, ApiKey.SYNC_GROUP, ApiKey.CONSUMER_GROUP_HEARTBEAT,
    ))  # fmt: skip

    def look(self, seen: Seen) -> None:
        """What is neither a new member's nor an error is left out."""
        reasons = tuple(sorted(REASONS.intersection(seen.errors)))
        if seen.key == ApiKey.JOIN_GROUP or reasons:
            joined = seen.key == ApiKey.JOIN_GROUP and not seen.errors
            generation = seen.response.get("generation_id") if joined else None
            joins = seen.key in (ApiKey.JOIN_GROUP, ApiKey.CONSUMER_GROUP_HEARTBEAT)
            client = self.around.client(seen.connection)
            turn = Turn(client, seen.answered_ns, joined, generation, joins, reasons)
            self.note((str(seen.request.get("group_id")),), seen.row, seen.place, turn)


class RebalanceLoop(Maker[Turn]):
    """A group that joins and syncs again and again."""

    noter: ClassVar = GroupNoter
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

    def __init__(self, found: Telling, scope: Scope) -> None:
        super().__init__(found, scope)
        self._burst = Burst()
        self._generation: object = None
        self._reasons: Counter[str] = Counter()
        self._asked_for_id: Recent[str, list[bool]] = Recent(list)
        """Clients that were told to come back with the id that they were given."""

    def make(self, row: int, note: Turn) -> None:
        """A new generation counts, and so does a member that was sent back."""
        if note.joined:
            counts = note.generation != self._generation
            self._generation = note.generation
            self._asked_for_id.forget(note.client)
        else:
            counts = self._is_sent_back(note)
        self._reasons.update(error_name(code) for code in note.reasons)
        if counts and self._burst.is_on(note.time_ns, MANY, SPAN_NS):
            why = f" ({tally(self._reasons)})" if self._reasons else ""
            words = f"group {self.scope[0]} began anew {self._burst.count:,} times{why}"
            self.burst(self._burst, row, note.time_ns, words, "response.body")

    def _is_sent_back(self, note: Turn) -> bool:
        """Whether it is told to join again, other than once for its first id."""
        if not note.joins or ErrorCode.MEMBER_ID_REQUIRED not in note.reasons:
            return note.joins and bool(note.reasons)
        asked = self._asked_for_id.of(note.client)
        again = bool(asked)
        asked[:] = [True]
        return again
