"""The captures that benchmarks read: real traffic again and again (chatty), and what the encoder made (the others).

Repeated traffic goes from other client addresses at later times, so every turn has connections of its own.
"""

import random
import struct
from itertools import cycle
from pathlib import Path
from typing import Final, NamedTuple

import dissector
from dissector.capture import open_capture
from dissector.conversation import Conversation, End, Turn, packets, pcapng
from dissector.core.store import Store
from dissector.protocol.records.from_json import records_bytes

PCAPS: Final = Path(__file__).parents[2] / "pcaps"
CHATTY: Final = PCAPS / "librdkafka-pipelined.pcapng"
"""An exchange in about 640 bytes of capture: 45 of them in 100 packets."""
SERVER_PORT: Final = 9092
ETHERNET: Final = 1
IPV4: Final = b"\x08\x00"
BATCH_RECORDS: Final = 1_000
RECORD: Final = 1_000
"""Bytes of a record's value in the bulk capture."""
_MILLISECOND: Final = 1_000_000
_START_NS: Final = 1_790_000_000_000_000_000
_SERVER: Final = End("127.0.0.1", SERVER_PORT)


def chatty(target: Path, packets: int) -> None:
    """The bundled capture again and again, until there are so many packets."""
    repeated(CHATTY, target, packets)


def mixed(target: Path, packets: int) -> None:
    """All bundled captures of Ethernet one behind the other, again and again, until there are so many packets."""
    sources = [each for each in map(_Source.of, sorted(PCAPS.glob("*.pcapng"))) if each is not None]
    written = 0
    with target.open("wb") as file:
        file.write(_file_header(ETHERNET))
        for turn, source in enumerate(cycle(sources)):
            if written >= packets:
                break
            base_ns = _START_NS + turn * max(each.span_ns for each in sources)
            file.write(b"".join(_record(_of_turn(raw, turn), base_ns + since) for raw, since in source.packets))
            written += len(source.packets)


class _Source(NamedTuple):
    """The packets of a capture, each with its time since the first, in nanoseconds."""

    packets: list[tuple[bytes, int]]
    span_ns: int

    @classmethod
    def of(cls, path: Path) -> "_Source | None":
        """Read a capture; None for one of another link type, or with other packets than those of IPv4."""
        store = Store()
        found: list[tuple[bytes, int]] = []
        for batch in open_capture(str(path), store).batches():
            for at, size, time_ns in zip(
                batch.offset.tolist(), batch.captured.tolist(), batch.time_ns.tolist(), strict=True
            ):
                found.append((bytes(batch.data[at : at + size]), time_ns))
            if (batch.link_type != ETHERNET).any():
                return None
        if any(raw[12:14] != IPV4 for raw, _ in found):
            return None
        start = found[0][1]
        return cls([(raw, time_ns - start) for raw, time_ns in found], found[-1][1] - start + _MILLISECOND)


def _of_turn(raw: bytes, turn: int) -> bytes:
    """Both ends at an address of its own each turn, so that connections of different turns differ."""
    address = bytes((127, 1 + turn // 65536, turn // 256 % 256, turn % 256))
    return raw[:26] + 2 * address + raw[34:]


def _file_header(link_type: int) -> bytes:
    return struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 262144, link_type)


def _record(raw: bytes, time_ns: int) -> bytes:
    return struct.pack("<IIII", *divmod(time_ns, 1_000_000_000), len(raw), len(raw)) + raw


def chatty_files(folder: Path, packets: int, count: int) -> None:
    """The same packets as so many files, one behind the other, each of whole turns."""
    turns = -(-packets // _turn_of(CHATTY))
    for number in range(count):
        first, end = turns * number // count, turns * (number + 1) // count
        repeated(CHATTY, folder / f"{number:03}.pcap", (end - first) * _turn_of(CHATTY), first)


def _turn_of(source: Path) -> int:
    return sum(len(batch) for batch in open_capture(str(source), Store()).batches())


def repeated(source: Path, target: Path, packets: int, first: int = 0) -> None:
    """A capture of `packets` packets: `source` again and again, from other addresses and at later times, from its
    `first` repetition on."""
    store = Store()
    [batch] = [batch for batch in open_capture(str(source), store).batches() if len(batch)]
    rows = list(zip(batch.offset.tolist(), batch.captured.tolist(), batch.time_ns.tolist(), strict=True))
    span = rows[-1][2] - rows[0][2] + _MILLISECOND
    raws = [bytes(batch.data[offset : offset + size]) for offset, size, _ in rows]
    clients = _client_places(raws)
    with target.open("wb") as file:
        file.write(_file_header(int(batch.link_type[0])))
        for turn in range(first, first - (-packets // len(rows))):
            block = bytearray()
            wanted = raws[: packets - (turn - first) * len(rows)]
            for raw, at, (_, _, time_ns) in zip(wanted, clients, rows, strict=False):
                block += _record(_moved(raw, at, turn), time_ns + span * turn)
            file.write(block)


def at_time(target: Path, packets: int, first: int, end_ns: int, most_ns: int) -> None:
    """The bundled capture again and again, from its `first` repetition on, with its last packet at a time and its first
    at most so long before, as files of a ring do not overlap."""
    repeated(CHATTY, target, packets, first * -(-packets // _turn_of(CHATTY)))
    store = Store()
    batches = [batch.time_ns for batch in open_capture(str(target), store).batches() if len(batch)]
    begun_ns, ended_ns = min(int(each.min()) for each in batches), max(int(each.max()) for each in batches)
    faster = min(1.0, most_ns / max(1, ended_ns - begun_ns))
    data, at = bytearray(target.read_bytes()), len(_file_header(ETHERNET))
    while at < len(data):
        seconds, nanoseconds, size = struct.unpack_from("<III", data, at)
        moved = end_ns - int((ended_ns - seconds * 1_000_000_000 - nanoseconds) * faster)
        struct.pack_into("<II", data, at, *divmod(moved, 1_000_000_000))
        at += 16 + size
    target.write_bytes(data)


def _client_places(raws: list[bytes]) -> list[int]:
    """Where in each Ethernet frame, with IPv4 and no options, the client's address is: the end that sent the first
    packet of its connection."""
    clients: dict[frozenset[bytes], bytes] = {}
    ends = [(raw[26:30] + raw[34:36], raw[30:34] + raw[36:38]) for raw in raws]
    return [26 if clients.setdefault(frozenset(pair), pair[0]) == pair[0] else 30 for pair in ends]


def _moved(raw: bytes, at: int, turn: int) -> bytes:
    """Another client address each turn, 127.x.y.z, at this place."""
    address = bytes((127, 1 + turn // 65536, turn // 256 % 256, turn % 256))
    return raw[:at] + address + raw[at + 4 :]


def bulk(target: Path, exchanges: int, *, batch_records: int = BATCH_RECORDS) -> None:
    """Produce requests and Fetch responses in turn, each with a batch of about a megabyte, in segments of 1,440 bytes:
    uncompressed, lz4, zstd, snappy, gzip."""
    chance = random.Random(20261121)
    sections = [_section(chance, codec, batch_records) for codec in (0, 3, 4, 2, 1)]
    turns = [turn for number in range(exchanges) for turn in _exchange(number, sections[number // 2 % len(sections)])]
    talk = Conversation(End("127.0.0.1", 40_001), _SERVER, turns)
    _write(target, [talk], "large batches")


def _section(chance: random.Random, codec: int, records: int) -> bytes:
    """A record batch: values of words, as compressible as real ones."""
    words = [f"{chance.getrandbits(40):x}" for _ in range(500)]
    values = [" ".join(chance.choices(words, k=RECORD // 11)).encode().hex() for _ in range(records)]
    batch = {
        "base_offset": 0, "magic": 2, "attributes": codec, "base_timestamp": 1_790_000_000_000,
        "records": [
            {"offset": n, "timestamp": 1_790_000_000_000 + n, "key": f"{n:08x}", "value": value, "headers": []}
            for n, value in enumerate(values)
        ],
    }  # fmt: skip
    return records_bytes({"batches": [batch]})


def _exchange(number: int, section: bytes) -> list[Turn]:
    request, response = (_produce if number % 2 else _fetch)(number, section)
    at = _START_NS + number * 2 * _MILLISECOND
    return [Turn(at, True, request), Turn(at + _MILLISECOND, False, response)]


def _produce(number: int, section: bytes) -> tuple[bytes, bytes]:
    partition = {"index": 0, "records": section}
    topics = [{"name": "orders", "partition_data": [partition]}]
    request = dissector.encode_request(
        "Produce", 9, {"acks": -1, "timeout_ms": 30_000, "topic_data": topics},
        correlation_id=number, client_id="bench",
    )  # fmt: skip
    answers = [{"name": "orders", "partition_responses": [{"index": 0, "base_offset": number * BATCH_RECORDS}]}]
    return request, dissector.encode_response("Produce", 9, {"responses": answers}, correlation_id=number)


def _fetch(number: int, section: bytes) -> tuple[bytes, bytes]:
    wanted = [{"topic": "orders", "partitions": [{"partition": 0, "fetch_offset": number * BATCH_RECORDS}]}]
    request = dissector.encode_request(
        "Fetch", 12, {"max_wait_ms": 500, "min_bytes": 1, "topics": wanted}, correlation_id=number, client_id="bench"
    )
    partition = {"partition_index": 0, "high_watermark": 10**6, "records": section}
    answers = [{"topic": "orders", "partitions": [partition]}]
    return request, dissector.encode_response("Fetch", 12, {"responses": answers}, correlation_id=number)


def connections(target: Path, count: int) -> None:
    """Short connections, one exchange each."""
    talks = [
        Conversation(End(f"10.{number // 50_000}.0.1", 10_000 + number % 50_000), _SERVER, _heartbeats(number, 1))
        for number in range(count)
    ]
    _write(target, talks, "many connections")


def pipelined(target: Path, count: int) -> None:
    """One connection with many exchanges."""
    _write(target, [Conversation(End("127.0.0.1", 40_001), _SERVER, _heartbeats(0, count))], "one long connection")


def _heartbeats(first: int, count: int) -> list[Turn]:
    """Exchanges one after the other, the first at a time of its own."""
    turns = []
    for number in range(count):
        body = {"group_id": "bench", "generation_id": number, "member_id": "bench-1"}
        request = dissector.encode_request("Heartbeat", 4, body, correlation_id=number, client_id="bench")
        response = dissector.encode_response("Heartbeat", 4, {}, correlation_id=number)
        at = _START_NS + (first + number) * _MILLISECOND
        turns += [Turn(at, True, request), Turn(at + _MILLISECOND // 2, False, response)]
    return turns


def moving(target: Path, count: int, *, max_wait_ms: int) -> None:
    """A client of which no two exchanges are alike to the byte: offsets, sizes and records move on."""
    talk = Conversation(End("127.0.0.1", 40_001), _SERVER, moving_turns(count, max_wait_ms=max_wait_ms))
    _write(target, [talk], "what moves on")


def moving_turns(count: int, *, max_wait_ms: int) -> list[Turn]:
    """What such a client and its server say, a request and its response in turn."""
    chance = random.Random(20261121)
    turns: list[Turn] = []
    for number in range(count):
        request, response = (_moving_fetch, _moving_produce, _moving_commit)[number % 3](number, chance, max_wait_ms)
        at = _START_NS + number * _MILLISECOND
        turns += [Turn(at, True, request), Turn(at + _MILLISECOND // 2, False, response)]
    return turns


def _moving_fetch(number: int, chance: random.Random, max_wait_ms: int) -> tuple[bytes, bytes]:
    wanted = {"topic": "orders", "partitions": [{"partition": 0, "fetch_offset": number, "log_start_offset": number}]}
    body = {"max_wait_ms": max_wait_ms, "session_id": 7, "session_epoch": number + 1, "topics": [wanted]}
    records = _records(number, chance)
    partition = {"partition_index": 0, "high_watermark": number + 9, "last_stable_offset": number, "records": records}
    answer = {"session_id": 7, "responses": [{"topic": "orders", "partitions": [partition]}]}
    return _exchanged("Fetch", 12, number, body, answer)


def _moving_produce(number: int, chance: random.Random, max_wait_ms: int) -> tuple[bytes, bytes]:
    written = {"name": "orders", "partition_data": [{"index": 0, "records": _records(number, chance)}]}
    response = {"name": "orders", "partition_responses": [{"index": 0, "base_offset": number}]}
    body = {"acks": -1, "timeout_ms": max_wait_ms, "topic_data": [written]}
    return _exchanged("Produce", 9, number, body, {"responses": [response]})


def _moving_commit(number: int, chance: random.Random, max_wait_ms: int) -> tuple[bytes, bytes]:
    committed = {"name": "orders", "partitions": [{"partition_index": 0, "committed_offset": number}]}
    body = {"group_id": "bench", "generation_id_or_member_epoch": 3, "member_id": "one", "topics": [committed]}
    response = {"name": "orders", "partitions": [{"partition_index": 0}]}
    return _exchanged("OffsetCommit", 8, number, body, {"topics": [response]})


def _records(number: int, chance: random.Random) -> bytes:
    """A batch of one record or a few, of any size."""
    value = chance.randbytes(chance.randint(10, 60)).hex()
    record = {"timestamp": _START_NS // 10**6 + number, "key": f"{number:08x}", "value": value, "headers": []}
    records = [record | {"offset": number + n} for n in range(chance.randint(1, 5))]
    times = {"base_timestamp": _START_NS // 10**6 + number, "producer_id": 5, "base_sequence": number}
    return records_bytes({"batches": [{"base_offset": number, "magic": 2, **times, "records": records}]})


def _exchanged(
    name: str, version: int, number: int, body: dict[str, object], answer: dict[str, object]
) -> tuple[bytes, bytes]:
    request = dissector.encode_request(name, version, body, correlation_id=number, client_id="bench")
    return request, dissector.encode_response(name, version, answer, correlation_id=number)


def _write(target: Path, talks: list[Conversation], words: str) -> None:
    with target.open("wb") as file:
        file.writelines(pcapng(packets(talks), f"made for a benchmark: {words}"))
