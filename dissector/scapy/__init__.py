"""Kafka as a scapy layer; needs the extra `scapy`.

    from scapy.sendrecv import sniff
    from scapy.sessions import TCPSession
    from dissector.scapy import Kafka

    for packet in sniff(offline="orders.pcap", session=TCPSession):
        if packet.haslayer(Kafka):
            packet[Kafka].show()

scapy takes a millisecond a packet, and does not see through what scapy does not know: `dissector.open` reads the same
packets a thousand times as fast. Invariant: nothing but this package and `dissector.capture.live` imports scapy.
"""

from dissector.core.extras import require

require("dissector.scapy", "scapy", "scapy")

from dissector.scapy.layer import Kafka, bind_port, packets_of  # noqa: E402  # it imports scapy

__all__ = ["Kafka", "bind_port", "packets_of"]
