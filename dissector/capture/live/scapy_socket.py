"""Packets of scapy's socket, for systems where neither our own engine nor dumpcap nor tcpdump can capture.

scapy reads BPF devices (macOS) and libpcap, too, but one packet at a time in Python: some 60,000 a second where our own
engine has a million. Its times are floating-point seconds, good to a microsecond, and it does not tell the length of a
packet on the wire. Tried on Linux alone.

Invariants:
  * scapy is imported only if it is installed and nothing else captures;
  * no packet is captured that the filter drops. libpcap compiles it for scapy; where it is missing, `bpf` does, and an
    expression that names more than ports is refused.
"""

import logging
import os
import select
import socket
import struct
from collections.abc import Iterator
from contextlib import suppress
from importlib.util import find_spec
from typing import Any, Final, Self

from dissector.capture.live.bpf import DROP, Program, attach, ports_filter, ports_of
from dissector.capture.live.interfaces import ANY, LINUX, Interface
from dissector.capture.live.packet_ring import Packet
from dissector.capture.live.settings import CaptureSettings
from dissector.core.times import SECOND

ENGINE: Final = "scapy"
NOTE: Final = "captured with scapy, which keeps up with 60,000 packets a second: install tcpdump for more"
_MOST: Final = 1 << 18
"""Bytes of the largest packet: segments that the kernel has not cut yet are larger than frames."""
_AT_ONCE: Final = 4_096
_BUFFER: Final = 16 << 20
"""Bytes of packets that wait for us: scapy's 64 kB are full after some hundred packets."""
_SOL_PACKET, _STATISTICS, _IGNORE_OUTGOING = 263, 6, 23
_RCVBUFFORCE = 33


class ScapySocket:
    """An open socket of scapy's, with what `PacketRing` offers."""

    def __init__(self, opened: Any, link_type: int) -> None:
        self._socket = opened
        self.link_type = link_type
        """A LINKTYPE_ number."""
        self._received = self._dropped = 0

    @classmethod
    def open(cls, settings: CaptureSettings, where: Interface, refused: list[str]) -> Self | None:
        """Open it; return None if it does not capture, with its reason in `refused`."""
        if find_spec("scapy") is None:
            refused.append("scapy is not installed")
            return None
        if settings.interface == ANY:  # it captures one at a time
            return None
        logging.getLogger("scapy").setLevel(logging.ERROR)
        program: Program | None = None
        if LINUX and not _finds_libpcap():
            ports = ports_of(settings.expression) if settings.expression else settings.ports
            if ports is None:
                refused.append(f"{ENGINE}: without libpcap no filter but 'tcp port N or tcp port N' can be compiled")
                return None
            program = ports_filter(ports)
        import scapy.layers.l2
        from scapy.config import conf
        from scapy.error import Scapy_Exception

        assert scapy.layers.l2  # it registers link types
        try:
            opened: Any = conf.L2listen(
                iface=settings.interface,
                filter=None if program else settings.filter_expression,
                promisc=settings.promiscuous,
            )
            if program:
                _replace_filter(opened.ins, program)
        except (OSError, Scapy_Exception) as error:
            reason = getattr(error, "strerror", None) or str(error)
            refused.append(f"{ENGINE}: {reason.lower() if isinstance(error, OSError) else reason}")
            return None
        if LINUX:
            with suppress(OSError):  # it takes CAP_NET_ADMIN
                opened.ins.setsockopt(socket.SOL_SOCKET, _RCVBUFFORCE, _BUFFER)
        if LINUX and where.loopback:
            opened.ins.setsockopt(_SOL_PACKET, _IGNORE_OUTGOING, 1)  # each packet goes out, and comes in again
        found = cls(opened, int(conf.l2types.layer2num[opened.LL]))
        found._forget_drops()
        return found

    def fileno(self) -> int:
        """Return its descriptor, for `select`."""
        return int(self._socket.fileno())

    def blocks(self) -> Iterator[list[Packet]]:
        """Yield the packets that are there; many packets take several calls."""
        packets: list[Packet] = []
        while len(packets) < _AT_ONCE and self._socket.select([self._socket], 0):
            _, data, seconds = self._socket.recv_raw(_MOST)
            if data is not None:
                packets.append((round(seconds * SECOND), len(data), data))
        self._received += len(packets)
        if packets:
            yield packets

    def last_blocks(self) -> Iterator[list[Packet]]:
        """Yield the packets that arrived until now."""
        while found := list(self.blocks()):
            yield from found

    def statistics(self) -> tuple[int, int]:
        """Return how many packets passed the filter, and how many of them the system dropped. libpcap's sockets do not
        tell drops."""
        if LINUX:
            _, dropped = struct.unpack("=II", self._socket.ins.getsockopt(_SOL_PACKET, _STATISTICS, 8))
            self._dropped += dropped
        elif hasattr(self._socket, "get_stats"):  # BPF devices count from their opening
            _, self._dropped = self._socket.get_stats()
        return self._received + self._dropped, self._dropped

    def _forget_drops(self) -> None:
        """Begin to count drops: scapy's socket has no filter at first, and a small buffer that others' packets fill."""
        self.statistics()
        self._dropped = 0

    def trouble(self) -> OSError | None:
        """Return the socket's pending error."""
        if not LINUX:
            return None
        number = self._socket.ins.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        return OSError(number, os.strerror(number)) if number else None

    def close(self) -> None:
        """Stop capturing."""
        self._socket.close()


def _finds_libpcap() -> bool:
    try:
        import scapy.libs.winpcapy
    except OSError:
        return False
    return bool(scapy.libs.winpcapy)


def _replace_filter(opened: socket.socket, program: Program) -> None:
    """Let a socket that received everything receive what the program keeps, and nothing from before."""
    attach(opened, DROP)
    while select.select([opened], [], [], 0)[0]:
        opened.recv(_MOST)
    attach(opened, program)
