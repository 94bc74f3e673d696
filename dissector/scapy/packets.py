"""Packets of exchanges as packets of scapy's."""

from decimal import Decimal
from typing import Any

from scapy.config import conf
from scapy.packet import Packet, Raw
from scapy.plist import PacketList
from scapy.utils import EDecimal

from dissector.api.exchange import Exchange
from dissector.scapy.frames import ConnectionFrames
from dissector.scapy.layer import Kafka


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
