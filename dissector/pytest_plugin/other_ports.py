"""Why a capture of a port has no packet: nothing listens there, or the client talks to another port.

A second packet socket keeps what its buffer holds of the other ports. Nobody reads it unless the capture stays empty,
so it costs nothing.

Invariants:
  * a user who may not open packet sockets here, or no Linux, means that less is said, never an error;
  * at most `MOST_PACKETS` are read.
"""

import contextlib
import socket
from itertools import count
from typing import Final

import dissector
from dissector.capture.errors import CaptureError
from dissector.capture.live.bpf import attach, ports_filter
from dissector.capture.live.interfaces import LINUX, LOOPBACK, interface, listening_ports
from dissector.capture.live.settings import CaptureSettings

MOST_PACKETS: Final = 10_000
BUFFER: Final = 1 << 23
"""Bytes of packets that are asked for; the kernel may allow fewer."""
_ALL_PROTOCOLS: Final = 0x0003
_LARGEST: Final = 1 << 18
_MICROSECOND: Final = 1e-6


class OtherPorts:
    """The packets of an interface since the constructor, whatever their ports."""

    def __init__(self, settings: CaptureSettings) -> None:
        self._settings = settings
        self._socket: socket.socket | None = None
        where = interface(settings.interface)
        if not (LINUX and settings.ports and where is not None and where.ethernet):
            return
        with contextlib.suppress(OSError):
            self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER)
            self._socket.setblocking(False)
            attach(self._socket, ports_filter(()))
            self._socket.bind((where.name, _ALL_PROTOCOLS))

    def close(self) -> None:
        """Stop listening. It may be called twice."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def hint(self) -> str:
        """Return why there is no packet, as far as that is known, in one line."""
        settings = self._settings
        empty = f"no packet on {settings.interface}, {settings.filter_label}"
        if seen := self._kafka_ports():
            ports = ", ".join(map(str, seen))
            return f"{empty}; Kafka was seen on port{'s' * (len(seen) > 1)} {ports}: kafka_capture(port={seen[0]})"
        listening = listening_ports() if settings.interface == LOOPBACK else None
        if settings.ports and listening is not None and not listening & {*settings.ports}:
            return f"{empty}; nothing on this machine listens there"
        return f'{empty}; does the client connect to a broker on this interface? (interface="any" for all)'

    def _kafka_ports(self) -> list[int]:
        """Return the ports of the servers to which somebody spoke Kafka."""
        packets: list[bytes] = []
        with contextlib.suppress(OSError):  # there is none left
            while self._socket is not None and len(packets) < MOST_PACKETS:
                packets.append(self._socket.recv(_LARGEST))
        times = (number * _MICROSECOND for number in count())
        try:
            with dissector.open(list(zip(times, packets, strict=False))) as capture:
                servers = {each.server for each in capture if each.kind == "exchange"}
        except (CaptureError, ValueError):
            return []
        return sorted({int(port) for port in (each.rpartition(":")[2] for each in servers) if port.isdecimal()})
