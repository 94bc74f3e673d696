"""Packets of scapy to exchanges, and packets of exchanges back to scapy: python scapy_and_back.py orders.pcapng"""

import sys

from scapy.utils import rdpcap

import dissector
from dissector.scapy import packets_of

packets = rdpcap(sys.argv[1])
for exchange in dissector.open(packets).exchanges("error"):
    print(exchange, exchange["error"])
    packets_of(exchange).show()
