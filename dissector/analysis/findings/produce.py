"""Batches of a Produce request, by their headers alone."""

from typing import Final, NamedTuple, cast

from dissector.protocol.message import Values
from dissector.protocol.records.batch import HEADER
from dissector.protocol.records.parts import MAGIC_AT

PRODUCE: Final = 0
MAGIC: Final = 2


class Sent(NamedTuple):
    """One batch, sent to a partition."""

    topic: Values
    """The structure that names it."""
    partition: int
    place: tuple[int, int]
    """Of the topic in the request, and of the partition in the topic."""
    codec: int
    records_count: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    records: bytes
    """The field that it is the whole of."""

    @property
    def path(self) -> str:
        """Where the field stands."""
        return "request.body.topic_data[{}].partition_data[{}].records".format(*self.place)


def sent(request: Values) -> list[Sent]:
    """The batches of a Produce request: one a partition, as the protocol has it since KIP-98. Older message sets, and
    what is damaged, are left out."""
    found: list[Sent] = []
    for at, topic in enumerate(cast(list[Values], request.get("topic_data") or ())):
        for number, partition in enumerate(cast(list[Values], topic.get("partition_data") or ())):
            records = partition["records"]
            if not isinstance(records, bytes) or len(records) < HEADER.size or records[MAGIC_AT] != MAGIC:
                continue
            head = HEADER.unpack_from(records)
            if head[-1] > 0:
                index, codec, place = cast(int, partition["index"]), head[5] & 7, (at, number)
                found.append(Sent(topic, index, place, codec, head[-1], head[-4], head[-3], head[-2], records))
    return found
