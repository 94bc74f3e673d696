"""Rebuilds entries of Kafka's own files from rows: their bytes, and their fields in the order of the file.

Bytes are those that were kept, or are encoded again. How records are decoded depends on the topic: that of the file's
folder, or the metadata topic, which a log also shows by its first record. So both are tried, and compared with the row.
"""

from typing import Any, Final

import orjson

from dissector.core.json_text import dumps
from dissector.exchange.model import ExchangeMessage, ExchangeRow
from dissector.protocol.embedded.topics import CLUSTER_METADATA
from dissector.protocol.records.from_json import records_bytes
from dissector.protocol.wire import EncodeError
from dissector.storage import indexes, segment

INDEX: Final = "index"
Body = dict[str, Any]


def entry_of_row(row: ExchangeRow, body: Body, kept: bytes | None) -> ExchangeMessage | None:
    """Return the entry of a row with the JSON body `body`; None if its bytes were not `kept` and can't be encoded."""
    if row.kind == INDEX:
        found = indexes.entry_of(body)
        return None if found is None else found.message
    data = kept or _written(body)
    if data is None or len(data) != row.request_size:
        return None
    read = (_read(data, body, topic) for topic in (segment.partition_of(row.server)[0], CLUSTER_METADATA))
    return next((each for each in read if kept or orjson.loads(dumps(each.body)) == body), None)


def _read(data: bytes, body: Body, topic: str) -> ExchangeMessage:
    return segment.entry_of(data, body["position"], topic).message


def _written(body: Body) -> bytes | None:
    try:
        return records_bytes({"batches": [body]})
    except EncodeError:
        return None
