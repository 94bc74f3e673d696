"""Makes packets of bytes that passed, as blocks of a pcapng file, by the kernel (`protocol/kernel/made_packets.c`).

Short ones are copied into their block; of long ones the blocks are made around them, where they are. They are as long
as IP allows, as on the way to a network card that cuts them.
"""

import ctypes
from collections.abc import Sequence
from typing import Final

from dissector.conversation.headers import ACK, LONGEST_PAYLOAD, PSH, SegmentHeaders
from dissector.core.kernel import address, kernel_function, structure_fields

MADE_PACKETS: Final = """
int64_t is_v4, headers_size;
const uint8_t *headers; /* of Ethernet, IP and TCP */
int64_t *next_seq; /* of this side, */
const int64_t *ack; /* and of the other one */
int64_t longest; /* bytes of a packet's content */
uint8_t *out;
"""
"""What one side of a connection sends: `KernelMadePackets` of kernel.h."""
MOST_COPIED: Final = 8_192
"""Bytes that may be copied rather than written from where they are."""
_MOST_PACKETS: Final = 128
"""Packets of a call: a system call writes 1,024 parts (IOV_MAX), and each packet has two."""
MOST_BYTES: Final = _MOST_PACKETS * LONGEST_PAYLOAD
"""Bytes of a call."""
_BLOCK_HEADER: Final = 28
_BLOCK_TRAILER: Final = 4
_MOST_AROUND: Final = 128
"""More than there is of a block and its packet beside the content."""
_made_packets = kernel_function("made_packets", "PqPqi")
_out: Final = memoryview(bytearray(max(MOST_COPIED, _MOST_PACKETS * _MOST_AROUND) + _MOST_AROUND))
"""What was made last."""


class _KernelMadePackets(ctypes.Structure):
    """As `MADE_PACKETS`."""

    _fields_ = structure_fields(MADE_PACKETS)


class PacketMaker:
    """Of one side of a connection."""

    def __init__(self, headers: SegmentHeaders, next_seqs: ctypes.Array[ctypes.c_int64], side: int) -> None:
        """`next_seqs` are the numbers of the next bytes of both sides, of which this is one."""
        self._headers = ctypes.create_string_buffer(headers.header(ACK | PSH, 0, 0, 0))
        self._next_seqs = next_seqs
        size = len(self._headers) - 1
        seqs = [ctypes.addressof(next_seqs) + n * ctypes.sizeof(ctypes.c_int64) for n in (0, 1)]
        self._side = _KernelMadePackets(
            headers.is_v4, size, ctypes.addressof(self._headers), seqs[side], seqs[not side], LONGEST_PAYLOAD,
            address(_out),
        )  # fmt: skip
        self._begin = _BLOCK_HEADER + size
        self._between = -(size + LONGEST_PAYLOAD) % 4 + _BLOCK_TRAILER + self._begin
        self._make = _made_packets()
        self._address = ctypes.addressof(self._side)

    def block(self, time_ns: int, data: bytes | memoryview) -> memoryview:
        """Return the block of a packet with up to `MOST_COPIED` bytes, until the next one is made."""
        return _out[: self._make(self._address, time_ns, address(data), len(data), True)]

    def parts(self, time_ns: int, data: bytes | memoryview) -> Sequence[memoryview]:
        """Return the blocks of packets with up to `MOST_BYTES` bytes, in parts, until the next one is made."""
        view = memoryview(data)
        found: list[memoryview] = []
        made = self._make(self._address, time_ns, address(data), len(data), False)
        at, end = 0, self._begin
        for start in range(0, len(view), LONGEST_PAYLOAD):
            found += (_out[at:end], view[start : start + LONGEST_PAYLOAD])
            at, end = end, end + self._between
        return [*found, _out[at:made]]
