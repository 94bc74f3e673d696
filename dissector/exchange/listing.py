"""What the index says of many rows at once, by name, without decoding a frame: what `show --fields` prints.

Names are those of the JSON object of an exchange, paths with dots where it has objects in objects.

Invariant: a column has what the facts of each exchange say: a property test. The few rows of which the index alone
can't tell (responses without a request, connections of another protocol) are looked at one by one.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from dissector.core.arrays import Bool, Int64
from dissector.exchange.decoder import KIND_NAMES, ExchangeDecoder, api_name
from dissector.exchange.model import UNKNOWN_API, Exchange, ExchangeRow
from dissector.index.exchange_table import NO_FRAME, RowKind
from dissector.index.indexer import Indexer
from dissector.protocol.schema.loader import apis

Value = str | int | None
_EXCHANGE: Final = KIND_NAMES[RowKind.EXCHANGE]


def _of_exchange(value: Callable[[ExchangeRow], Value]) -> Callable[[Exchange], Value]:
    """A fact that other kinds of rows have not."""
    return lambda exchange: value(exchange.facts) if exchange.facts.kind == _EXCHANGE else None


FACTS: Final[dict[str, Callable[[Exchange], Value]]] = {
    "kind": lambda exchange: exchange.facts.kind,
    "number": lambda exchange: exchange.facts.number,
    "connection": lambda exchange: exchange.facts.connection,
    "client": lambda exchange: exchange.facts.client,
    "server": lambda exchange: exchange.facts.server,
    "time_ns": lambda exchange: exchange.facts.time_ns,
    "api_key": lambda exchange: exchange.api_key,
    "api": _of_exchange(lambda facts: None if facts.api == UNKNOWN_API else facts.api),
    "api_version": _of_exchange(lambda facts: facts.version),
    "correlation_id": _of_exchange(lambda facts: facts.correlation_id),
    "client_id": _of_exchange(lambda facts: facts.client_id),
    "latency_ns": _of_exchange(lambda facts: facts.latency_ns),
    "request.time_ns": lambda exchange: None if exchange.facts.request_size is None else exchange.facts.time_ns,
    "request.size": lambda exchange: exchange.facts.request_size,
    "response.time_ns": lambda exchange: _answered_ns(exchange.facts),
    "response.size": lambda exchange: exchange.facts.response_size,
}
"""What one exchange says by each name."""
_INFERRED: Final = frozenset(("api", "api_version"))
_OF_STRANGERS: Final = frozenset(("time_ns", "request.time_ns", "request.size", "response.time_ns", "response.size"))


def _answered_ns(facts: ExchangeRow) -> int | None:
    if facts.response_size is None:
        return None
    return facts.time_ns if facts.request_size is None else facts.time_ns + (facts.latency_ns or 0)


@dataclass(frozen=True, slots=True)
class _Part:
    """Some rows of the index."""

    numbers: range | Int64
    rows: slice | Int64
    asks: Bool
    """Whether each has a frame of the client's; `answers`, of the server's."""
    answers: Bool
    is_exchange: Bool

    @property
    def asked(self) -> Bool:
        """Whether each is an exchange with its request."""
        return self.is_exchange & self.asks


class Listing:
    """Columns of the index of one capture."""

    def __init__(self, session: Indexer, lookup: ExchangeDecoder) -> None:
        self._session = session
        self._lookup = lookup
        self._columns: dict[str, Callable[[_Part], Sequence[Value]]] = {
            "kind": lambda part: _named(KIND_NAMES, self._of("kind", part)),
            "number": lambda part: [number + 1 for number in _listed(part.numbers)],
            "connection": lambda part: (self._of("connection", part) + 1).tolist(),
            "client": lambda part: self._ends(part, 0),
            "server": lambda part: self._ends(part, 1),
            "time_ns": lambda part: np.where(part.asks, self._time(part, "request"), self._time(part, "response"))
            .tolist(),
            "api_key": self._api_keys,
            "api": self._apis,
            "api_version": lambda part: _present(self._of("version", part), part.asked),
            "correlation_id": lambda part: _present(self._of("correlation_id", part), part.is_exchange),
            "client_id": self._client_ids,
            "latency_ns": self._latencies,
            "request.time_ns": lambda part: _present(self._time(part, "request"), part.asks),
            "request.size": lambda part: _present(self._size(part, "request"), part.asks),
            "response.time_ns": lambda part: _present(self._time(part, "response"), part.answers),
            "response.size": lambda part: _present(self._size(part, "response"), part.answers),
        }  # fmt: skip

    def columns(self, names: Sequence[str], numbers: range | Int64) -> list[list[Value]]:
        """A column for each name, all keys of `FACTS`, with these rows: by number, or one after the other."""
        table = self._session.table
        rows = slice(numbers.start, numbers.stop) if isinstance(numbers, range) else numbers
        part = _Part(
            numbers,
            rows,
            table.request.values[rows] != NO_FRAME,
            table.response.values[rows] != NO_FRAME,
            table.kind.values[rows] == RowKind.EXCHANGE,
        )
        found = [list(self._columns[name](part)) for name in names]
        self._look_at(names, part, found)
        return found

    def _look_at(self, names: Sequence[str], part: _Part, found: list[list[Value]]) -> None:
        """Rows of which the index alone does not tell everything that is asked for."""
        unclear = np.zeros(len(part.asks), np.bool_)
        if not _INFERRED.isdisjoint(names):
            unclear |= part.is_exchange & ~part.asks
        if not _OF_STRANGERS.isdisjoint(names):
            unclear |= ~part.asks & ~part.answers
        for at in np.flatnonzero(unclear).tolist():
            exchange = self._lookup.exchange(int(part.numbers[at]))
            for name, column in zip(names, found, strict=True):
                column[at] = FACTS[name](exchange)

    def _of(self, name: str, part: _Part) -> Int64:
        values: Int64 = getattr(self._session.table, name).values[part.rows]
        return values

    def _frames(self, values: Int64, part: _Part, side: str) -> Int64:
        """What the frame table has of the frames of one side; the first row's where there is none."""
        frames = self._of(side, part)
        return values[np.maximum(frames, 0)] if len(values) else np.zeros(len(frames), np.int64)

    def _time(self, part: _Part, side: str) -> Int64:
        return self._frames(self._session.frames.time_ns.values, part, side)

    def _size(self, part: _Part, side: str) -> Int64:
        return self._frames(self._session.frames.size.values, part, side)

    def _ends(self, part: _Part, side: int) -> list[str]:
        seen, inverse = np.unique(self._of("connection", part), return_inverse=True)
        return _named([self._lookup.ends(connection)[side] for connection in seen.tolist()], inverse)

    def _api_keys(self, part: _Part) -> list[Value]:
        keys = self._of("api_key", part)
        if self._lookup.asked is None:
            return _present(keys, part.asked)
        return _present(np.where(part.asks, keys, self._lookup.asked[0]), part.is_exchange)

    def _apis(self, part: _Part) -> list[Value]:
        names = {each.key: each.name for each in apis()}
        keys = _present(self._of("api_key", part), part.asked)
        return [key if key is None else names.get(int(key)) or api_name(int(key)) for key in keys]

    def _client_ids(self, part: _Part) -> list[Value]:
        texts = self._session.client_ids.texts
        numbers = _present(self._of("client_id", part), part.asked)
        return [number if number is None else texts[int(number)] for number in numbers]

    def _latencies(self, part: _Part) -> list[Value]:
        return _present(self._time(part, "response") - self._time(part, "request"), part.asked & part.answers)


def _listed(numbers: range | Int64) -> Iterable[int]:
    return numbers if isinstance(numbers, range) else numbers.tolist()


def _named(words: list[str], numbers: npt.NDArray[Any]) -> list[str]:
    return [words[number] for number in numbers.tolist()]


def _present(values: Int64, there: Bool) -> list[Value]:
    """The values, None where there is none."""
    if there.all():
        return list(values.tolist())
    found = values.astype(object)
    found[~there] = None
    return list(found.tolist())
