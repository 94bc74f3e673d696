"""Connections of which the packets matter: who closes when. Times are in milliseconds since the beginning."""

import struct
from pathlib import Path

import dissector
from tests.findings.conversations import Values
from tests.traffic import ACK, FIN, PSH, RST, SYN, Packet, ethernet

START_S = 1_790_000_000


class Wire:
    """One connection, from its SYN on."""

    def __init__(
        self, number: int = 1, *, at: float = 0, client: str = "10.0.0.5", server: tuple[str, int] = ("10.0.0.9", 9092),
        client_id: str = "made",
    ) -> None:  # fmt: skip
        self._ends = {"client": (client, 40_000 + number), "server": server}
        self._next = {True: 1000, False: 5000}
        self._client_id = client_id
        self._ids = 0
        self.packets: list[tuple[float, bytes]] = []
        self._send(at, True, SYN)
        self._send(at, False, SYN | ACK)

    def _send(self, at: float, from_client: bool, flags: int, data: bytes = b"") -> None:
        ack = self._next[not from_client] if flags & ACK else 0
        packet = Packet(from_client, self._next[from_client], data, flags, ack, **self._ends)
        self._next[from_client] += len(data) + bool(flags & (SYN | FIN))
        self.packets.append((at, ethernet(packet)))

    def request(
        self, at: float, name: str, version: int, body: Values | None = None, number: int | None = None
    ) -> None:
        """A request."""
        self._ids += 1
        number = self._ids if number is None else number
        data = dissector.encode_request(name, version, body or {}, correlation_id=number, client_id=self._client_id)
        self.sent(at, data)

    def response(
        self, at: float, name: str, version: int, body: Values | None = None, number: int | None = None
    ) -> None:
        """A response, by default to the last request."""
        number = self._ids if number is None else number
        self.received(at, dissector.encode_response(name, version, body or {}, correlation_id=number))

    def exchange(
        self, at: float, name: str, version: int, body: Values | None = None, answer: Values | None = None
    ) -> None:
        """A request, and a millisecond later its response."""
        self.request(at, name, version, body)
        self.response(at + 1, name, version, answer)

    def sent(self, at: float, data: bytes) -> None:
        """Bytes of the client's."""
        self._send(at, True, ACK | PSH, data)

    def received(self, at: float, data: bytes) -> None:
        """Bytes of the server's."""
        self._send(at, False, ACK | PSH, data)

    def acknowledge(self, at: float) -> None:
        """A segment of the client's without bytes."""
        self._send(at, True, ACK)

    def again(self, at: float, data: bytes, back: int) -> None:
        """Bytes of the client's that were sent before: `back` bytes before the next ones."""
        following = self._next[True]
        self._next[True] -= back
        self._send(at, True, ACK | PSH, data)
        self._next[True] = following

    def close(self, at: float, *, by_client: bool = False, reset: bool = False) -> None:
        """FIN or RST of one side."""
        self._send(at, by_client, ACK | (RST if reset else FIN))


def pcap_of(folder: Path, *wires: Wire) -> str:
    """A capture of these connections; its name."""
    path = folder / "made.pcap"
    path.write_bytes(pcap_bytes(*wires))
    return str(path)


def pcap_bytes(*wires: Wire) -> bytes:
    """The same as bytes."""
    packets = sorted((packet for wire in wires for packet in wire.packets), key=lambda each: each[0])
    parts = [struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 262_144, 1)]
    for at, data in packets:
        micros = round(at * 1000)
        seconds = START_S + micros // 1_000_000
        parts.append(struct.pack("<IIII", seconds, micros % 1_000_000, len(data), len(data)) + data)
    return b"".join(parts)
