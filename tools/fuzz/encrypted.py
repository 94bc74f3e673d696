"""Connections with TLS that a hostile network or a broken disk has changed: records, hellos, and the key log."""

import random
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

from dissector.capture import open_capture
from dissector.conversation import Packet, pcapng
from dissector.core.store import Store
from tools.fuzz.captures import Packets, packets_changed, payload_of
from tools.fuzz.mutation import mutated
from tools.fuzz.seeds import PCAPS
from tools.lab.key_log import SECRETS_BLOCK

HEADER: Final = 5
"""Bytes of a record's header: type, version, length."""
_SECOND: Final = 10**9
_PORTS: Final = slice(34, 38)
"""Of TCP, behind Ethernet and IPv4 without options."""

_FORMS: Final = (
    ("CLIENT_RANDOM {} {}\n", 32), ("PMS_CLIENT_RANDOM {} {}\n", 32), ("RSA {} {}\n", 8),
    ("RSA Session-ID:{} Master-Key:{}\n", 32), ("CLIENT_TRAFFIC_SECRET_0 {} {}\n", 32),
    ("SERVER_TRAFFIC_SECRET_1 {} {}\n", 32), ("SERVER_HANDSHAKE_TRAFFIC_SECRET {} {}\n", 32),
)  # fmt: skip
"""Lines of a key log, and how many bytes name a connection in each."""


class Recording(NamedTuple):
    """A capture, connection by connection."""

    connections: list[Packets]
    key_log: bytes


@cache
def recordings() -> list[Recording]:
    """The bundled ones."""
    return [_read(path) for path in sorted((PCAPS / "tls").glob("*.pcapng"))]


def _read(path: Path) -> Recording:
    data = path.read_bytes()
    start = int.from_bytes(data[4:8], "little")
    assert int.from_bytes(data[start : start + 4], "little") == SECRETS_BLOCK
    size = int.from_bytes(data[start + 12 : start + 16], "little")
    [batch] = open_capture(str(path), Store()).batches()
    connections: dict[bytes, Packets] = {}
    for at, size_of_packet in zip(batch.offset.tolist(), batch.captured.tolist(), strict=True):
        packet = batch.data[at : at + size_of_packet].tobytes()
        ports = packet[_PORTS]
        connections.setdefault(min(ports, ports[2:] + ports[:2]), []).append(packet)
    return Recording(list(connections.values()), data[start + 16 : start + 16 + size])


def encrypted_file(chance: random.Random) -> bytes:
    """A pcapng file with some connections of a recording, and with its secrets, each perhaps changed."""
    recording = chance.choice(recordings())
    chosen = chance.sample(recording.connections, k=chance.choice((1, 1, 2)))
    packets = [each for some in chosen for each in _beginning_changed(some, chance)]
    if chance.random() < 0.7:
        packets = [_record_changed(each, chance) if chance.random() < 0.05 else each for each in packets]
    packets = packets_changed(packets, chance, chance.choice((0, 0, 1, 2)))
    timed = [Packet(n * _SECOND // 1000, each) for n, each in enumerate(packets)]
    return b"".join(pcapng(timed, "fuzz", _key_log_changed(recording.key_log, chance)))


def _beginning_changed(packets: Packets, chance: random.Random) -> Packets:
    """A connection as it is, from some packet on, or without one of its first packets, which have the hellos."""
    way = chance.random()
    if way < 0.6:
        return packets
    if way < 0.85:
        return packets[chance.randrange(len(packets)) :]
    lost = chance.randrange(min(8, len(packets)))
    return packets[:lost] + packets[lost + 1 :]


def _record_changed(packet: bytes, chance: random.Random) -> bytes:
    """A packet with another record at the beginning of its payload: the header, the message in it, or all."""
    at = payload_of(packet)
    payload = packet[at:]
    if len(payload) <= HEADER:
        return packet
    edge = chance.choice((HEADER, min(len(payload), HEADER + 80), len(payload)))
    changed = mutated(payload[:edge], chance)[:edge].ljust(edge, b"\0")
    return packet[:at] + changed + payload[edge:]


def _key_log_changed(data: bytes, chance: random.Random) -> bytes:
    """A key log: whole, without lines, cut, damaged, empty, or among the secrets of others in all forms."""
    way, lines = chance.random(), data.splitlines(keepends=True)
    if way < 0.5:
        return data
    if way < 0.55:
        return b""
    if way < 0.6:
        others = [_secret_of_others(chance) for _ in range(chance.randint(1, 8))]
        return b"".join(chance.sample(lines + others, k=len(lines) + len(others)))
    if way < 0.7:
        return b"".join(line for line in lines if chance.random() < 0.7)
    if way < 0.8:
        return data[: chance.randrange(len(data))]
    if way < 0.9:
        return b"".join(mutated(line, chance) if chance.random() < 0.3 else line for line in lines)
    return mutated(data, chance)


def _secret_of_others(chance: random.Random) -> bytes:
    form, name_size = chance.choice(_FORMS)
    return form.format(chance.randbytes(name_size).hex(), chance.randbytes(chance.choice((32, 48, 48))).hex()).encode()
