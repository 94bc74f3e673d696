"""The faults that clients are run into, one at a time."""

from typing import Final, NamedTuple


class InjectedFault(NamedTuple):
    """One of them."""

    name: str
    """Of the recording's file."""
    title: str
    api: str
    action: str
    """With its triggers, as `--fault` takes them."""
    words: str
    """What it is like."""

    @property
    def rule(self) -> str:
        """As `--fault` takes it."""
        return f"api == {self.api}: {self.action}"


FAULTS: Final = (
    InjectedFault("leader-moved", "leader moved", "Produce", "error NOT_LEADER_OR_FOLLOWER, first 3",
                  "The broker says three times that it is no longer the leader of the partition."),
    InjectedFault("said-to-have-failed", "false failure", "Produce",
                  "error NOT_ENOUGH_REPLICAS_AFTER_APPEND acted, first 2",
                  "The records are in the log, but the answer is a retriable error."),
    InjectedFault("closed", "closed", "Produce", "close after, first 1",
                  "The broker gets the records, and the connection is closed before its answer is sent."),
    InjectedFault("dropped", "no answer", "Produce", "drop, first 1",
                  "The broker never gets the request, and the connection stays open."),
    InjectedFault("throttled", "throttled", "Produce", "throttle 1s, first 1",
                  "The answer says that a quota throttles the client for a second."),
    InjectedFault("fetch-leader-moved", "fetch: leader moved", "Fetch", "error NOT_LEADER_OR_FOLLOWER, first 2",
                  "The broker says twice that it is no longer the leader of the partitions."),
    InjectedFault("fetch-corrupt", "fetch: corrupt", "Fetch", "corrupt, first 1",
                  "The checksum of a fetched batch is wrong, once."),
    InjectedFault("coordinator-moved", "coordinator moved", "OffsetCommit", "error NOT_COORDINATOR, first 1",
                  "The broker says once that it is not the coordinator of the group."),
)  # fmt: skip
