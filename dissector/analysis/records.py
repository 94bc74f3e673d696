"""The records that an exchange carries, or an entry of a log: batch by batch, with what each says of its records.

Walks bodies as JSON has them (`Message.decoded_body`), so that nothing is decompressed for a second time. Where records
stand in a message, the schema's `records` fields tell (`RECORDS_FIELDS`).

Invariants:
  * records come in the order of the wire, those of control batches among them;
  * of a batch that can't be read there is none: its body says why.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from dissector.protocol.embedded.topics import RECORDS_FIELDS
from dissector.protocol.embedded.values import topic_of
from dissector.session.exchange import Message
from dissector.storage.segment import partition_of

NO_SEQUENCE: Final = -1
NO_PRODUCER: Final = -1
"""The id and the epoch of a producer that is not idempotent (KIP-98)."""
_SEQUENCES: Final = 1 << 31
"""Behind the last of which they begin again at 0."""
Body = Mapping[str, Any]


class Carried(NamedTuple):
    """Records that stand together: those of a batch, or a message of before 0.11, which has no producer."""

    topic: str
    """Its name, or its id where nothing tells the name."""
    partition: int | None
    records: Sequence[Body]
    """As JSON has them. A message has no headers; one of magic 0 has no timestamp either."""
    base_offset: int
    producer_id: int = NO_PRODUCER
    producer_epoch: int = NO_PRODUCER
    base_sequence: int = NO_SEQUENCE
    codec: str = "none"
    """Of the batch, or of the wrapper."""
    control: bool = False

    @property
    def sequences(self) -> list[int]:
        """Those of its records: the first one's, and their places behind it."""
        first = self.base_sequence
        if first < 0:
            return [NO_SEQUENCE] * len(self.records)
        return [(first + record["offset"] - self.base_offset) % _SEQUENCES for record in self.records]


class _Log(NamedTuple):
    topic: str
    partition: int | None


def carries(message: Message) -> bool:
    """Whether a message has a field for records."""
    return message.shape.body in RECORDS_FIELDS


def of_message(message: Message, body: Body) -> Iterator[Carried]:
    """The records in the body of a message."""
    if message.shape.body not in RECORDS_FIELDS:
        return
    topics, partitions, field = RECORDS_FIELDS[message.shape.body].split(".")
    for topic in body.get(topics) or ():
        name = topic_of(topic, message.context) or str(topic.get("topic_id"))
        for partition in topic.get(partitions) or ():
            log = _Log(name, partition.get("partition_index", partition.get("index")))
            for batch in (partition.get(field) or {}).get("batches", ()):
                yield from _of_batch(batch, log)


def of_entry(file: str, body: Body) -> Iterator[Carried]:
    """The records of an entry of a log segment, whose folder says which log it is."""
    yield from _of_batch(body, _Log(*partition_of(file)))


def _of_batch(batch: Body, log: _Log) -> Iterator[Carried]:
    """A batch of magic 2, a message of before it, or a wrapper of such messages."""
    if batch.get("magic") != 2:
        yield from _of_messages(batch, log, batch.get("compression", "none"))
    elif batch["records"]:
        yield Carried(
            *log, batch["records"], batch["base_offset"], batch["producer_id"], batch["producer_epoch"],
            batch["base_sequence"], batch["compression"], batch["control"],
        )  # fmt: skip


def _of_messages(message: Body, log: _Log, codec: str) -> Iterator[Carried]:
    if "messages" in message:
        for inner in message["messages"] or ():
            yield from _of_messages(inner, log, codec)
    elif "value" in message:
        yield Carried(*log, [message], message["offset"], codec=codec)
