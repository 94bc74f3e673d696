"""Where the messages are that show a behavior of the matrix: their APIs, and the request's field."""

from typing import Final, NamedTuple

VERSION: Final = " version"
"""The end of the names of versions: ``Fetch version``."""
VERSION_FIELD: Final = "header.request_api_version"


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


_FETCH: Final = ("Fetch",)
_PRODUCE: Final = ("Produce",)
_JOIN: Final = ("JoinGroup",)
PLACES: Final = {
    "software": BehaviorPlace(("ApiVersions",), "client_software_name"),
    "connections": BehaviorPlace(),
    "metadata requests": BehaviorPlace(("Metadata",), "topics"),
    "metadata total": BehaviorPlace(("Metadata",)),
    "unanswered requests": BehaviorPlace(condition="!(exists latency) && exists request.size"),
    "topic ids in requests": BehaviorPlace(("Produce", "Fetch", "Metadata", "OffsetCommit", "OffsetFetch")),
    "auto topic creation": BehaviorPlace(("Metadata",), "allow_auto_topic_creation"),
    "retries": BehaviorPlace(condition="error"),
    "acks": BehaviorPlace(_PRODUCE, "acks"),
    "idempotence": BehaviorPlace(("InitProducerId", "Produce")),
    "compression": BehaviorPlace(_PRODUCE, "topic_data.partition_data.records"),
    "batches": BehaviorPlace(_PRODUCE, "topic_data.partition_data.records"),
    "batch size": BehaviorPlace(_PRODUCE, "topic_data.partition_data.records"),
    "observed linger": BehaviorPlace(_PRODUCE, "topic_data.partition_data.records"),
    "produce timeout (ms)": BehaviorPlace(_PRODUCE, "timeout_ms"),
    "transaction timeout (ms)": BehaviorPlace(("InitProducerId",), "transaction_timeout_ms"),
    "fetch max wait (ms)": BehaviorPlace(_FETCH, "max_wait_ms"),
    "fetch min bytes": BehaviorPlace(_FETCH, "min_bytes"),
    "fetch max bytes": BehaviorPlace(_FETCH, "max_bytes"),
    "fetch partition max": BehaviorPlace(_FETCH, "topics.partitions.partition_max_bytes"),
    "fetch sessions": BehaviorPlace(_FETCH, "session_id"),
    "fetches": BehaviorPlace(_FETCH),
    "isolation level": BehaviorPlace(_FETCH, "isolation_level"),
    "assignors": BehaviorPlace(_JOIN, "protocols.name"),
    "session timeout (ms)": BehaviorPlace(_JOIN, "session_timeout_ms"),
    "rebalance timeout (ms)": BehaviorPlace(_JOIN, "rebalance_timeout_ms"),
    "heartbeats": BehaviorPlace(("Heartbeat", "ConsumerGroupHeartbeat")),
    "offset commits": BehaviorPlace(("OffsetCommit",)),
    "shutdown": BehaviorPlace(("LeaveGroup", "Fetch"), "session_epoch"),
}
"""By the name of a behavior."""


def place_of(behavior: str) -> BehaviorPlace | None:
    """Return where a behavior shows; None for a name that the matrix does not have."""
    if behavior.endswith(VERSION):
        return BehaviorPlace((behavior.removesuffix(VERSION),))
    return PLACES.get(behavior)
