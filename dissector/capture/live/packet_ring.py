"""Reads packets of a Linux network interface from a memory-mapped socket buffer: no system call and no copy per packet.

`packet(7)` and `linux/if_packet.h`, TPACKET_V3: the kernel fills blocks of `BLOCK` bytes and hands a block over when it
is full, or `RETIRE_MS` after its first packet. The time is the one at which the kernel took the packet, in nanoseconds.

Invariants:
  * each packet is yielded once, in the kernel's order; packets that it dropped are counted;
  * a packet on the loopback interface, which the kernel delivers as sent and again as received, is yielded once;
  * a VLAN tag that the kernel stripped is put back.
"""

import ctypes
import mmap
import os
import socket
import struct
import time
from collections.abc import Iterator
from typing import Final

from dissector.capture.live.bpf import DROP, Program, attach
from dissector.capture.live.interfaces import LOOPBACK, Interface

BLOCK: Final = 1 << 20
BLOCKS: Final = 64
"""64 MiB: more than a second of a full gigabit link."""
RETIRE_MS: Final = 50
ETHERNET: Final = 1
LINUX_SLL2: Final = 276
"""LINKTYPE_: the header put before each packet of an interface without Ethernet headers."""

_SOL_PACKET: Final = 263
_ADD_MEMBERSHIP, _RX_RING, _STATISTICS, _VERSION, _IGNORE_OUTGOING = 1, 5, 6, 10, 23
_TPACKET_V3, _PROMISCUOUS, _OUTGOING = 2, 1, 4
_ALL_PROTOCOLS: Final = 0x0003
_FRAME: Final = 1 << 11
"""Not used by TPACKET_V3, but required."""
_USER: Final = 1
"""TP_STATUS_USER: the block belongs to user space."""
_VLAN_VALID, _VLAN_TPID_VALID = 1 << 4, 1 << 6
_TAG_AT: Final = 12
"""Offset of the VLAN tag in an Ethernet header."""
_VLAN: Final = 0x8100
_BLOCK_HEAD: Final = struct.Struct("=8xIII")
_PACKET_HEAD: Final = struct.Struct("=IIIIIIH6xI H")
"""struct tpacket3_hdr: next offset, seconds, nanoseconds, captured, length, status, MAC offset, VLAN tag, its type."""
_ADDRESS_AT: Final = 48
_PACKET_TYPE_AT: Final = _ADDRESS_AT + 10
_ADDRESS: Final = struct.Struct("=2x2siHBB8s")
"""struct sockaddr_ll: protocol as on the wire, interface, kind of hardware, kind of packet, address size, address."""
_BIND: Final = struct.Struct("=HHi12x")
_SLL2: Final = struct.Struct(">2s2xiHBB8s")

Packet = tuple[int, int, bytes | memoryview]
"""Time in nanoseconds, length on the wire, the bytes."""


class PacketRing:
    """Captures the packets of one interface (or of all) that pass a filter.

    Raises `PermissionError` if the user may not open raw sockets, `OSError` if the interface can't be captured.
    """

    def __init__(self, interface: Interface, program: Program, *, promiscuous: bool) -> None:
        self.link_type = ETHERNET if interface.ethernet else LINUX_SLL2
        kind = socket.SOCK_RAW if interface.ethernet else socket.SOCK_DGRAM
        self._socket = socket.socket(socket.AF_PACKET, kind, 0)  # protocol 0: no packets before the filter is attached
        self._twice = -1 if interface.number and not interface.loopback else socket.if_nametoindex(LOOPBACK)
        """Number of the interface that delivers each packet twice."""
        self._received = self._dropped = 0
        self._at = 0
        """Number of the next block."""
        try:
            self._map = self._mapped()
            attach(self._socket, program)
            if interface.loopback:
                self._ignore_outgoing()
            if promiscuous and interface.number:
                membership = struct.pack("=iHH8s", interface.number, _PROMISCUOUS, 0, b"")
                self._socket.setsockopt(_SOL_PACKET, _ADD_MEMBERSHIP, membership)
            self._bind(interface)
        except BaseException:  # Ctrl+C, too: it is raised again
            self._socket.close()
            raise

    def fileno(self) -> int:
        """Return the file descriptor to wait on: readable when a block is ready."""
        return self._socket.fileno()

    def blocks(self) -> Iterator[list[Packet]]:
        """Yield the packets of each block that is ready. They are valid until the next one is requested."""
        while True:
            base = self._at * BLOCK
            status, count, first = _BLOCK_HEAD.unpack_from(self._map, base)
            if not status & _USER:
                return
            yield self._packets(base, first, count)
            struct.pack_into("=I", self._map, base + 8, 0)
            self._at = (self._at + 1) % BLOCKS

    def last_blocks(self) -> Iterator[list[Packet]]:
        """Stop receiving packets, and yield those that were received before."""
        attach(self._socket, DROP)
        time.sleep(3 * RETIRE_MS / 1_000)
        yield from self.blocks()

    def statistics(self) -> tuple[int, int]:
        """Return how many packets passed the filter, and how many of them the kernel dropped, as no block was free.

        The kernel counts with 32 bits, and from zero after each call."""
        received, dropped, _ = struct.unpack("=III", self._socket.getsockopt(_SOL_PACKET, _STATISTICS, 12))
        self._received += received
        self._dropped += dropped
        return self._received, self._dropped

    def trouble(self) -> OSError | None:
        """Return the socket's pending error, such as that the interface went down."""
        number = self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        return OSError(number, os.strerror(number)) if number else None

    def close(self) -> None:
        """Stop capturing."""
        self._socket.close()
        self._map.close()

    def _mapped(self) -> mmap.mmap:
        self._socket.setsockopt(_SOL_PACKET, _VERSION, _TPACKET_V3)
        frames = BLOCK // _FRAME * BLOCKS
        request = struct.pack("=7I", BLOCK, BLOCKS, _FRAME, frames, RETIRE_MS, 0, 0)
        self._socket.setsockopt(_SOL_PACKET, _RX_RING, request)
        return mmap.mmap(self._socket.fileno(), BLOCK * BLOCKS)

    def _bind(self, interface: Interface) -> None:
        """Start receiving packets. Python's `bind` has no address that means all interfaces."""
        address = _BIND.pack(socket.AF_PACKET, socket.htons(_ALL_PROTOCOLS), interface.number)
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.bind(self._socket.fileno(), address, len(address)):
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))

    def _ignore_outgoing(self) -> None:
        """Let the kernel skip what it would deliver twice. Before Linux 4.20 it can't, and `_packets` does."""
        try:
            self._socket.setsockopt(_SOL_PACKET, _IGNORE_OUTGOING, 1)
        except OSError:
            return

    def _packets(self, base: int, at: int, count: int) -> list[Packet]:
        block = memoryview(self._map)[base : base + BLOCK]
        found: list[Packet] = []
        read = _PACKET_HEAD.unpack_from
        for _ in range(count):
            after, seconds, nanoseconds, captured, length, status, start, tag, tag_type = read(block, at)
            if not (block[at + _PACKET_TYPE_AT] == _OUTGOING and self._is_twice(block, at)):
                data: bytes | memoryview = block[at + start : at + start + captured]
                if status & _VLAN_VALID and self.link_type == ETHERNET:
                    tag_type = tag_type if status & _VLAN_TPID_VALID else _VLAN
                    data = bytes(data[:_TAG_AT]) + struct.pack(">HH", tag_type, tag & 0xFFFF) + data[_TAG_AT:]
                    length += 4
                elif self.link_type == LINUX_SLL2:
                    data = _sll2(block, at) + data
                    length += _SLL2.size
                found.append((seconds * 1_000_000_000 + nanoseconds, length, data))
            at += after
        return found

    def _is_twice(self, block: memoryview, at: int) -> bool:
        """Whether an outgoing packet will be delivered again as incoming."""
        return self._twice >= 0 and _ADDRESS.unpack_from(block, at + _ADDRESS_AT)[1] == self._twice


def _sll2(block: memoryview, at: int) -> bytes:
    """Return the cooked header of a packet, built from its address."""
    protocol, index, hardware, kind, size, address = _ADDRESS.unpack_from(block, at + _ADDRESS_AT)
    return _SLL2.pack(protocol, index, hardware, kind, min(size, 8), address)
