"""An exchange, as programs see it."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from dissector.core.finding import Finding
from dissector.core.suggestions import alternatives
from dissector.core.text import duration
from dissector.core.times import SECOND
from dissector.exchange.model import Exchange as Model
from dissector.exchange.model import ExchangeMessage
from dissector.exchange.row_field import RowField
from dissector.exchange.row_fields import ROW_FIELDS

if TYPE_CHECKING:
    from dissector.exchange.field_paths import FieldPlace

_ABSENT: Final = object()


class Packet(NamedTuple):
    """A packet of a capture.

    >>> packet = capture[0].packets()[0]
    >>> packet.link_type, len(packet.data), packet.length
    (1, 119, 119)
    """

    time_ns: int
    """Nanoseconds since 1970 UTC."""
    data: bytes
    """As captured, from the link layer on."""
    length: int | None
    """Bytes on the wire; None if that is not known."""
    link_type: int
    """LINKTYPE_ number."""


class Exchange:
    """A request and its response; either may be missing. Other rows of a capture are exchanges, too, of another `kind`.

    >>> exchange = next(capture.exchanges("api == Produce"))
    >>> exchange
    <#9 Produce v13 127.0.0.1:58134 → 127.0.0.1:9092 5.1 ms>
    >>> exchange["acks"], exchange["topic"], exchange["request.topic_data.partition_data.index"]
    (-1, 'java-orders', [1, 0])
    >>> exchange.request.body["timeout_ms"], exchange.response.size
    (30000, 99)
    """

    __slots__ = ("_model", "_packets")

    def __init__(self, model: Model, packets: "Callable[[int], list[Packet]]") -> None:
        self._model = model.complete()
        self._packets = packets

    @property
    def number(self) -> int:
        """Its number in the capture, from 1."""
        return self._model.fields.number

    @property
    def kind(self) -> str:
        """``exchange``, ``gap``, ``unparsed``, ``tls``, ``sasl``; in Kafka's own files ``batch`` or ``index``."""
        return self._model.fields.kind

    @property
    def time_ns(self) -> int:
        """When it began, nanoseconds since 1970 UTC."""
        return self._model.fields.time_ns

    @property
    def time(self) -> datetime:
        """When it began, in UTC, with microsecond precision."""
        seconds, rest = divmod(self.time_ns, SECOND)
        return datetime.fromtimestamp(seconds, UTC).replace(microsecond=rest // 1_000)

    @property
    def connection(self) -> int:
        """The number of its connection, from 1."""
        return self._model.fields.connection

    @property
    def client(self) -> str:
        """The client's address, host:port."""
        return self._model.fields.client

    @property
    def server(self) -> str:
        """The server's address, host:port."""
        return self._model.fields.server

    @property
    def api(self) -> str:
        """The name of its API, which ends in ``?`` if it is inferred."""
        return self._model.fields.api

    @property
    def api_key(self) -> int | None:
        """The key of its API; None if the request is missing."""
        return self._model.api_key

    @property
    def api_version(self) -> int | None:
        """The version of its API."""
        return self._model.fields.version

    @property
    def correlation_id(self) -> int | None:
        """Its correlation id."""
        return self._model.fields.correlation_id

    @property
    def client_id(self) -> str | None:
        """The client id in its request."""
        return self._model.fields.client_id

    @property
    def latency_ns(self) -> int | None:
        """Time from the request to the response, nanoseconds; None if either is missing."""
        return self._model.fields.latency_ns

    @property
    def info(self) -> str:
        """The text of the info column."""
        return self._model.row.info

    @property
    def request(self) -> ExchangeMessage | None:
        """The request; None if it is missing."""
        return self._model.request

    @property
    def response(self) -> ExchangeMessage | None:
        """The response; None if it is missing."""
        return self._model.response

    @property
    def findings(self) -> list[Finding]:
        """Its findings. Cross-message findings appear after calling `Capture.findings`."""
        return self._model.findings

    def packets(self) -> list[Packet]:
        """Return the packets that carried it, in capture order; this reads the capture's files again."""
        return self._packets(self.number - 1)

    def json(self) -> dict[str, Any]:
        """Return it as `kdissect show --format json` prints it, as an object."""
        from dissector.exchange.to_json import exchange_object

        return exchange_object(self._model)

    def get(self, name: str, default: Any = None) -> Any:
        """Return the value of a field by its name in filters; `default` if the exchange has none.

        A row field (``latency``, ``topic``, …) has one value. A message field is looked up in the request and then in
        the response, unless its name begins with ``request.`` or ``response.``; a field in an array gives a list of
        values. Raises `KeyError` for an unknown name."""
        __tracebackhide__ = True
        if not isinstance(name, str):
            raise TypeError(f"a field is named by text, such as 'latency', not {name!r}")
        row_field = _row_field(name)
        if row_field is not None:
            value = row_field.from_exchange(self._model)
            return default if value is None else value
        for place in _places(name):
            value = self._value(place)
            if value is not _ABSENT:
                return value
        return default

    def __getitem__(self, name: str) -> Any:
        """Return the value of a field by its name in filters: `get`. Raises `KeyError` if the exchange has none."""
        __tracebackhide__ = True
        value = self.get(name, _ABSENT)
        if value is _ABSENT:
            raise KeyError(f"{name}: {self!r} has none; get({name!r}) returns None then")
        return value

    def __contains__(self, name: str) -> bool:
        __tracebackhide__ = True
        return self.get(name, _ABSENT) is not _ABSENT

    if not TYPE_CHECKING:  # so that a checker of types knows which attributes there are

        def __getattr__(self, name: str) -> object:
            __tracebackhide__ = True
            words = f"'Exchange' object has no attribute {name!r}"
            if not name.startswith("_"):
                from dissector.filter.compiler import near_names

                field = next(filter(_is_field, (name, *near_names(name))), None)
                words += f"; the value of a field is exchange[{field!r}]" if field else ""
            raise AttributeError(words)

    def _value(self, place: "FieldPlace") -> Any:
        """Return the value at a place, a list if arrays lead there; `_ABSENT` if there is none."""
        from dissector.exchange.field_paths import found

        message = self.request if place.side == "request" else self.response
        if message is None or (place.path[0] != "header" and message.layout.body != place.message):
            return _ABSENT
        holder: Mapping[str, Any] = {"header": message.header} if place.path[0] == "header" else message.decoded_body
        values = found(holder, place.path)
        if _is_in_array(holder, place.path):
            return values
        return values[0] if values else _ABSENT

    def __repr__(self) -> str:
        fields = self._model.fields
        name = f"{fields.api} v{fields.version}" if fields.version is not None else fields.api or fields.kind
        latency = "" if fields.latency_ns is None else f" {duration(fields.latency_ns)}"
        return f"<#{fields.number} {name} {fields.client} → {fields.server}{latency}>"

    def _repr_html_(self) -> str:
        from dissector.api.html import exchange_html

        return exchange_html(self)


def _is_field(name: str) -> bool:
    """Whether filters know the name."""
    try:
        return _row_field(name) is not None or bool(_places(name))
    except KeyError:
        return False


def _is_in_array(value: object, path: tuple[str, ...]) -> bool:
    """Whether an array is on the way to a field."""
    for name in path:
        if isinstance(value, list):
            return True
        value = value.get(name) if isinstance(value, dict) else None
    return False


def _row_field(name: str) -> RowField | None:
    return ROW_FIELDS.get(name)


@cache
def _places(name: str) -> "tuple[FieldPlace, ...]":
    """Return the places that a name means. Raises `KeyError` if there are none."""
    __tracebackhide__ = True
    from dissector.filter.compiler import near_names
    from dissector.filter.message_fields import lookup

    found = lookup(name)
    if not found:
        near = near_names(name)
        raise KeyError(f"{name}: no such field" + (f"; did you mean {alternatives(near)}" if near else ""))
    return found
