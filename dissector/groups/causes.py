"""Why a group rebalances: the causes that are distinguished, what each is called, and which setting is behind it.

A cause is named only if what contradicts it was looked for (`deciding.py`, `classic_protocol.py`, `epoch_protocol.py`);
one that fits as well as another is not `sure`, and its words say "may".
"""

from dataclasses import dataclass
from enum import Enum
from typing import Final, NamedTuple


class CauseKind(Enum):
    """The value is the name in JSON."""

    POLL_TIMEOUT = "poll-timeout"
    SESSION_TIMEOUT = "session-timeout"
    CRASH = "crash"
    STATIC_AWAY = "static-away"
    REBALANCE_TIMEOUT = "rebalance-timeout"
    CLOSED = "closed"
    LEFT = "left"
    UNSUBSCRIBED = "unsubscribed"
    ADMIN = "removed-by-admin"
    GONE = "gone"
    DROPPED = "dropped"
    JOINED = "joined"
    RETURNED = "returned"
    REPLACED = "instance-returned"
    SUBSCRIPTION = "subscription"
    METADATA = "metadata"
    CONFIG = "config"
    REQUESTED = "requested"
    REVOKED = "second-step"
    REFUSED = "refused"
    REJOINED = "rejoined"
    UNSEEN = "unseen"
    UNSEEN_EPOCH = "unseen-epoch"


class CauseWords(NamedTuple):
    """How a cause is worded: after the member's name, and what to do about it."""

    verb: str
    """``worker-a VERB``."""
    because: str = ""
    """Why; the reason on the wire takes its place."""
    advice: str = ""
    names_reason: bool = True
    """Whether a reason on the wire is quoted."""
    of_several: str = ""
    """`because` of several members, where it is not the same."""


WORDS: Final = {
    CauseKind.POLL_TIMEOUT: CauseWords(
        "left", "its application did not call poll within max.poll.interval.ms",
        "process less per poll (max.poll.records) or allow more time (max.poll.interval.ms)",
        of_several="their applications did not call poll within max.poll.interval.ms",
    ),
    CauseKind.SESSION_TIMEOUT: CauseWords(
        "was removed", "no heartbeat came within its session timeout",
        "look at pauses of that process (garbage collection, CPU limits, a stopped container) and at its network; "
        "session.timeout.ms allows more time",
        of_several="no heartbeat came within their session timeouts",
    ),
    CauseKind.CRASH: CauseWords(
        "was removed", "its connection had closed without a LeaveGroup, and no heartbeat came within its session",
        "find out what ended that process (a kill, lack of memory) or cut its network; a clean shutdown closes the "
        "consumer",
        of_several="their connections had closed without a LeaveGroup, and no heartbeat came within their sessions",
    ),
    CauseKind.STATIC_AWAY: CauseWords(
        "was removed", "it has a group.instance.id, and was away for longer than its session",
        "set session.timeout.ms to more than a restart takes",
        of_several="they have group.instance.ids, and were away for longer than their sessions",
    ),
    CauseKind.REBALANCE_TIMEOUT: CauseWords(
        "was removed", "it did not rejoin within the rebalance timeout",
        "that member polls too rarely: process less per poll (max.poll.records), or allow more time "
        "(max.poll.interval.ms)",
        of_several="they did not rejoin within the rebalance timeout",
    ),
    CauseKind.CLOSED: CauseWords(
        "left", "its consumer was closed",
        "with group.instance.id, and session.timeout.ms longer than a restart, restarts cause no rebalance",
        of_several="their consumers were closed",
    ),
    CauseKind.LEFT: CauseWords(
        "left", "its consumer was closed, or its application may have called poll too late",
        "check its log for whether it was closed or exceeded max.poll.interval.ms",
        of_several="their consumers were closed, or their applications may have called poll too late",
    ),
    CauseKind.UNSUBSCRIBED: CauseWords(
        "left", "its application unsubscribed", of_several="their applications unsubscribed"
    ),
    CauseKind.ADMIN: CauseWords("was removed by an admin client"),
    CauseKind.GONE: CauseWords(
        "is no longer in the group", "it left or was removed: its own exchanges are not in this capture",
        "capture at the broker, or at that member",
        of_several="they left or were removed: their own exchanges are not in this capture",
    ),
    CauseKind.DROPPED: CauseWords(
        "is no longer in the group", "the capture does not show why", "check the coordinator's log",
    ),
    CauseKind.JOINED: CauseWords("joined", names_reason=False),
    CauseKind.RETURNED: CauseWords("came back", names_reason=False),
    CauseKind.REPLACED: CauseWords("came back with its instance id", names_reason=False),
    CauseKind.SUBSCRIPTION: CauseWords(
        "changed its subscription", "", "call subscribe once; see which topics a pattern matches"
    ),
    CauseKind.METADATA: CauseWords("requested it as leader", "the metadata of its topics changed"),
    CauseKind.CONFIG: CauseWords("requested it", "its connectors or tasks changed"),
    CauseKind.REQUESTED: CauseWords("requested it"),
    CauseKind.REVOKED: CauseWords("rejoined after it gave up partitions", "the second step of a cooperative rebalance",
                                  names_reason=False),
    CauseKind.REFUSED: CauseWords("was refused"),
    CauseKind.REJOINED: CauseWords("rejoined", "the capture does not show why"),
    CauseKind.UNSEEN: CauseWords(
        "joined, left or was removed", "it is not in this capture",
        "capture at the broker, or at the other members",
    ),
    CauseKind.UNSEEN_EPOCH: CauseWords(
        "joined, left or was removed, or partitions of the group's topics changed",
        "no member in this capture shows a change",
    ),
}  # fmt: skip

DEPARTURES: Final = frozenset((
    CauseKind.POLL_TIMEOUT, CauseKind.SESSION_TIMEOUT, CauseKind.CRASH, CauseKind.STATIC_AWAY,
    CauseKind.REBALANCE_TIMEOUT, CauseKind.CLOSED,
    CauseKind.LEFT, CauseKind.UNSUBSCRIBED, CauseKind.ADMIN, CauseKind.GONE, CauseKind.DROPPED,
))  # fmt: skip
ARRIVALS: Final = frozenset((CauseKind.JOINED, CauseKind.RETURNED))
OTHER_MEMBER: Final = "another member"
"""The subject of what a member that is not in the capture did."""

_LEAVE_REASONS: Final = (
    ("poll timeout", CauseKind.POLL_TIMEOUT), ("max.poll.interval", CauseKind.POLL_TIMEOUT),
    ("max poll interval", CauseKind.POLL_TIMEOUT),
    ("unsubscribed", CauseKind.UNSUBSCRIBED), ("removed by an admin", CauseKind.ADMIN),
    ("closed", CauseKind.CLOSED), ("closing", CauseKind.CLOSED), ("shutdown", CauseKind.CLOSED),
    ("shutting down", CauseKind.CLOSED),
)  # fmt: skip
"""What LeaveGroup says (KIP-800), by a part of it in lower case: the clients of Apache, and others that followed."""
_JOIN_REASONS: Final = (
    ("need to re-join with the given member-id", None), ("group is already rebalancing", None),
    ("rebalance failed", None), ("encountered ", None), ("need to revoke partitions", CauseKind.REVOKED),
    ("cached metadata has changed", CauseKind.METADATA), ("subscription has changed", CauseKind.SUBSCRIPTION),
)  # fmt: skip
"""What JoinGroup says; None for a member that only follows."""


def leave_kind(reason: str) -> CauseKind | None:
    """Return what a reason of LeaveGroup means; None for none or an unknown one."""
    return next((kind for part, kind in _LEAVE_REASONS if part in reason.lower()), None)


def is_follower(reason: str) -> bool:
    """Whether a member with this reason of JoinGroup only does what the coordinator wants."""
    return any(part in reason.lower() for part, kind in _JOIN_REASONS if kind is None)


def join_kind(reason: str) -> CauseKind | None:
    """Return what a reason of JoinGroup means; None for none, REQUESTED for what an application says."""
    known = next((kind for part, kind in _JOIN_REASONS if part in reason.lower()), CauseKind.REQUESTED)
    return known if reason else None


_INFERRED: Final = frozenset(
    (CauseKind.POLL_TIMEOUT, CauseKind.UNSUBSCRIBED, CauseKind.SESSION_TIMEOUT, CauseKind.CONFIG)
)


def seemingly(kind: CauseKind, *, sure: bool) -> str:
    """Return what is added to a cause that was inferred from what came later."""
    return "" if sure or kind not in _INFERRED else ", apparently"


@dataclass(frozen=True, slots=True)
class RebalanceCause:
    """Why a generation or epoch began."""

    kind: CauseKind
    member: str
    """The name of the member that it is about."""
    reason: str = ""
    """On the wire; empty if there is none."""
    sure: bool = True
    details: str = ""
    """What else the capture shows of it: how long, how late."""
    after: CauseKind | None = None
    """Of a member that came back: how it had gone."""

    @property
    def words(self) -> str:
        """The cause as a clause: ``worker-a left: consumer poll timeout has expired``."""
        known = WORDS[self.kind]
        because = self.reason if self.reason and known.names_reason else known.because
        because = because.rstrip(". ") + seemingly(self.kind, sure=self.sure)
        why = f": {because}" if because else ""
        return f"{self.member} {known.verb}{why}" + (f" ({self.details})" if self.details else "")
