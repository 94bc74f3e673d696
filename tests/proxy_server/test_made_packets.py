"""Packets that the kernel makes of bytes that passed: the blocks that are made one by one of the same bytes."""

import ctypes
import random

import pytest

from dissector.conversation.headers import ACK, LONGEST_PAYLOAD, PSH, SegmentHeaders
from dissector.conversation.pcapng import Packet, pcapng
from dissector.conversation.turns import End
from dissector.proxy_server.made_packets import MOST_BYTES, MOST_COPIED, PacketMaker

TIME = 1_700_000_000_123_456_789
ENDS = {
    "IPv4": (End("127.0.0.1", 40_001), End("192.0.2.7", 9092)),
    "IPv6": (End("::1", 1), End("2001:db8::ffff", 65_535)),
}


def one_by_one(headers: SegmentHeaders, seq: int, ack: int, data: bytes) -> bytes:
    packets = []
    for at in range(0, len(data), LONGEST_PAYLOAD):
        part = data[at : at + LONGEST_PAYLOAD]
        packets.append(Packet(TIME, headers.header(ACK | PSH, (seq + at) & 0xFFFFFFFF, ack, len(part)) + part))
    _, _, *blocks = pcapng(packets, "")
    return b"".join(blocks)


@pytest.mark.parametrize("family", ENDS)
@pytest.mark.parametrize("side", [0, 1])
@pytest.mark.parametrize("size", [1, 2, 3, 4, 999, MOST_COPIED, LONGEST_PAYLOAD, LONGEST_PAYLOAD + 1, 300_000])
def test_blocks_are_those_of_packets_that_are_made_one_by_one(family: str, side: int, size: int) -> None:
    chance = random.Random(f"{family} {side} {size}")
    headers = SegmentHeaders(*ENDS[family][:: 1 if side else -1], outward=bool(side))
    for first in (chance.randrange(1 << 32), (1 << 32) - chance.randrange(1, size + 1)):
        data, other = chance.randbytes(size), chance.randrange(1 << 32)
        expected = one_by_one(headers, first, other, data)
        numbers = (ctypes.c_int64 * 2)(other, other)
        maker = PacketMaker(headers, numbers, side)
        for given in (data, memoryview(bytearray(data))):
            numbers[side] = first
            assert b"".join(maker.parts(TIME, given)) == expected
            assert [*numbers] == [other if number != side else (first + size) % (1 << 32) for number in (0, 1)]
            if size <= MOST_COPIED:
                numbers[side] = first
                assert maker.block(TIME, given) == expected


def test_as_many_packets_as_a_system_call_takes() -> None:
    headers = SegmentHeaders(*ENDS["IPv6"], outward=True)
    maker = PacketMaker(headers, (ctypes.c_int64 * 2)(5, 7), 1)
    parts = maker.parts(TIME, memoryview(bytearray(MOST_BYTES)))
    assert len(parts) <= 1_024
    assert b"".join(parts) == one_by_one(headers, 7, 5, bytes(MOST_BYTES))
