"""Requests and responses of a capture in the order of time, as rules see them.

Invariants:
  * a response comes after its request, and after all requests that were sent before it;
  * a body that could not be read to its end is empty: rules on its fields do not see it.
"""

import heapq
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from dissector.exchange.model import Exchange, ExchangeMessage
from dissector.protocol.embedded.topics import RECORDS_FIELDS

Body = Mapping[str, Any]
MOST_WAITING: Final = 100_000
"""Responses that wait for the requests before them; with more, the oldest go first."""


@dataclass
class MessageEvent:
    """A request or a response."""

    exchange: Exchange
    message: ExchangeMessage
    is_request: bool
    time_ns: int

    @cached_property
    def api(self) -> str:
        return self.exchange.fields.api

    @cached_property
    def version(self) -> int:
        version = self.exchange.fields.version
        return -1 if version is None else version

    @cached_property
    def connection(self) -> int:
        return self.exchange.fields.connection

    @cached_property
    def number(self) -> int:
        """The number of the exchange, from 1."""
        return self.exchange.fields.number

    @cached_property
    def body(self) -> Body:
        """The body, embedded formats decoded beside their bytes, but for records; empty if it could not be read to its
        end."""
        message = self.message
        if not message.body:
            return {}
        return message.body if message.layout.body in RECORDS_FIELDS else message.decoded_body

    @cached_property
    def request(self) -> Body:
        """Of a response, the body of its request."""
        request = self.exchange.request
        return request.body if request is not None else {}

    @property
    def error_code(self) -> int | None:
        """The error of a response as a whole; None if its body has no such field."""
        return self.body.get("error_code")

    @property
    def is_read(self) -> bool:
        """Whether the body has been read to its end, with nothing behind it."""
        return self.message.layout.body is not None and not self.message.decoded.findings

    def topic(self, element: Body) -> str:
        """Return the name of a topic by the name or the id that an element of an array has."""
        for name in ("name", "topic"):
            if element.get(name):
                return str(element[name])
        topic_id = str(element.get("topic_id", ""))
        return self.message.context.topic_names.get(topic_id, topic_id)


def events(exchanges: Iterable[Exchange]) -> Iterator[MessageEvent]:
    """Yield the messages of exchanges, which come in the order of their requests."""
    waiting: list[tuple[int, int, MessageEvent]] = []
    for exchange in exchanges:
        row = exchange.fields
        if row.kind != "exchange" or exchange.request is None:
            continue
        while waiting and (waiting[0][0] <= row.time_ns or len(waiting) > MOST_WAITING):
            yield heapq.heappop(waiting)[2]
        yield MessageEvent(exchange, exchange.request, True, row.time_ns)
        if exchange.response is not None:
            time_ns = exchange.response.time_ns
            heapq.heappush(waiting, (time_ns, row.number, MessageEvent(exchange, exchange.response, False, time_ns)))
    while waiting:
        yield heapq.heappop(waiting)[2]
