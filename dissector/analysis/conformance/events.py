"""Requests and responses of a capture in the order of time, as rules see them.

Invariants:
  * a response comes after its request, and after all requests that were sent before it;
  * a body that could not be read to its end is empty: rules on its fields do not see it;
  * a response without a request comes in its place, and is no response to rules: its API is a guess.
"""

import heapq
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple, TypeVar, cast

import numpy as np

from dissector.core.arrays import Bool, Int64
from dissector.exchange.model import Exchange, ExchangeMessage
from dissector.exchange.row_findings import CLOSED
from dissector.index.index_columns import IndexColumns
from dissector.protocol.embedded.topics import RECORDS_FIELDS

Body = Mapping[str, Any]
Computed = TypeVar("Computed")
MOST_WAITING: Final = 100_000
"""Responses that wait for the requests before them; with more, the oldest go first."""
NOWHERE: Final = -1
"""The place of a message that was not captured."""


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

    @classmethod
    def of(cls, exchange: Exchange, *, is_request: bool) -> "MessageEvent":
        """One of the messages of an exchange, which it has."""
        message = exchange.request if is_request else exchange.response
        assert message is not None, "a message with a place was captured"
        return cls(exchange, message, is_request, exchange.fields.time_ns if is_request else message.time_ns)

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
        return self.is_request and self.exchange.response is None and self.exchange.has_finding(CLOSED)

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


class MessagePlaces(NamedTuple):
    """Where the messages of exchanges are in the order of time, `(e,)` each: from 0; `NOWHERE` for none."""

    request: Int64
    response: Int64

    @classmethod
    def of(cls, found: IndexColumns) -> "MessagePlaces":
        """Those of exchanges in the order of their requests."""
        has_request, has_response = found.request_size >= 0, found.response_size >= 0
        begin_ns = np.where(has_request, found.request_time_ns, found.response_time_ns)
        answered = np.flatnonzero(has_response)
        answered_ns = found.response_time_ns[answered]
        if (np.diff(begin_ns) >= 0).all():
            before = np.maximum(answered + 1, np.searchsorted(begin_ns, answered_ns))
            arrived, gone = np.bincount(answered, minlength=len(begin_ns)), np.bincount(before)[: len(begin_ns)]
            waiting = np.cumsum(arrived) - np.cumsum(np.pad(gone, (0, len(begin_ns) - len(gone))))
            if not len(waiting) or waiting.max() < MOST_WAITING:
                return cls._merged(has_request, answered, before, answered_ns)
        return cls._one_by_one(begin_ns, has_request, has_response, found.response_time_ns)

    @classmethod
    def _merged(cls, has_request: Bool, answered: Int64, before: Int64, answered_ns: Int64) -> "MessagePlaces":
        """Responses `answered`, each before the first exchange that begins after it."""
        places = cls(*np.full((2, len(has_request)), NOWHERE))
        asked = np.flatnonzero(has_request)
        order = np.lexsort((answered, answered_ns, before))
        responses = before[order]
        places.request[asked] = np.arange(len(asked)) + np.searchsorted(responses, asked, side="right")
        places.response[answered[order]] = np.arange(len(order)) + np.searchsorted(asked, responses)
        return places

    @classmethod
    def _one_by_one(cls, begin_ns: Int64, has_request: Bool, has_response: Bool, response_ns: Int64) -> "MessagePlaces":
        """The same where time goes back, or too many responses wait."""
        places = cls(*np.full((2, len(begin_ns)), NOWHERE))
        waiting: list[tuple[int, int]] = []
        place = 0
        columns = (each.tolist() for each in (begin_ns, has_request, has_response, response_ns))
        for at, (begin, is_asked, is_answered, answered) in enumerate(zip(*columns, strict=True)):
            while waiting and (waiting[0][0] <= begin or len(waiting) > MOST_WAITING):
                places.response[heapq.heappop(waiting)[1]] = place
                place += 1
            if is_asked:
                places.request[at] = place
                place += 1
            if is_answered:
                heapq.heappush(waiting, (answered, at))
        while waiting:
            places.response[heapq.heappop(waiting)[1]] = place
            place += 1
        return places


class WantedMessages(NamedTuple):
    """Which messages of an exchange are wanted, and the places of both."""

    request: bool
    response: bool
    request_at: int
    response_at: int


def events(exchanges: Iterable[tuple[Exchange, WantedMessages]]) -> Iterator[tuple[int, MessageEvent]]:
    """Yield the wanted messages of exchanges, which come in the order of requests, and their places, ascending."""
    waiting: list[tuple[int, Exchange]] = []
    for exchange, wanted in exchanges:
        while waiting and waiting[0][0] < wanted.request_at:
            place, other = heapq.heappop(waiting)
            yield place, MessageEvent.of(other, is_request=False)
        if wanted.request:
            yield wanted.request_at, MessageEvent.of(exchange, is_request=True)
        if wanted.response:
            heapq.heappush(waiting, (wanted.response_at, exchange))
    while waiting:
        place, other = heapq.heappop(waiting)
        yield place, MessageEvent.of(other, is_request=False)
