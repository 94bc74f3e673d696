"""Packets of scapy to exchanges, and packets of exchanges back to scapy: python scapy_and_back.py orders.pcapng"""

import sys

from scapy.layers.inet import TCP
from scapy.layers.l2 import Ether
from scapy.utils import rdpcap

import dissector

packets = rdpcap(sys.argv[1])
for exchange in dissector.open(packets).exchanges("error"):
    print(exchange, exchange["error"])
    for packet in exchange.packets():
        made = Ether(packet.data)
        print(f"    {made[TCP].sport} > {made[TCP].dport} flags {made[TCP].flags}, {len(made[TCP].payload)} bytes")
