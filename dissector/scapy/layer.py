"""The layer: a whole frame of Kafka's, with its values as fields, decoded and built by our own codec.

Invariants:
  * the bytes of a layer that was dissected and not changed are those of the frame;
  * what is no whole frame is `Raw`, and no bytes raise an error;
  * secrets are masked in all that is shown, and a frame that has some is not built again from its fields.
"""

from collections.abc import Mapping
from copy import deepcopy
from decimal import Decimal
from typing import Any, Final

from scapy.config import conf
from scapy.fields import Field
from scapy.layers.inet import TCP
from scapy.packet import NoPayload, Packet, Padding, Raw, bind_layers
from scapy.plist import PacketList
from scapy.utils import EDecimal

from dissector.api.exchange import Exchange
from dissector.api.messages import encode_request, encode_response
from dissector.core.text import clean, shortened
from dissector.exchange.model import ExchangeMessage
from dissector.protocol.message_layout import PREFIX
from dissector.protocol.wire import EncodeError
from dissector.scapy.frames import ConnectionFrames, frame_size

PORT: Final = 9092
MOST_LINES: Final = 1_000
"""Lines that `show` prints of a frame."""
_UNSET: Final = None
_ports: Final = {PORT}


class _Value(Field[Any, Any]):
    """A value of a frame that has no bytes of its own in scapy's eyes: the frame is built as a whole."""

    def addfield(self, pkt: Packet | None, s: bytes, val: Any) -> bytes:
        return s

    def getfield(self, pkt: Packet | None, s: bytes) -> tuple[bytes, Any]:
        return s, _UNSET

    def i2repr(self, pkt: Packet | None, x: Any) -> str:
        return clean(str(x))


class _Body(_Value):
    """The fields of the body, shown with their places in the frame."""

    def i2repr(self, pkt: Packet | None, x: Any) -> str:
        message = pkt.message if isinstance(pkt, Kafka) else None
        if message is None or pkt is None or pkt.raw_packet_cache is None:
            return clean(shortened(str(x)))
        leaves = (node for node in message.tree.walk() if not node.children and not node.name.startswith("("))
        nodes = [node for node in leaves if node.path.startswith("body.")]
        lines = [
            clean(f"{node.path[5:]} = {shortened(str(node.value))}  [{node.start}+{node.size} {node.type}]")
            for node in nodes[:MOST_LINES]
        ]
        if len(nodes) > MOST_LINES:
            lines.append(f"and {len(nodes) - MOST_LINES:,} more")
        return "".join(f"\n    {line}" for line in lines)


class Kafka(Packet):
    """A request or a response, with its size prefix. It is one or the other by the port of its segment, and within a
    `TCPSession` a response belongs to the request with its correlation id; elsewhere its API is inferred.

    >>> packet = Kafka(api="Metadata", version=12, correlation_id=7, client_id="dev", topics=[{"name": "orders"}])
    >>> bytes(packet)[:8].hex(" ")
    '00 00 00 2d 00 03 00 0c'
    >>> Kafka(bytes(packet)).body["topics"][0]["name"]
    'orders'
    """

    name = "Kafka"
    __slots__ = ("message",)
    fields_desc = [  # noqa: RUF012  # as scapy has it
        _Value("type", "request"), _Value("size", None), _Value("api", None), _Value("version", None),
        _Value("correlation_id", 0), _Value("client_id", None), _Body("body", None),
    ]  # fmt: skip

    def __init__(self, _pkt: bytes = b"", /, body: Mapping[str, object] | None = None, **values: Any) -> None:
        """Dissect a frame, or take the values of one: what is no field of the layer is one of the body."""
        self.message: ExchangeMessage | None = None
        """The frame as the API has it; None before it is built."""
        known = {name: values.pop(name) for name in list(values) if name in _OWN}
        if body is not None or values:
            known["body"] = {**(body or {}), **values}
        super().__init__(_pkt, **known)

    def do_dissect(self, s: bytes) -> bytes:
        size = frame_size(s)
        if size is None or len(s) < size:
            return s
        self._take(s[:size], ConnectionFrames(), is_request=_is_request(self.underlayer))
        return s[size:]

    def decode_in(self, connection: ConnectionFrames) -> None:
        """Decode a dissected frame again, by what its connection has said."""
        frame = self.raw_packet_cache
        if frame is not None:
            self._take(frame, connection, is_request=self.type == "request")

    def _take(self, frame: bytes, connection: ConnectionFrames, *, is_request: bool) -> None:
        """Take the values of a whole frame."""
        message, api, version = connection.request(frame) if is_request else connection.response(frame)
        self.message = message
        self.fields = {
            "type": "request" if is_request else "response", "size": len(frame), "api": api, "version": version,
            "correlation_id": message.header.get("correlation_id"), "client_id": message.header.get("client_id"),
            "body": deepcopy(message.body),
        }  # fmt: skip
        self.raw_packet_cache = frame
        self.raw_packet_cache_fields = {}
        self.explicit = 1

    def self_build(self) -> bytes:
        """Return the frame; of changed values, one that is encoded. Raises `EncodeError`."""
        message, frame = self.message, self.raw_packet_cache
        if frame is not None and message is not None and self.body == message.body:
            return frame
        if self.api is None:
            return b""
        if message is not None and message.masked:
            raise EncodeError("its secrets are masked, so it can't be built from its fields", "body")
        version, body = self.version or 0, self.body or {}
        if self.type == "response":
            return encode_response(self.api, version, body, correlation_id=self.correlation_id)
        return encode_request(self.api, version, body, correlation_id=self.correlation_id, client_id=self.client_id)

    def copy(self) -> "Kafka":
        """Return a copy, as `/` makes one of both its sides."""
        copied = super().copy()
        copied.message = self.message
        return copied

    def clone_with(self, payload: Any = None, **kargs: Any) -> Any:
        """Return a copy with other values, as `build` makes of a packet that was changed."""
        cloned = super().clone_with(payload, **kargs)
        cloned.message = self.message
        return cloned

    def guess_payload_class(self, payload: bytes) -> type[Packet]:
        return _class_of(payload)

    def extract_padding(self, s: bytes) -> tuple[bytes, bytes | None]:
        return s, None

    def answers(self, other: Packet) -> bool:
        """Return whether it is the response to a request."""
        return (
            isinstance(other, Kafka) and (self.type, other.type) == ("response", "request")
            and self.correlation_id == other.correlation_id
        )  # fmt: skip

    def mysummary(self) -> str:
        """Return a line about it."""
        return clean(f"Kafka {self.api} v{self.version} {self.type} {self.correlation_id}")

    def __repr__(self) -> str:
        below = "" if isinstance(self.payload, NoPayload) else repr(self.payload)
        return f"<{self.mysummary()} |{below}>"

    @classmethod
    def dispatch_hook(cls, _pkt: bytes | None = None, *_: Any, **__: Any) -> type[Packet]:
        """Return the class for bytes: `Raw` for what is no whole frame."""
        return cls if not _pkt else _class_of(_pkt)

    @classmethod
    def tcp_reassemble(cls, data: bytes, metadata: dict[str, Any], session: dict[str, Any]) -> Packet | None:
        """Return the whole frames in the data of one direction, one below the other; None if there is none yet."""
        connection = session.setdefault("kafka", ConnectionFrames())
        size = frame_size(data, connection.least)
        if size is None:
            return Raw(data) if len(data) >= PREFIX else None
        if len(data) < size:
            metadata["tcp_min_len"] = size
            return None
        original = metadata.get("original")
        is_request = _is_request(original[TCP] if original is not None and TCP in original else None)
        first = last = None
        while size is not None and len(data) >= size:
            frame = cls()
            frame._take(data[:size], connection, is_request=is_request)
            if last is None:
                first = frame
            else:
                last.add_payload(frame)
            last, data = frame, data[size:]
            size = frame_size(data, connection.least)
        if data and last is not None:
            last.add_payload(Padding(data))
        return first


_OWN: Final = frozenset(
    (
        *(field.name for field in Kafka.fields_desc),
        "post_transform",
        "stop_dissection_after",
        "_internal",
        "_underlayer",
    )
)
"""Arguments that are not fields of a body."""


def _class_of(data: bytes) -> type[Packet]:
    size = frame_size(data)
    return Kafka if size is not None and len(data) >= size else Raw


def _is_request(segment: Packet | None) -> bool:
    """Return whether a segment goes to a broker; of one that has no port of a broker's, that it does."""
    if segment is None or not isinstance(segment, TCP):
        return True
    return segment.dport in _ports or segment.sport not in _ports


def bind_port(port: int) -> None:
    """Treat the traffic of another broker port as Kafka, too."""
    _ports.add(port)
    bind_layers(TCP, Kafka, dport=port)
    bind_layers(TCP, Kafka, sport=port)


bind_port(PORT)


def packets_of(exchange: Exchange) -> PacketList:
    """Return the packets that carried an exchange, with their times and lengths on the wire; of a link type that scapy
    does not know, as `Raw`.

    >>> packets_of(capture[1]).summary()
    Ether / IP / TCP / Kafka Metadata v13 request 1
    Ether / IP / TCP / Kafka Metadata v13 response 1
    """
    connection = ConnectionFrames()
    if exchange.correlation_id is not None and exchange.api_key is not None and exchange.api_version is not None:
        connection.expect(exchange.correlation_id, exchange.api_key, exchange.api_version)
    made: list[Packet] = []
    for each in exchange.packets():
        layer: Any = conf.l2types.get(each.link_type, Raw)
        packet: Packet = layer(each.data)
        packet.time = EDecimal(Decimal(each.time_ns).scaleb(-9))
        packet.wirelen = each.length
        frame = packet.getlayer(Kafka)
        while isinstance(frame, Kafka):
            frame.decode_in(connection)
            frame = frame.payload
        made.append(packet)
    return PacketList(made, name=f"exchange {exchange.number}")
