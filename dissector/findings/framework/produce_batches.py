"""The batches of Produce requests as columns, by their headers, without decoding records.

Invariant: they are those that the decoded requests have (a property test). Requests that need a careful look are
decoded one by one.
"""

from collections.abc import Iterator
from typing import NamedTuple, cast

import numpy as np

from dissector.bulk.body_columns import BodyColumns
from dissector.bulk.single_batches import MAGIC, VALUES, SingleBatchColumns, SingleBatchReader
from dissector.core.arrays import Bool
from dissector.core.columns import ValueNumbers
from dissector.findings.framework.decoded_exchange import ReadFrame, TopicName, elements, request_body
from dissector.findings.framework.examined_rows import ExaminedRows
from dissector.index.indexer import Indexer
from dissector.protocol.message import Values
from dissector.protocol.records.batch import HEADER, HEADER_COLUMNS
from dissector.protocol.schema.api_keys import ApiKey


def path_of(positions: tuple[int, int]) -> str:
    """Return the field path of a batch, by the positions of its topic in the request and its partition in the topic."""
    return "request.body.topic_data[{}].partition_data[{}].records".format(*positions)


class ProduceBatches(NamedTuple):
    """The batches of Produce requests: one for each partition, as since KIP-98. Older message sets and damaged batches
    are omitted."""

    requests: ExaminedRows
    """`(r,)`."""
    is_read: Bool
    """Which requests can be read to their end, `(r,)`."""
    columns: SingleBatchColumns
    topics: list[str]
    """Names of topics, by number."""
    read: ReadFrame

    def path(self, batch: int) -> str:
        """Return the path of the `records` field of a batch."""
        return path_of((int(self.columns.topic_at[batch]), int(self.columns.partition_at[batch])))

    def records(self, batch: int) -> bytes:
        """Return the `records` field of a batch. Its request is decoded."""
        columns, at = self.columns, int(self.columns.at[batch])
        version, frame = int(self.requests.version[at]), int(self.requests.request[at])
        request = request_body(ApiKey.PRODUCE, version, *self.read(frame))
        topic = elements(request, "topic_data")[int(columns.topic_at[batch])]
        partition = elements(topic, "partition_data")[int(columns.partition_at[batch])]
        return cast(bytes, partition["records"])


class ProduceBatchReader:
    """Reads the batches of one capture."""

    def __init__(self, bodies: BodyColumns, indexer: Indexer, topic: TopicName) -> None:
        self._batches = SingleBatchReader(bodies)
        self._read: ReadFrame = indexer.frames.read
        self._state = indexer.conversation_state
        self._topic = topic

    def of(self, requests: ExaminedRows) -> ProduceBatches:
        """Return the batches of Produce requests, at least one."""
        texts = ValueNumbers[str]()
        is_read, found = self._batches.of(requests.row, self._state.topic_names, texts)
        topics = ValueNumbers[str]()
        numbers = np.array([topics.of(self._topic({"name": text})) for text in texts.values], np.int64)
        careful: list[tuple[int, ...]] = []
        for at in np.flatnonzero(~is_read).tolist():
            body = request_body(ApiKey.PRODUCE, int(requests.version[at]), *self._read(int(requests.request[at])))
            is_read[at] = bool(body)
            careful += self._decoded(at, body, topics)
        others = np.array(careful, np.int64).reshape(-1, len(SingleBatchColumns._fields)).T
        whole = found._replace(topic=numbers[found.topic]).where(found.records_count > 0)
        columns = SingleBatchColumns(*np.concatenate([whole, others], axis=1))
        columns = columns.where(np.argsort(columns.at, kind="stable"))
        return ProduceBatches(requests, is_read, columns, topics.values, self._read)

    def _decoded(self, at: int, request: Values, topics: ValueNumbers[str]) -> Iterator[tuple[int, ...]]:
        """The batches of a decoded request."""
        for topic_at, topic in enumerate(elements(request, "topic_data")):
            for partition_at, partition in enumerate(elements(topic, "partition_data")):
                records = partition["records"]
                if not isinstance(records, bytes) or len(records) < HEADER.size:
                    continue
                header = np.frombuffer(records, HEADER_COLUMNS, 1)[0]
                if header["magic"] == MAGIC and header["records_count"] > 0:
                    number = topics.of(self._topic(topic))
                    where = at, topic_at, partition_at, number, cast(int, partition["index"]), len(records)
                    yield *where, *(int(header[name]) for name in VALUES)
