"""Where the records of a Produce went: a request counts offsets from 0, the response says what the first record got."""

from collections.abc import Iterator, Mapping
from typing import Any

from dissector.exchange.model import Exchange
from dissector.protocol.schema.api_keys import ApiKey

Places = Mapping[tuple[int, int], int]
"""The offset of the first record, by the places of topic and partition in the request."""


def produced_offsets(exchange: Exchange) -> dict[tuple[int, int], int]:
    """Return the offsets that the response gives to what the request produced; nothing for partitions with an error,
    without a response, and where none was kept (-1, as for a batch that was there already)."""
    given = _given(exchange)
    if not given or exchange.request is None:
        return {}
    found = _partitions(exchange.request.body, "topic_data", "partition_data")
    places = ((at, place, given.get((topic, each.get("index")))) for at, topic, place, each in found)
    return {(at, place): base for at, place, base in places if base is not None}


def produced_offset(exchange: Exchange, topic: str, partition: int | None, offset: int) -> int | None:
    """Return the offset in the log of a record of a Produce, whose own counts in its batch; None where that is not
    known. `topic` is its name, or its id where no name is known."""
    names = exchange.request.context.topic_names if exchange.request is not None else {}
    for (given, number), base in _given(exchange).items():
        if number == partition and names.get(given, given) == topic:
            return base + offset
    return None


def _given(exchange: Exchange) -> dict[tuple[str, int | None], int]:
    """The offsets of the first records, by topic (name or id) and partition."""
    if exchange.api_key != ApiKey.PRODUCE or exchange.response is None:
        return {}
    return {
        (topic, partition.get("index")): base
        for _, topic, _, partition in _partitions(exchange.response.body, "responses", "partition_responses")
        if partition.get("error_code") == 0 and isinstance(base := partition.get("base_offset"), int) and base >= 0
    }


def _partitions(body: Mapping[str, Any], topics: str, partitions: str) -> Iterator[tuple[int, str, int, Any]]:
    """Yield the place and name (or id) of a topic, the place and the fields of a partition; of a message that is not
    whole those that are there."""
    for at, topic in enumerate(body.get(topics) or ()):
        for place, partition in enumerate(topic.get(partitions) or ()):
            yield at, str(topic.get("name") or topic.get("topic_id")), place, partition
