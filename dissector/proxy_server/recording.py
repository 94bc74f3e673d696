"""Records what passes as TCP packets in a growing pcapng file: between the client and the broker, as if the proxy were
not there, with the proxy's times.

Invariants:
  * packets of a connection are in the order in which bytes passed, and have no gaps;
  * what was sent on is in the file, whenever the process is killed: it is written before anything else is done;
  * two open connections never have the same ends.
"""

import ctypes
import time
from collections.abc import Callable, Sequence
from ipaddress import ip_address
from typing import Final

from dissector.capture.live.writer import CaptureWriter
from dissector.conversation.headers import ACK, FIN, LONGEST_PAYLOAD, PSH, SYN, SegmentHeaders
from dissector.conversation.turns import End
from dissector.core.text import os_reason
from dissector.proxy_server.made_packets import MOST_BYTES, MOST_COPIED, PacketMaker

RST: Final = 4


class PacketLog:
    """Writes packets."""

    def __init__(self, writer: CaptureWriter, on_failure: Callable[[str], object]) -> None:
        """`on_failure` gets the reason once, if the file can't be written: nothing is recorded from then on."""
        self._writer = writer
        self._on_failure = on_failure
        self._failed = False
        """Whether nothing is written any more."""
        self.open: set[tuple[End, End]] = set()
        """The ends of open connections."""

    @property
    def packets(self) -> int:
        """Packets written."""
        return self._writer.delivered

    def add(self, time_ns: int, packet: bytes, comment: str = "") -> None:
        """Record a packet."""
        if comment:
            self._attempt(lambda: self._writer.commented((time_ns, len(packet), packet), comment))
        else:
            self._attempt(lambda: self._writer.packets([(time_ns, len(packet), packet)]))

    def add_made(self, block: memoryview) -> None:
        """Record a packet of which the block is made."""
        if self._failed:
            return
        try:
            self._writer.blocks(block, 1)
        except OSError as error:
            self._fail(error)

    def add_parts(self, parts: Sequence[memoryview]) -> None:
        """Record packets whose blocks are made, in parts: each has its content and what is before it, and there is an
        end."""
        self._attempt(lambda: self._writer.parts_of_blocks(parts, len(parts) // 2))

    def note(self, comments: list[str]) -> None:
        """Write comments."""
        self._attempt(lambda: self._writer.comments(comments))

    def statistics(self) -> None:
        """Write how many packets there are."""
        self._attempt(lambda: self._writer.statistics(self._writer.delivered, 0))

    def close(self) -> None:
        """Complete the file; what still comes is not recorded."""
        self._failed = True
        self._writer.close()

    def _attempt(self, write: Callable[[], object]) -> None:
        if self._failed:
            return
        try:
            write()
        except OSError as error:
            self._fail(error)

    def _fail(self, error: OSError) -> None:
        self._failed = True
        self._on_failure(os_reason(error))


class RecordedConnection:
    """One connection of a client to a broker, as it is recorded."""

    def __init__(self, log: PacketLog, client: End, server: End, time_ns: int) -> None:
        client, server = _of_one_family(client, server)
        while (client, server) in log.open:  # the ports of clients are unique for each port of the proxy only
            client = client._replace(port=client.port % 0xFFFF + 1)
        log.open.add((client, server))
        self._log = log
        self.client, self.server = client, server
        self._headers = SegmentHeaders(server, client, outward=False), SegmentHeaders(client, server, outward=True)
        seed = time_ns * 0x9E3779B1
        self._next = (ctypes.c_int64 * 2)(seed >> 16 & 0xFFFFFFFF, seed >> 8 & 0xFFFFFFFF)
        self._makers = [PacketMaker(headers, self._next, side) for side, headers in enumerate(self._headers)]
        self._ended = [False, False]
        self._is_open = True
        self._packet(time_ns, SYN, from_client=True)

    def accepted(self, time_ns: int) -> None:
        """The broker accepted it."""
        self._packet(time_ns, SYN | ACK, from_client=False)
        self._packet(time_ns, ACK, from_client=True)

    def data(self, time_ns: int, data: bytes | memoryview, comment: str = "", *, from_client: bool) -> None:
        """One side sent bytes; the first packet of them has the comment."""
        if comment:
            self._packet(time_ns, ACK | PSH, data[:LONGEST_PAYLOAD], comment, from_client=from_client)
            data = data[LONGEST_PAYLOAD:]
        if not data:
            return
        maker = self._makers[from_client]
        if len(data) <= MOST_COPIED:
            self._log.add_made(maker.block(time_ns, data))
            return
        for at in range(0, len(data), MOST_BYTES):
            self._log.add_parts(maker.parts(time_ns, data[at : at + MOST_BYTES]))

    def end(self, *, from_client: bool) -> None:
        """One side sends no more."""
        if not self._ended[from_client] and self._is_open:
            self._ended[from_client] = True
            self._packet(time.time_ns(), FIN | ACK, from_client=from_client)

    def reset(self, *, from_client: bool) -> None:
        """One side ended it at once."""
        if self._is_open and not all(self._ended):
            self._packet(time.time_ns(), RST | ACK, from_client=from_client)
            self._ended = [True, True]

    def note(self, comment: str, *, from_client: bool) -> None:
        """Say what became of bytes that one side sent, in a packet without content."""
        if self._is_open:
            self._packet(time.time_ns(), ACK, b"", comment, from_client=from_client)

    def close(self) -> None:
        """Nothing follows."""
        self._is_open = False
        self._log.open.discard((self.client, self.server))

    def _packet(
        self, time_ns: int, flags: int, payload: bytes | memoryview = b"", comment: str = "", *, from_client: bool
    ) -> None:
        seq, ack = self._next[from_client], self._next[not from_client] if flags & ACK else 0
        size = len(payload)
        self._next[from_client] = (seq + size + (flags & (SYN | FIN) != 0)) & 0xFFFFFFFF
        self._log.add(time_ns, self._headers[from_client].header(flags, seq, ack, size) + payload, comment)


def _of_one_family(client: End, server: End) -> tuple[End, End]:
    """Write an IPv4 address as one of IPv6 where the other end has one of IPv6 (RFC 4291, 2.5.5.2)."""
    if ip_address(client.host).version == ip_address(server.host).version:
        return client, server
    return _as_ipv6(client), _as_ipv6(server)


def _as_ipv6(end: End) -> End:
    return end if ip_address(end.host).version == 6 else End(f"::ffff:{end.host}", end.port)
