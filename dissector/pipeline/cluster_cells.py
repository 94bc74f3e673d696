"""What an exchange says about a cluster, for the tables `topics` and `brokers`: from its bodies as JSON objects.

A topic that the request names and the response answers is one row.
"""

from typing import Any, Final, NamedTuple

from dissector.pipeline.partition_cells import objects
from dissector.protocol.embedded.topics import NO_TOPIC_ID
from dissector.protocol.schema.api_keys import ApiKey
from dissector.protocol.schema.errors import error_name

Body = dict[str, Any]
Cells = tuple[Any, ...]
"""Cells of `TOPIC_COLUMNS`, or of `BROKER_COLUMNS`."""
TOPIC_COLUMNS: Final = ("topic", "topic_id", "internal", "partition_count", "replication_factor", "error")
BROKER_COLUMNS: Final = ("broker", "host", "port", "rack", "controller", "cluster_id")
_UNSET: Final = -1
"""The count that leaves it to the broker."""


class _TopicLists(NamedTuple):
    """Names of the lists of topics, in request and response; empty where there is none."""

    request: str
    response: str


_LISTS: Final = {
    ApiKey.METADATA: _TopicLists("", "topics"),
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: _TopicLists("", "topics"),
    ApiKey.CREATE_TOPICS: _TopicLists("topics", "topics"),
    ApiKey.CREATE_PARTITIONS: _TopicLists("topics", "results"),
    ApiKey.DELETE_TOPICS: _TopicLists("topics", "responses"),
}
_IDS: Final = {ApiKey.METADATA: "node_id", ApiKey.DESCRIBE_CLUSTER: "broker_id"}
"""Fields with a broker's id."""
TOPIC_APIS: Final = frozenset(_LISTS)
BROKER_APIS: Final = frozenset(_IDS)
"""Keys of the APIs whose exchanges have rows."""


def topic_cells(api_key: int, request: Body | None, response: Body | None) -> list[Cells]:
    """Return the cells of each topic, in the order of the request, and then of the response."""
    names = _LISTS[ApiKey(api_key)]
    asked = {_key(each): each for each in _asked(request or {}, names.request)}
    answered = {_key(each): each for each in objects(response or {}, names.response)}
    return [_cells(asked.get(key, {}), answered.get(key, {})) for key in dict.fromkeys((*asked, *answered))]


def _asked(request: Body, name: str) -> list[Body]:
    """Return the topics in a request. Old versions of DeleteTopics list names."""
    return objects(request, name) or [{"name": each} for each in request.get("topic_names") or ()]


def _key(topic: Body) -> Any:
    """What a topic is called on both sides: by its id where it has no name."""
    return topic.get("name") or topic.get("topic_id")


def _cells(asked: Body, answered: Body) -> Cells:
    both = asked | answered
    topic_id, code = both.get("topic_id"), answered.get("error_code")
    partitions = objects(answered, "partitions")
    replicas = [len(each.get("replica_nodes") or ()) for each in partitions]
    return (
        both.get("name") or both.get("topic_id_decoded"), None if topic_id == NO_TOPIC_ID else topic_id,
        answered.get("is_internal"), len(partitions) or _count(asked, answered, "num_partitions", "count"),
        max(replicas, default=0) or _count(asked, answered, "replication_factor"), error_name(code) if code else None,
    )  # fmt: skip


def _count(asked: Body, answered: Body, *names: str) -> int | None:
    """Return the number that the broker gave, or else that it was asked for."""
    found = (side.get(name) for side in (answered, asked) for name in names)
    return next((each for each in found if each is not None and each != _UNSET), None)


def broker_cells(api_key: int, _request: Body | None, response: Body | None) -> list[Cells]:
    """Return the cells of each broker that a response lists."""
    body, name = response or {}, _IDS[ApiKey(api_key)]
    controller = body.get("controller_id")
    return [
        (
            each.get(name), each.get("host"), each.get("port"), each.get("rack"),
            None if controller is None else controller == each.get(name), body.get("cluster_id"),
        )
        for each in objects(body, "brokers")
    ]  # fmt: skip
