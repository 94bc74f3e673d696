"""What an exchange says about partitions of topics, for the table `partitions`: from its bodies as JSON objects.

A partition that the request names and the response answers is one row. Either alone gives a row, too: a fetch session
leaves out of its requests what did not change (KIP-227), and of its responses what has nothing new.
"""

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from dissector.bulk.body_partitions import NUMBERS, Lists
from dissector.protocol.schema.api_keys import ApiKey
from dissector.protocol.schema.errors import error_name

Body = dict[str, Any]
PartitionCells = tuple[Any, ...]
"""Cells of `COLUMNS`."""
COLUMNS: Final = (
    "topic", "partition", "group_id", "acks", "transactional_id", "isolation_level", "offset", "high_watermark",
    "last_stable_offset", "log_start_offset", "leader", "leader_epoch", "records_size", "error",
)  # fmt: skip
_NOTHING: Final[Body] = {}
SENT_OFFSETS: Final = ("committed_offset", "fetch_offset")
RECEIVED_OFFSETS: Final = ("committed_offset", "offset", "base_offset")
ISOLATION: Final[dict[Any, str]] = {0: "read_uncommitted", 1: "read_committed"}


class _Sides(NamedTuple):
    """The lists of a request and of its response; names are empty where there are none."""

    request: Lists
    response: Lists


_SAME: Final = _Sides(("topics", "partitions"), ("topics", "partitions"))
LISTS: Final = {
    ApiKey.PRODUCE: _Sides(("topic_data", "partition_data"), ("responses", "partition_responses")),
    ApiKey.FETCH: _Sides(("topics", "partitions"), ("responses", "partitions")),
    ApiKey.LIST_OFFSETS: _SAME,
    ApiKey.METADATA: _Sides(("", ""), ("topics", "partitions")),
    ApiKey.OFFSET_COMMIT: _SAME,
    ApiKey.TXN_OFFSET_COMMIT: _SAME,
    ApiKey.OFFSET_FETCH: _Sides(("topics", "partition_indexes"), ("topics", "partitions")),
}
APIS: Final = frozenset(LISTS)
"""Keys of the APIs whose exchanges have rows."""


def partition_cells(api_key: int, request: Body | None, response: Body | None) -> list[PartitionCells]:
    """Return the cells of each partition, in the order of the request, and then of the response."""
    names, request, response = LISTS[ApiKey(api_key)], request or {}, response or {}
    if "groups" in request or "groups" in response:
        groups = _by_group(request, response)
        return [row for each, asked, answered in groups for row in _rows(names, each, request, asked, answered)]
    return _rows(names, request.get("group_id"), request, request, response)


def _rows(names: _Sides, group_id: str | None, request: Body, asked: Body, answered: Body) -> list[PartitionCells]:
    """Return the cells of the partitions in what is asked and answered about a group, or about all."""
    of = (
        group_id, request.get("acks"), request.get("transactional_id"), ISOLATION.get(request.get("isolation_level")),
    )  # fmt: skip
    answers = dict(_partitions(answered, names.response))
    found = [(*key, *of, *_values(sent, answers.pop(key, _NOTHING))) for key, sent in _partitions(asked, names.request)]
    return found + [(*key, *of, *_values(_NOTHING, received)) for key, received in answers.items()]


def _by_group(request: Body, response: Body) -> Iterator[tuple[str | None, Body, Body]]:
    """Yield the groups of an OffsetFetch of many (version 8 and newer), each with what is about it."""
    asked, answered = ({each.get("group_id"): each for each in objects(body, "groups")} for body in (request, response))
    for group in dict.fromkeys((*asked, *answered)):
        yield group, asked.get(group, _NOTHING), answered.get(group, _NOTHING)


def _partitions(body: Body, names: Lists) -> list[tuple[tuple[str | None, int], Body]]:
    """Return each partition of a body by topic and number. A topic is its name, or its id where no name is known."""
    topics, partitions = names
    found: list[tuple[tuple[str | None, int], Body]] = []
    for topic in body.get(topics) or ():
        name = topic.get("name") or topic.get("topic") or topic.get("topic_id_decoded") or topic.get("topic_id")
        for each in topic.get(partitions) or ():
            if isinstance(each, int):
                found.append(((name, each), _NOTHING))
                continue
            for number in NUMBERS:
                if number in each:
                    found.append(((name, each[number]), each))
                    break
    return found


def objects(body: Body, name: str) -> list[Body]:
    """Return the objects in a list of a body, which damage may have cut."""
    return body.get(name) or []


def _values(sent: Body, received: Body) -> tuple[Any, ...]:
    """Return the cells from `offset` on, of what is asked and answered about a partition."""
    get, code = received.get, received.get("error_code")
    records = sent.get("records") or get("records")
    return (
        _offset(sent, received), get("high_watermark"), get("last_stable_offset"), get("log_start_offset"),
        get("leader_id"), get("leader_epoch", get("committed_leader_epoch")), records and records.get("size"),
        error_name(code) if code else None,
    )  # fmt: skip


def _offset(sent: Body, received: Body) -> Any:
    """Return the offset that is committed or asked for, or else found or given to records."""
    for name in SENT_OFFSETS:
        if name in sent:
            return sent[name]
    for name in RECEIVED_OFFSETS:
        if name in received:
            return received[name]
    return None
