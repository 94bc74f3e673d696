"""What a row is asked for by name, without a path: its API, its client, its latency, what was found about it.

Each field answers twice: for columns of the index, if it has the field, and for one exchange. A new one is a line of
`ROW_FIELDS`.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from dissector.core.finding import Severity
from dissector.exchange.decoder import KIND_NAMES
from dissector.exchange.model import STORED, UNKNOWN_API, Exchange
from dissector.filter.row_columns import Cells, IndexRows, Sets
from dissector.filter.value_types import Kind, Type
from dissector.findings import CODES
from dissector.protocol.schema.enums import API_KEY
from dissector.protocol.schema.loader import api_named

EXCHANGE: Final = "exchange"
Values = Callable[[Exchange, int], Iterable[object]]
"""What an exchange has of a field; the number is the capture's start in nanoseconds since 1970."""


@dataclass(frozen=True)
class RowField:
    """A field by name. `cells` are its columns: any of them may fit; none where the index has it not."""

    name: str
    words: str
    kind: Kind
    values: Values
    cells: tuple[Callable[[IndexRows], Cells | Sets], ...] = ()
    is_finding: bool = False
    """Whether it is about findings, which only an examined capture has all of."""


def _some(value: Callable[[Exchange], object]) -> Values:
    """A fact that may not be there."""

    def values(exchange: Exchange, _start_ns: int) -> Iterable[object]:
        found = value(exchange)
        return () if found is None else (found,)

    return values


def _of_exchange(value: Callable[[Exchange], object]) -> Values:
    """A fact that other kinds of rows have not."""
    return _some(lambda exchange: value(exchange) if exchange.facts.kind == EXCHANGE else None)


def _api(exchange: Exchange) -> int | None:
    """The key, also of a response whose API is inferred: ``Fetch?`` is Fetch."""
    if exchange.api_key is not None or exchange.facts.api == UNKNOWN_API:
        return exchange.api_key
    known = api_named(exchange.facts.api.removesuffix("?"))
    return known.key if known else None


def _severity(exchange: Exchange) -> int | None:
    severity = exchange.row.severity
    return None if severity is None else list(Severity).index(severity)


_TEXT: Final = Kind(Type.TEXT)
_INTEGER: Final = Kind(Type.INTEGER)


ROW_FIELDS: Final = (
    RowField("number", "the row's number, from 1", _INTEGER,
             _some(lambda exchange: exchange.facts.number), (IndexRows.number,)),
    RowField("kind", "exchange, gap, unparsed, tls, sasl; batch or index of Kafka's own files",
             Kind(Type.TEXT, names=(*KIND_NAMES, *sorted(STORED))),
             _some(lambda exchange: exchange.facts.kind), (IndexRows.kind,)),
    RowField("api", "the API, by name or key", Kind(Type.INTEGER, API_KEY, ordered=False),
             _of_exchange(_api), (IndexRows.api,)),
    RowField("api_key", "the API's key", _INTEGER,
             _of_exchange(lambda exchange: exchange.api_key), (IndexRows.api,)),
    RowField("version", "the API's version", _INTEGER,
             _of_exchange(lambda exchange: exchange.facts.version), (IndexRows.version,)),
    RowField("client_id", "what the client calls itself", _TEXT,
             _of_exchange(lambda exchange: exchange.facts.client_id), (IndexRows.client_id,)),
    RowField("client", "the client's address, host:port", _TEXT,
             _some(lambda exchange: exchange.facts.client or None), (IndexRows.client,)),
    RowField("server", "the server's address, host:port; the file of an entry of Kafka's own", _TEXT,
             _some(lambda exchange: exchange.facts.server), (IndexRows.server,)),
    RowField("conn", "the connection's number, as C3 or 3", Kind(Type.INTEGER, prefix="C"),
             _some(lambda exchange: exchange.facts.connection), (IndexRows.connection,)),
    RowField("corr", "the correlation id", _INTEGER,
             _of_exchange(lambda exchange: exchange.facts.correlation_id), (IndexRows.correlation_id,)),
    RowField("latency", "from request to response: 50ms, 1.5s", Kind(Type.DURATION, bare=None),
             _of_exchange(lambda exchange: exchange.facts.latency_ns), (IndexRows.latency,)),
    RowField("time", "since the capture's start: 2.5s; or of the calendar: 2026-01-31T12:00:00Z",
             Kind(Type.TIME, bare=10**9),
             lambda exchange, start_ns: (exchange.facts.time_ns - start_ns,), (IndexRows.since_start,)),
    RowField("size", "bytes of the request or of the response: 8k, 1MiB", _INTEGER,
             lambda exchange, _: _present(exchange.facts.request_size, exchange.facts.response_size),
             (IndexRows.request_size, IndexRows.response_size)),
    RowField("request.size", "bytes of the request", _INTEGER,
             _some(lambda exchange: exchange.facts.request_size), (IndexRows.request_size,)),
    RowField("response.size", "bytes of the response", _INTEGER,
             _some(lambda exchange: exchange.facts.response_size), (IndexRows.response_size,)),
    RowField("request", "whether the request is in the capture", Kind(Type.STRUCT),
             _of_exchange(lambda exchange: exchange.request), (IndexRows.request,)),
    RowField("response", "whether the response is in the capture", Kind(Type.STRUCT),
             _of_exchange(lambda exchange: exchange.response), (IndexRows.response,)),
    RowField("info", "the words of the list", _TEXT, _some(lambda exchange: exchange.row.info or None)),
    RowField("finding", "the code of something found, such as unanswered", Kind(Type.TEXT, names=CODES),
             lambda exchange, _: [finding.code for finding in exchange.findings],
             (IndexRows.finding,), is_finding=True),
    RowField("severity", "the gravest finding's: note, warning, error",
             Kind(Type.INTEGER, names=tuple(Severity)), _some(_severity),
             (IndexRows.severity,), is_finding=True),
)  # fmt: skip

CALENDAR: Final = RowField(
    "time", "", Kind(Type.TIME), lambda exchange, _: (exchange.facts.time_ns,), (IndexRows.time,)
)
"""`time`, where it is compared with times of the calendar."""

ALIASES: Final = {
    "connection": "conn", "correlation_id": "corr", "api_version": "version", "findings": "finding",
}  # fmt: skip
"""What the JSON object calls them."""


def _present(*values: int | None) -> list[int]:
    return [value for value in values if value is not None]
