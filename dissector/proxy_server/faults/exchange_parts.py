"""Exchanges as far as they are there, for the filters of rules: of a head, of a request, of both messages.

They are not masked: what passes is the user's own, and nothing of it is shown.
"""

import time
from functools import cache
from typing import Final

from dissector.exchange.model import Exchange, ExchangeMessage, ExchangeRow
from dissector.index.exchange_table import KIND_NAMES, RowKind
from dissector.protocol.embedded.context import DecodingContext
from dissector.protocol.message import Decoded, Values
from dissector.protocol.message_layout import request_layout, response_layout
from dissector.protocol.schema.loader import api_name
from dissector.proxy_server.hooks import Connection, FrameHead

_KIND: Final = KIND_NAMES[RowKind.EXCHANGE]


def of_head(connection: Connection, head: FrameHead) -> Exchange:
    """Return the exchange of a request of which the head is there."""
    row = ExchangeRow(
        0, _KIND, time.time_ns(), connection.number, connection.client, connection.broker, api_name(head.api_key),
        head.api_version, head.correlation_id, head.client_id, head.size,
        None, None, None, None, None, None, None, "", None,
    )  # fmt: skip
    return Exchange(row, head.api_key, _not_there(), None)


def of_request(connection: Connection, head: FrameHead, frame: bytes, context: DecodingContext) -> Exchange:
    """Return the exchange of a request."""
    exchange = of_head(connection, head)
    layout = request_layout(head.api_key, head.api_version, frame)
    exchange.request = ExchangeMessage(exchange.fields.time_ns, len(frame), frame, len(frame), layout, context)
    return exchange


def with_response(exchange: Exchange, frame: bytes, context: DecodingContext) -> Exchange:
    """Return the exchange with its response."""
    row, key = exchange.fields, exchange.api_key
    assert key is not None
    layout = response_layout(key, row.version or 0, frame)
    response = ExchangeMessage(time.time_ns(), len(frame), frame, len(frame), layout, context)
    return Exchange(row._replace(response_size=len(frame)), key, exchange.request, response)


def set_body(message: ExchangeMessage, body: Values) -> None:
    """Let a message have another body, as that of an incremental Fetch with the partitions of its session."""
    found = message.decoded
    message._decoded = Decoded(found.header, body, found.rest, found.findings)


@cache
def _not_there() -> ExchangeMessage:
    """Return a request whose bytes are not there: only that there is one is known."""
    return ExchangeMessage(0, 0, b"", 0, request_layout(-1, 0), DecodingContext())
