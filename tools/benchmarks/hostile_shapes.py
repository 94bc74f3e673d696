"""Captures made to cost much, each a function of a size in bytes. `commands` measures what they cost."""

import random
import struct
from collections.abc import Callable, Iterator
from typing import Final

from tests.traffic import ACK, FIN, PSH, RST, SYN, Packet, Turn, block, conversation, ethernet, pcap, request, response
from tools.benchmarks.captures import PCAPS

Shape = Callable[[int, random.Random], bytes]
SHAPES: Final[dict[str, Shape]] = {}


def shape(make: Shape) -> Shape:
    """Register a function from a size in bytes to a capture file of about that size."""
    SHAPES[make.__name__.replace("_", " ")] = make
    return make


def file_of(packets: Iterator[Packet], size: int, **flavour: int) -> bytes:
    """A pcap file of packets, about so large."""
    made: list[bytes] = []
    room = size
    for packet in packets:
        made.append(ethernet(packet))
        room -= len(made[-1]) + 16
        if room < 0:
            break
    return pcap(made, **flavour)


class Talk:
    """One connection whose packets are made one by one."""

    def __init__(self, port: int = 40_001) -> None:
        self.client = ("10.0.0.1", port)
        self.at = {True: 1_000, False: 5_000}

    def open(self) -> list[Packet]:
        return conversation([], client=self.client, isn=(999, 4_999))

    def says(self, side: bool, data: bytes, skip: int = 0) -> Packet:
        self.at[side] += skip
        packet = Packet(side, self.at[side], data, ACK | PSH, self.at[not side], client=self.client)
        self.at[side] += len(data)
        return packet


def sequence(says: Callable[[Talk, int], Iterator[Packet]], *, opened: bool = True) -> Iterator[Packet]:
    """One connection, for ever."""
    talk = Talk()
    yield from talk.open() if opened else []
    number = 0
    while True:
        yield from says(talk, number)
        number += 1


@shape
def requests_on_both_sides(size: int, _chance: random.Random) -> bytes:
    def says(talk: Talk, n: int) -> Iterator[Packet]:
        yield talk.says(True, request(n))
        yield talk.says(False, request(n))

    return file_of(sequence(says), size)


@shape
def requests_on_both_sides_without_a_handshake(size: int, _chance: random.Random) -> bytes:
    def says(talk: Talk, n: int) -> Iterator[Packet]:
        yield talk.says(True, request(n, version=n % 13))
        yield talk.says(False, request(n, api_key=n % 60))

    return file_of(sequence(says, opened=False), size)


@shape
def orphans_of_random_bytes(size: int, chance: random.Random) -> bytes:
    return file_of(sequence(lambda talk, n: iter([talk.says(False, response(n, chance.randbytes(40)))])), size)


@shape
def orphans_of_random_sizes(size: int, chance: random.Random) -> bytes:
    return file_of(
        sequence(lambda talk, n: iter([talk.says(False, response(n, chance.randbytes(chance.randint(2, 400))))])), size
    )


@shape
def orphans_of_few_bytes(size: int, chance: random.Random) -> bytes:
    """Small numbers, which many layouts fit."""
    return file_of(
        sequence(lambda talk, n: iter([talk.says(False, response(n, bytes(chance.choices((0, 0, 0, 1, 2), k=30))))])),
        size,
    )


@shape
def orphans_of_many_connections(size: int, chance: random.Random) -> bytes:
    def packets() -> Iterator[Packet]:
        for n in range(1 << 20):
            yield Talk(1_024 + n % 60_000).says(False, response(n, chance.randbytes(40)))

    return file_of(packets(), size)


def _one_side(size: int, *, from_client: bool) -> bytes:
    from dissector.capture import open_capture
    from dissector.core.store import Store

    packets: list[bytes] = []
    for name in ("java", "librdkafka", "librdkafka-pipelined"):
        [batch] = open_capture(str(PCAPS / f"{name}.pcapng"), Store()).batches()
        places = zip(batch.offset.tolist(), batch.captured.tolist(), strict=True)
        packets += [batch.data[at : at + length].tobytes() for at, length in places]
    at = 34 if from_client else 36  # the server's port is that of the receiver, or of the sender
    ports = [int.from_bytes(each[36:38], "big") for each in packets if len(each) > 54]
    port = max(set(ports), key=ports.count)
    kept = [each for each in packets if len(each) > 54 and int.from_bytes(each[70 - at : 72 - at], "big") == port]
    made: list[bytes] = []
    room = size
    number = 0
    while room > 0:
        number += 1
        for each in kept:
            changed = each[:26] + bytes([10, number >> 16, number >> 8 & 255, number & 255]) + each[30:]
            changed = (
                changed
                if not from_client
                else changed[:30] + bytes([10, 9, number >> 8 & 255, number & 255]) + changed[34:]
            )
            made.append(changed)
            room -= len(changed) + 16
    return pcap(made)


@shape
def only_what_brokers_send(size: int, _chance: random.Random) -> bytes:
    return _one_side(size, from_client=False)


@shape
def only_what_clients_send(size: int, _chance: random.Random) -> bytes:
    return _one_side(size, from_client=True)


@shape
def a_hole_behind_each_request(size: int, _chance: random.Random) -> bytes:
    def says(talk: Talk, n: int) -> Iterator[Packet]:
        yield talk.says(True, request(n), skip=100)
        yield talk.says(False, response(n))

    return file_of(sequence(says), size)


@shape
def a_hole_behind_each_response(size: int, _chance: random.Random) -> bytes:
    def says(talk: Talk, n: int) -> Iterator[Packet]:
        yield talk.says(True, request(n))
        yield talk.says(False, response(n), skip=7)

    return file_of(sequence(says), size)


def _blocks(size: int, between: Callable[[int], bytes]) -> bytes:
    parts = [block("<", 0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1)), _interface()]
    packets = sequence(lambda talk, n: iter([talk.says(True, request(n)), talk.says(False, response(n))]))
    room, number = size, 0
    while room > 0:
        data = ethernet(next(packets))
        time = 1_700_000_000_000_000 + number
        head = struct.pack("<IIIII", 0, time >> 32, time & 0xFFFFFFFF, len(data), len(data))
        parts += (between(number), block("<", 6, head + data + bytes(-len(data) % 4)))
        room -= len(parts[-1]) + len(parts[-2])
        number += 1
    return b"".join(parts)


def _interface() -> bytes:
    return block("<", 1, struct.pack("<HHI", 1, 0, 0))


@shape
def an_interface_a_packet(size: int, _chance: random.Random) -> bytes:
    return _blocks(size, lambda n: _interface())


@shape
def a_section_a_packet(size: int, _chance: random.Random) -> bytes:
    section = block("<", 0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1))
    return _blocks(size, lambda n: section + _interface())


@shape
def a_comment_a_packet(size: int, _chance: random.Random) -> bytes:
    return _blocks(size, lambda n: block("<", 5, struct.pack("<IIIHH", 0, 0, n, 1, 8) + b"comment!" + bytes(4)))


@shape
def names_of_hosts(size: int, _chance: random.Random) -> bytes:
    return _blocks(size, lambda n: block("<", 4, struct.pack("<HHI", 1, 8, n) + b"abc\0" + bytes(4)))


@shape
def random_bytes_on_the_port(size: int, chance: random.Random) -> bytes:
    return file_of(sequence(lambda talk, n: iter([talk.says(n % 2 == 0, chance.randbytes(400))])), size)


@shape
def random_bytes_on_other_ports(size: int, chance: random.Random) -> bytes:
    def packets() -> Iterator[Packet]:
        for n in range(1 << 20):
            yield Packet(
                n % 2 == 0, n * 400, chance.randbytes(400), ACK, 0, ("10.0.0.1", 40_000 + n % 100), ("10.0.0.2", 8_080)
            )

    return file_of(packets(), size)


@shape
def zeros_on_the_port(size: int, _chance: random.Random) -> bytes:
    return file_of(sequence(lambda talk, n: iter([talk.says(n % 2 == 0, bytes(400))])), size)


@shape
def segments_of_one_byte(size: int, _chance: random.Random) -> bytes:
    def says(talk: Talk, n: int) -> Iterator[Packet]:
        for side, data in ((True, request(n)), (False, response(n))):
            for at in range(len(data)):
                yield talk.says(side, data[at : at + 1])

    return file_of(sequence(says), size)


@shape
def segments_in_reverse(size: int, _chance: random.Random) -> bytes:
    def says(talk: Talk, n: int) -> Iterator[Packet]:
        yield from reversed([talk.says(True, request(64 * n + k)) for k in range(64)])
        yield from reversed([talk.says(False, response(64 * n + k)) for k in range(64)])

    return file_of(sequence(says), size)


@shape
def segments_repeated(size: int, _chance: random.Random) -> bytes:
    def says(talk: Talk, n: int) -> Iterator[Packet]:
        for side, data in ((True, request(n)), (False, response(n))):
            yield from [talk.says(side, data)] * 8

    return file_of(sequence(says), size)


@shape
def connections_of_one_packet(size: int, _chance: random.Random) -> bytes:
    def packets() -> Iterator[Packet]:
        for n in range(1 << 24):
            yield Packet(True, n, b"", SYN, 0, (f"10.{n >> 16 & 255}.{n >> 8 & 255}.{n & 255}", 1_024 + n % 60_000))

    return file_of(packets(), size)


@shape
def connections_of_one_request(size: int, _chance: random.Random) -> bytes:
    def packets() -> Iterator[Packet]:
        for n in range(1 << 24):
            yield Packet(
                True, n, request(n), ACK, 0, (f"10.{n >> 16 & 255}.{n >> 8 & 255}.{n & 255}", 1_024 + n % 60_000)
            )

    return file_of(packets(), size)


@shape
def one_port_opened_and_closed(size: int, _chance: random.Random) -> bytes:
    def packets() -> Iterator[Packet]:
        for n in range(1 << 24):
            isn = (n * 70_001 % 2**32, n * 90_001 % 2**32)
            yield from conversation([Turn(True, request(n)), Turn(False, response(n))], isn=isn)
            yield Packet(True, isn[0] + 60, b"", RST if n % 2 else FIN | ACK)

    return file_of(packets(), size)


@shape
def a_short_snap_length(size: int, _chance: random.Random) -> bytes:
    def says(talk: Talk, n: int) -> Iterator[Packet]:
        yield talk.says(True, request(n, body=bytes(600)))
        yield talk.says(False, response(n, bytes(600)))

    return file_of(sequence(says), 8 * size, snaplen=96)


@shape
def sizes_that_lie(size: int, chance: random.Random) -> bytes:
    def says(talk: Talk, n: int) -> Iterator[Packet]:
        lie = struct.pack(">i", chance.choice((0, -1, 3, 1 << 20, 100 << 20, 2**31 - 1)))
        yield talk.says(True, lie + request(n)[4:])
        yield talk.says(False, response(n))

    return file_of(sequence(says), size)


@shape
def unknown_apis(size: int, _chance: random.Random) -> bytes:
    def says(talk: Talk, n: int) -> Iterator[Packet]:
        yield talk.says(True, request(n, api_key=200 + n % 30_000))
        yield talk.says(False, response(n))

    return file_of(sequence(says), size)


@shape
def versions_of_the_future(size: int, chance: random.Random) -> bytes:
    def says(talk: Talk, n: int) -> Iterator[Packet]:
        yield talk.says(True, request(n, api_key=n % 60, version=30 + n % 900, body=chance.randbytes(30)))
        yield talk.says(False, response(n, chance.randbytes(30)))

    return file_of(sequence(says), size)


@shape
def bodies_of_random_bytes(size: int, chance: random.Random) -> bytes:
    def says(talk: Talk, n: int) -> Iterator[Packet]:
        yield talk.says(True, request(n, api_key=n % 60, body=chance.randbytes(30)))
        yield talk.says(False, response(n, chance.randbytes(30)))

    return file_of(sequence(says), size)


@shape
def one_correlation_id(size: int, _chance: random.Random) -> bytes:
    def says(talk: Talk, n: int) -> Iterator[Packet]:
        yield talk.says(True, request(7))
        yield talk.says(False, response(7)) if n % 3 else talk.says(True, request(7))

    return file_of(sequence(says), size)


@shape
def responses_in_any_order(size: int, chance: random.Random) -> bytes:
    def says(talk: Talk, n: int) -> Iterator[Packet]:
        ids = list(range(500 * n, 500 * n + 500))
        yield from (talk.says(True, request(each)) for each in ids)
        chance.shuffle(ids)
        yield from (talk.says(False, response(each)) for each in ids)

    return file_of(sequence(says), size)


@shape
def tokens_of_a_login(size: int, chance: random.Random) -> bytes:
    def says(talk: Talk, n: int) -> Iterator[Packet]:
        if not n:
            yield talk.says(True, request(1, api_key=17, version=0, body=b"\0\x05PLAIN"))
            yield talk.says(False, response(1, b"\0\0\0\0\0\0"))
        token = chance.randbytes(30)
        yield talk.says(True, struct.pack(">i", len(token)) + token)

    return file_of(sequence(says), size)


@shape
def long_client_ids(size: int, _chance: random.Random) -> bytes:
    def says(talk: Talk, n: int) -> Iterator[Packet]:
        yield talk.says(True, request(n, client_id=b"%030d" % n + b"x" * 1_000))
        yield talk.says(False, response(n))

    return file_of(sequence(says), size)


@shape
def a_file_damaged_everywhere(size: int, chance: random.Random) -> bytes:
    packets = sequence(lambda talk, n: iter([talk.says(True, request(n)), talk.says(False, response(n))]))
    data = bytearray(file_of(packets, size))
    for at in range(40, len(data), 997):
        data[at] = chance.randrange(256)
    return bytes(data)


@shape
def a_transcript_in_hex(size: int, _chance: random.Random) -> bytes:
    lines: list[str] = []
    room, number = size, 0
    while room > 0:
        lines += [f"> {request(number).hex()}", f"< {response(number).hex()}"]
        room -= len(lines[-1]) + len(lines[-2]) + 2
        number += 1
    return "\n".join(lines).encode()
