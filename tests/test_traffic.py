"""Packets that tests make are those that dpkt builds, checksums included: another program's word on them."""

import socket

import dpkt
from hypothesis import given
from hypothesis import strategies as st

from tests.traffic import ACK, FIN, PSH, RST, SYN, Packet

ADDRESSES = st.ip_addresses(v=4).map(str)
ENDS = st.tuples(ADDRESSES, st.integers(0, 65_535))


@given(
    st.builds(
        Packet, st.booleans(), st.integers(0, 2**33), st.binary(max_size=1500),
        st.sampled_from([ACK, SYN, SYN | ACK, FIN | ACK, ACK | PSH, RST]), st.integers(0, 2**33), ENDS, ENDS,
        st.integers(0, 65_535), st.integers(0, 10).map(lambda count: b"\1" * 4 * count),
    )
)  # fmt: skip
def test_a_packet_is_the_one_that_dpkt_builds(packet: Packet) -> None:
    source, destination = (packet.client, packet.server) if packet.from_client else (packet.server, packet.client)
    tcp = dpkt.tcp.TCP(
        sport=source[1], dport=destination[1], seq=packet.seq % 2**32, ack=packet.ack % 2**32, flags=packet.flags,
        win=packet.window, opts=packet.options, data=packet.payload,
    )  # fmt: skip
    tcp.off = 5 + len(packet.options) // 4
    ends = {"src": socket.inet_aton(source[0]), "dst": socket.inet_aton(destination[0])}
    built = dpkt.ip.IP(**ends, p=6, ttl=64, data=tcp)
    built.len = 40 + len(packet.options) + len(packet.payload)
    assert packet.ip() == bytes(built)
