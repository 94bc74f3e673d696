"""Requests and responses of a capture in the order of time, as rules see them.

Invariants:
  * a response comes after its request, and after all requests that were sent before it;
  * a body that could not be read to its end is empty: rules on its fields do not see it;
  * a response without a request comes in its place, and is no response to rules: its API is a guess.
"""

import heapq
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, TypeVar, cast

from dissector.exchange.model import Exchange, ExchangeMessage
from dissector.exchange.row_findings import CLOSED
from dissector.protocol.embedded.topics import RECORDS_FIELDS

Body = Mapping[str, Any]
Computed = TypeVar("Computed")
MOST_WAITING: Final = 100_000
"""Responses that wait for the requests before them; with more, the oldest go first."""


class MessageEvent:
    """A request or a response."""

    __slots__ = (
        "_body", "_computed", "_request", "api", "connection", "exchange", "is_request", "message", "number", "time_ns",
        "version",
    )  # fmt: skip

    def __init__(self, exchange: Exchange, message: ExchangeMessage, is_request: bool, time_ns: int) -> None:
        row = exchange.fields
        self.exchange = exchange
        self.message = message
        self.is_request = is_request
        self.time_ns = time_ns
        self.api = row.api
        self.version = -1 if row.version is None else row.version
        self.connection = row.connection
        self.number = row.number
        """The number of the exchange, from 1."""
        self._body: Body | None = None
        self._request: Body | None = None
        self._computed: dict[Callable[[MessageEvent], object], object] = {}

    def once(self, compute: "Callable[[MessageEvent], Computed]") -> Computed:
        """What a function gives for this message: computed for the first rule that asks, kept for the others."""
        if compute not in self._computed:
            self._computed[compute] = compute(self)
        return cast(Computed, self._computed[compute])

    @property
    def body(self) -> Body:
        """The body, embedded formats decoded beside their bytes, but for records; empty if it could not be read to its
        end."""
        if self._body is None:
            message = self.message
            has_records = message.layout.body in RECORDS_FIELDS
            self._body = message.decoded_body if message.body and not has_records else message.body
        return self._body

    @property
    def request(self) -> Body:
        """Of a response, the body of its request."""
        if self._request is None:
            request = self.exchange.request
            self._request = {} if request is None else request.body
        return self._request

    @property
    def error_code(self) -> int | None:
        """The error of a response as a whole; None if its body has no such field."""
        return self.body.get("error_code")

    @property
    def is_orphan(self) -> bool:
        """Whether it is a response without a request in the capture."""
        return self.exchange.request is None

    @property
    def is_closed(self) -> bool:
        """Whether it is a request whose connection was closed before the response."""
        return self.is_request and self.exchange.response is None and CLOSED in self.exchange.row_findings

    @property
    def is_read(self) -> bool:
        """Whether the body could be read, and of a response that of its request, too."""
        request = self.exchange.request
        return _is_read(self.message) and (self.is_request or request is None or _is_read(request))

    def topic(self, element: Body) -> str:
        """Return the name of a topic by the name or the id that an element of an array has."""
        for name in ("name", "topic"):
            if element.get(name):
                return str(element[name])
        topic_id = str(element.get("topic_id", ""))
        return self.message.context.topic_names.get(topic_id, topic_id)


def _is_read(message: ExchangeMessage) -> bool:
    return bool(message.body) or not (message.layout.body is None or message.decoded.findings)


def events(exchanges: Iterable[Exchange]) -> Iterator[MessageEvent]:
    """Yield the messages of exchanges, which come in the order of their requests."""
    waiting: list[tuple[int, int, MessageEvent]] = []
    for exchange in exchanges:
        row = exchange.fields
        if row.kind != "exchange":
            continue
        while waiting and (waiting[0][0] <= row.time_ns or len(waiting) > MOST_WAITING):
            yield heapq.heappop(waiting)[2]
        if exchange.request is not None:
            yield MessageEvent(exchange, exchange.request, True, row.time_ns)
        if exchange.response is not None:
            time_ns = exchange.response.time_ns
            heapq.heappush(waiting, (time_ns, row.number, MessageEvent(exchange, exchange.response, False, time_ns)))
    while waiting:
        yield heapq.heappop(waiting)[2]
