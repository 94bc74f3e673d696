"""What Fetch exchanges say of their partitions, in columns: those that requests of consumers name, beside what the
responses have of them.

Invariant: they are those that the decoded exchanges have (a property test). Exchanges that need a careful look are
decoded one by one.
"""

from typing import Final, NamedTuple, cast

import numpy as np

from dissector.bulk.body_columns import BodyColumns
from dissector.bulk.body_fields import BodyFields, OfBodies
from dissector.bulk.body_partitions import BodyPartitions, Lists, OfPartitions
from dissector.core.arrays import Bool, Int64
from dissector.core.columns import ValueNumbers
from dissector.findings.framework.decoded_exchange import ReadFrame, TopicName, elements, request_body, response_body
from dissector.findings.framework.examined_rows import ExaminedRows
from dissector.index.exchange_table import NO_FRAME
from dissector.index.indexer import Indexer
from dissector.protocol.kernel.shredding import numbered_rows
from dissector.protocol.message import Values
from dissector.protocol.schema.api_keys import ApiKey

_SENT: Final[dict[int, Lists]] = {ApiKey.FETCH: ("topics", "partitions")}
_RECEIVED: Final[dict[int, Lists]] = {ApiKey.FETCH: ("responses", "partitions")}
_OFFSET: Final = "fetch_offset"
_WATERMARK: Final = "high_watermark"
_REPLICA: Final = "replica_id"
"""Of a broker that fetches as a follower; negative, or not there, of a consumer."""
_REPLICA_STATE: Final = "replica_state"
"""The structure that has it from version 15 on (KIP-903)."""
_MAX_WAIT: Final = "max_wait_ms"


class PartitionColumns(NamedTuple):
    """Partitions that a request names and its response has, `(n,)`, in the order of the response."""

    at: Int64
    """The place of the exchange among those that were asked for, ascending."""
    topic_at: Int64
    """Position of the topic in the response."""
    partition_at: Int64
    """Position of the partition in the topic."""
    topic: Int64
    """The number of the topic's name."""
    partition: Int64
    offset: Int64
    """That the request reads from."""
    high_watermark: Int64

    def where(self, which: Bool | Int64) -> "PartitionColumns":
        """Return some of the partitions."""
        return PartitionColumns(*(column[which] for column in self))


class FetchedPartitions(NamedTuple):
    """The partitions of Fetch exchanges, and how long their responses may wait."""

    exchanges: ExaminedRows
    """`(e,)`."""
    max_wait_ms: OfBodies
    """Of each of them, where it could be read."""
    columns: PartitionColumns
    topics: list[str]
    """Names of topics, by number."""


class FetchedPartitionReader:
    """Reads the partitions of one capture."""

    def __init__(self, bodies: BodyColumns, indexer: Indexer, topic: TopicName) -> None:
        self._partitions = BodyPartitions(bodies)
        self._fields = BodyFields(bodies)
        self._read: ReadFrame = indexer.frames.read
        self._state = indexer.conversation_state
        self._topic = topic

    def of(self, exchanges: ExaminedRows) -> FetchedPartitions:
        """Return the partitions of Fetch exchanges. Only of those that name some is the response looked at."""
        texts, names = ValueNumbers[str](), ValueNumbers[str]()
        sent = self._of(exchanges.row, _SENT, _OFFSET, texts)
        asks = ~sent.is_read
        asks[sent.row] = True
        replicas = _REPLICA, f"{_REPLICA_STATE}.{_REPLICA}"
        alone = self._fields.numbers(exchanges.row, (*replicas, _MAX_WAIT), is_request=True)
        is_follower = np.any([alone[name].is_there & (alone[name].values >= 0) for name in replicas], axis=0)
        which = np.flatnonzero(asks & ~is_follower & (exchanges.response != NO_FRAME))
        received = self._of(exchanges.row[which], _RECEIVED, _WATERMARK, texts)
        is_read = np.zeros(len(asks), np.bool_)
        is_read[which] = sent.is_read[which] & received.is_read
        name = np.array([names.of(self._topic({"topic": text})) for text in texts.values], np.int64)
        found = _joined(sent, received, which, name)
        careful = [
            decoded
            for at in which[~is_read[which]].tolist()
            for decoded in self._decoded(at, exchanges, names)
        ]  # fmt: skip
        columns = np.array(careful, np.int64).reshape(-1, len(PartitionColumns._fields)).T
        whole = PartitionColumns(*np.concatenate([found.where(is_read[found.at]), columns], axis=1))
        whole = whole.where(np.argsort(whole.at, kind="stable"))
        return FetchedPartitions(exchanges, alone[_MAX_WAIT], whole, names.values)

    def _of(self, rows: Int64, lists: dict[int, Lists], field: str, texts: ValueNumbers[str]) -> OfPartitions:
        names = self._state.topic_names
        return self._partitions.of(rows, lists, (field,), (), names, texts, is_request=lists is _SENT)

    def _decoded(self, at: int, exchanges: ExaminedRows, names: ValueNumbers[str]) -> list[tuple[int, ...]]:
        """The partitions of an exchange that is decoded."""
        version = int(exchanges.version[at])
        request = request_body(ApiKey.FETCH, version, *self._read(int(exchanges.request[at])))
        response, _ = response_body(ApiKey.FETCH, version, *self._read(int(exchanges.response[at])))
        state = cast(Values, request.get(_REPLICA_STATE) or request)
        if cast(int, state.get(_REPLICA, -1)) >= 0:
            return []
        offsets = {
            (self._topic(topic), partition.get("partition")): partition.get(_OFFSET)
            for topic in elements(request, "topics")
            for partition in elements(topic, "partitions")
        }
        found = []
        for topic_at, topic in enumerate(elements(response, "responses")):
            name = self._topic(topic)
            for partition_at, each in enumerate(elements(topic, "partitions")):
                number = each.get("partition_index")
                values = number, offsets.get((name, number)), each.get(_WATERMARK)
                if all(isinstance(value, int) for value in values):
                    found.append((at, topic_at, partition_at, names.of(name), *cast(tuple[int, ...], values)))
        return found


def _joined(sent: OfPartitions, received: OfPartitions, which: Int64, name: Int64) -> PartitionColumns:
    """Return what is received with the offsets that are sent; of a partition that is sent twice the last one. `which`
    are the exchanges of the responses."""
    at, names = which[received.row], name[received.topic]
    if not len(at) or not len(sent.row):
        return PartitionColumns(*np.zeros((len(PartitionColumns._fields), 0), np.int64))
    columns = ((sent.row, at), (name[sent.topic], names), (sent.partition, received.partition))
    number, _ = numbered_rows(*(np.concatenate(each) for each in columns))
    asked, answered = number[: len(sent.row)], number[len(sent.row) :]
    offset, is_asked = np.zeros(len(number), np.int64), np.zeros(len(number), np.bool_)
    offset[asked], is_asked[asked] = sent.numbers[_OFFSET].values, True
    found = PartitionColumns(
        at, received.topic_at, received.partition_at, names, received.partition, offset[answered],
        received.numbers[_WATERMARK].values,
    )  # fmt: skip
    return found.where(is_asked[answered])
