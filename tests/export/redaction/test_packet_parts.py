"""The packets of a redacted capture carry the chosen frames where they were: flags, numbers and sizes stay."""

import struct
from pathlib import Path
from typing import NamedTuple

from dissector.capture_session import Capture
from dissector.export.redaction.frames import Redactor
from dissector.export.redaction.packets import MAX_PAYLOAD, redacted_packets
from dissector.export.redaction.rows import RedactedFrames
from tests.cases import cases
from tests.traffic import ACK, FIN, PSH, RST, SERVER, SYN, Packet, Turn, conversation, ethernet, pcap, request, response

SENT = ACK | PSH


class Part(NamedTuple):
    """A packet of a redacted capture."""

    from_client: bool
    flags: int
    seq: int
    ack: int
    size: int
    """Bytes of payload that were sent, ..."""
    kept: int
    """... and that the capture has."""


def parts(folder: Path, packets: list[Packet], rows: list[int], *, snaplen: int = 262_144) -> list[Part]:
    """What is left of packets where these rows are chosen."""
    path = folder / "made.pcap"
    path.write_bytes(pcap([ethernet(packet) for packet in packets], snaplen=snaplen))
    with Capture([str(path)]) as capture:
        list(capture.read())
        found = []
        redactor = Redactor()
        for packet in redacted_packets(capture, rows, RedactedFrames(capture, redactor), redactor.addresses):
            ports, seq, ack, offset, flags = struct.unpack_from(">IIIBB", packet.data, 34)
            head = 34 + (offset >> 4) * 4
            found.append(
                Part(ports & 0xFFFF == SERVER[1], flags, seq, ack, packet.length - head, len(packet.data) - head)
            )
        return found


def whole(packet: Packet) -> Part:
    size = len(packet.payload)
    return Part(packet.from_client, packet.flags, packet.seq, packet.ack, size, size)


def cut(packet: Packet, kept: int) -> list[Part]:
    """What the capture has of a packet, then what it has not."""
    missing = len(packet.payload) - kept
    if missing <= 0:
        return [whole(packet)]
    there = whole(packet)._replace(size=kept, kept=kept)
    return [there, there._replace(seq=packet.seq + kept, size=missing, kept=0)]


ASKED = [Turn(True, request(1)), Turn(False, response(1)), Turn(True, request(2)), Turn(False, response(2))]
PACKETS = conversation(ASKED)
ACKED = Packet(True, 1001 + 2 * len(request(1)), b"", ACK, 5001 + 2 * len(response(1)))
ENDS = [
    Packet(True, ACKED.seq, b"", FIN | ACK, ACKED.ack), Packet(False, ACKED.ack, b"", FIN | ACK, ACKED.seq + 1),
]  # fmt: skip
RESET = Packet(False, ACKED.ack, b"", RST | ACK, ACKED.seq)


@cases("ends", [[], ENDS, [RESET]])
def test_what_carries_frames_and_what_opens_and_closes_is_there_and_nothing_else(
    tmp_path: Path, ends: list[Packet]
) -> None:
    packets = [*PACKETS, ACKED, *ends]
    assert parts(tmp_path, packets, [0, 1]) == [whole(each) for each in [*PACKETS, *ends]]
    assert parts(tmp_path, packets, [1]) == [whole(each) for each in [*PACKETS[:2], *PACKETS[4:], *ends]]


def test_another_connection_has_no_packet(tmp_path: Path) -> None:
    others = [conversation(ASKED, client=("10.0.0.1", 40_000 + port), isn=(port, port)) for port in range(2, 6)]
    packets = [packet for each in zip(PACKETS, *others, strict=True) for packet in each]
    for number, conversed in enumerate((PACKETS, *others)):
        assert parts(tmp_path, packets, [number]) == [whole(each) for each in conversed[:4]]


def test_of_a_segment_with_two_frames_the_chosen_one_is_left(tmp_path: Path) -> None:
    size = len(request(1))
    both = [
        *PACKETS[:2], Packet(True, 1001, request(1) + request(2), SENT | FIN, 5001),
        Packet(False, 5001, response(1) + response(2), SENT, 1001 + 2 * size),
    ]  # fmt: skip
    opened = [whole(each) for each in both[:2]]
    first, second = (
        Part(True, flags, seq, ack, half, half)
        for flags, seq, ack, half in ((SENT, 1001, 5001, size), (SENT | FIN, 1001 + size, 5001, size))
    )
    half, acked = len(response(1)), 1001 + 2 * size
    answers = [Part(False, SENT, 5001 + at, acked, half, half) for at in (0, half)]
    end = Part(True, SENT | FIN, 1001 + 2 * size, 5001, 0, 0)
    assert parts(tmp_path, both, [0]) == [*opened, first, end, answers[0]]
    assert parts(tmp_path, both, [1]) == [*opened, second, answers[1]]


@cases(("more", "sizes"), [(0, [MAX_PAYLOAD]), (1, [MAX_PAYLOAD, 1]), (300, [MAX_PAYLOAD, 300])])
def test_a_segment_that_is_too_large_for_one_packet_becomes_two(tmp_path: Path, more: int, sizes: list[int]) -> None:
    size = MAX_PAYLOAD + more
    large = request(1, body=bytes(size - len(request(1, body=b""))))
    packets = [*PACKETS[:2], Packet(True, 1001, large, SENT | FIN, 5001)]
    found = parts(tmp_path, packets, [0])[2:]
    assert found == [
        Part(True, SENT | FIN * (at == len(sizes) - 1), 1001 + sum(sizes[:at]), 5001, each, each)
        for at, each in enumerate(sizes)
    ]


def test_the_bytes_behind_a_syn_come_one_later(tmp_path: Path) -> None:
    size = len(request(1))
    packets = [Packet(True, 1000, request(1) + request(2), SYN), Packet(False, 5000, b"", SYN | ACK, 1001 + 2 * size)]
    assert parts(tmp_path, packets, [0, 1])[:2] == [
        Part(True, SYN, 1000, 0, size, size),
        Part(True, 0, 1001 + size, 0, size, size),
    ]


@cases("kept", [16, 20, 22])
def test_what_the_snap_length_cut_off_is_missing_again(tmp_path: Path, kept: int) -> None:
    for packets, rows in (([*PACKETS, *ENDS], [0, 1]), (conversation(ASKED[:1]), [0])):
        found = parts(tmp_path, packets, rows, snaplen=54 + kept)
        assert found == [part for packet in packets for part in cut(packet, kept)]
