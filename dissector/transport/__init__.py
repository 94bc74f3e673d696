"""Packets to byte streams: headers read as columns, connections, reassembly. Knows nothing of Kafka."""

from dissector.transport.connection_table import ConnectionTable
from dissector.transport.retransmissions import Retransmissions
from dissector.transport.transport import Transport

__all__ = ["ConnectionTable", "Retransmissions", "Transport"]
