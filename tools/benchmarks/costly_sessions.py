"""Captures made to cost much by what grows behind few bytes: fetch sessions, names, groups, and batches that expand.

Each function registers itself as a shape of `hostile_shapes`. Half of such a capture says what there is, and the other
half refers to it, so that work of both halves multiplied shows.
"""

import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import dissector
from dissector.protocol.records.from_json import records_bytes
from tests.traffic import ACK, Packet, ethernet, request, response
from tools.benchmarks.hostile_shapes import Talk, file_of, shape

SEGMENT: Final = 16_000
Exchange = tuple[bytes, bytes]
_TOPIC: Final = "orders"


def _packets(talk: Talk, exchange: Exchange) -> Iterator[Packet]:
    """The packets of a request and its response."""
    for side, data in zip((True, False), exchange, strict=True):
        for at in range(0, len(data), SEGMENT):
            yield talk.says(side, data[at : at + SEGMENT])


def _one_connection(size: int, exchange: Callable[[int], Exchange]) -> bytes:
    """One connection, its exchanges by number."""

    def packets() -> Iterator[Packet]:
        talk, number = Talk(), 0
        yield from talk.open()
        while True:
            yield from _packets(talk, exchange(number))
            number += 1

    return file_of(packets(), size)


def _exchange(name: str, version: int, number: int, body: dict[str, Any], answer: dict[str, Any]) -> Exchange:
    return (
        dissector.encode_request(name, version, body, correlation_id=number, client_id="c"),
        dissector.encode_response(name, version, answer, correlation_id=number),
    )


def _fetch(
    number: int, added: dict[str, list[int]], forgotten: dict[str, list[int]], *, epoch: int | None = None,
    answered: Sequence[int] = (),
) -> Exchange:  # fmt: skip
    """A Fetch of a session, its epoch the number, and a response with records of no partition."""
    topics = [{"topic": name, "partitions": [{"partition": n} for n in some]} for name, some in added.items()]
    lost = [{"topic": name, "partitions": some} for name, some in forgotten.items()]
    epoch = number if epoch is None else epoch
    partitions = [{"partition_index": n, "high_watermark": number} for n in answered]
    responses = [{"topic": _TOPIC, "partitions": partitions}] if answered else []
    return _exchange(
        "Fetch", 12, number,
        {"session_id": 7 if epoch else 0, "session_epoch": epoch, "topics": topics, "forgotten_topics_data": lost},
        {"session_id": 7, "responses": responses},
    )  # fmt: skip


@shape
def sessions_that_grow_by_a_partition(size: int, _chance: random.Random) -> bytes:
    return _one_connection(size, lambda n: _fetch(n, {_TOPIC: [n]}, {}))


@shape
def sessions_that_grow_by_a_topic(size: int, _chance: random.Random) -> bytes:
    return _one_connection(size, lambda n: _fetch(n, {f"{_TOPIC}-{n}": [0, 1]}, {}))


def _continued(size: int, later: Callable[[int, int], Exchange], topics: int = 1) -> bytes:
    """A session of half of the bytes, and Fetches that continue it."""
    count = max(topics, size // 2 // 40)
    names = [f"{_TOPIC}-{n}" if topics > 1 else _TOPIC for n in range(topics)]
    all_of = {name: list(range(count // topics)) for name in names}
    return _one_connection(size, lambda n: later(n, count) if n else _fetch(0, all_of, {}))


@shape
def a_large_session_continued(size: int, _chance: random.Random) -> bytes:
    return _continued(size, lambda n, _count: _fetch(n, {}, {}))


@shape
def a_session_of_many_topics_continued(size: int, _chance: random.Random) -> bytes:
    return _continued(size, lambda n, _count: _fetch(n, {}, {}), topics=max(2, size // 2 // 80))


@shape
def a_large_session_with_answers(size: int, _chance: random.Random) -> bytes:
    return _continued(size, lambda n, count: _fetch(n, {}, {}, answered=[n * 7 % count]))


@shape
def a_session_that_churns(size: int, _chance: random.Random) -> bytes:
    """Each Fetch forgets a partition and adds another one."""
    return _continued(size, lambda n, count: _fetch(n, {_TOPIC: [count + n]}, {_TOPIC: [n - 1]}))


@shape
def a_session_begun_again(size: int, _chance: random.Random) -> bytes:
    """A session of 200 partitions, begun anew before each continuation."""
    every = list(range(200))
    return _one_connection(size, lambda n: _fetch(n, {_TOPIC: every} if n % 2 == 0 else {}, {}, epoch=n % 2))


@shape
def sessions_on_many_connections(size: int, _chance: random.Random) -> bytes:
    """300 partitions a connection, all connections in turn."""
    count = max(2, size // 2 // 11_000)
    talks = [Talk(1_024 + n) for n in range(count)]

    def packets() -> Iterator[Packet]:
        for n, talk in enumerate(talks):
            yield from talk.open()
            yield from _packets(talk, _fetch(0, {f"{_TOPIC}-{n}": list(range(300))}, {}))
        number = 1
        while True:
            for talk in talks:
                yield from _packets(talk, _fetch(number, {}, {}))
            number += 1

    return file_of(packets(), size)


def _metadata(number: int, topics: int, *, first: int = 0) -> Exchange:
    partitions = [{"partition_index": n, "leader_id": 1, "replica_nodes": [1], "isr_nodes": [1]} for n in range(3)]
    names = [{"name": f"{_TOPIC}-{first + n}", "partitions": partitions} for n in range(topics)]
    brokers = [{"node_id": 1, "host": "10.0.0.2", "port": 9092}]
    return _exchange("Metadata", 9, number, {"topics": None}, {"brokers": brokers, "topics": names})


@shape
def metadata_again_and_again(size: int, _chance: random.Random) -> bytes:
    one = _metadata(7, 300)
    return _one_connection(size, lambda n: one)


@shape
def metadata_of_ever_new_topics(size: int, _chance: random.Random) -> bytes:
    return _one_connection(size, lambda n: _metadata(n, 20, first=20 * n))


@shape
def huge_offset_fetches(size: int, _chance: random.Random) -> bytes:
    count = max(10, size // 4 // 20)
    partitions = [{"partition_index": n, "committed_offset": n} for n in range(count)]
    asked = [{"name": _TOPIC, "partition_indexes": list(range(count))}]
    answer = {"topics": [{"name": _TOPIC, "partitions": partitions}]}
    one = _exchange("OffsetFetch", 7, 1, {"group_id": "g", "topics": asked}, answer)
    return _one_connection(size, lambda n: one)


@shape
def huge_described_configs(size: int, _chance: random.Random) -> bytes:
    configs = [{"name": f"some.setting.{n}", "value": str(n)} for n in range(max(10, size // 4 // 40))]
    answer = {"results": [{"resource_type": 2, "resource_name": _TOPIC, "configs": configs}]}
    asked = {"resources": [{"resource_type": 2, "resource_name": _TOPIC, "configuration_keys": None}]}
    one = _exchange("DescribeConfigs", 4, 1, asked, answer)
    return _one_connection(size, lambda n: one)


@shape
def groups_of_one_member(size: int, _chance: random.Random) -> bytes:
    def exchange(n: int) -> Exchange:
        group = {"group_id": f"group-{n}", "generation_id": n, "member_id": f"member-{n}"}
        return _exchange("Heartbeat", 4, n, group, {})

    return _one_connection(size, exchange)


@shape
def a_group_of_many_members(size: int, _chance: random.Random) -> bytes:
    def exchange(n: int) -> Exchange:
        protocols = [{"name": "range", "metadata": b"\0\0\0\0\0\x01\0\x06orders\0\0\0\0"}]
        asked = {"group_id": "g", "member_id": f"m-{n}", "protocol_type": "consumer", "protocols": protocols}
        members = [{"member_id": f"m-{each}", "metadata": b""} for each in range(max(0, n - 20), n)]
        answer = {"generation_id": n, "leader": f"m-{n}", "member_id": f"m-{n}", "members": members}
        return _exchange("JoinGroup", 7, n, asked, answer)

    return _one_connection(size, exchange)


@shape
def many_client_ids(size: int, _chance: random.Random) -> bytes:
    def exchange(n: int) -> Exchange:
        body = {"topics": [{"name": f"t-{n}"}]}
        return dissector.encode_request(
            "Metadata", 9, body, correlation_id=n, client_id=f"client-{n}"
        ), dissector.encode_response("Metadata", 9, {"topics": []}, correlation_id=n)

    return _one_connection(size, exchange)


@shape
def produce_to_ever_new_topics(size: int, _chance: random.Random) -> bytes:
    batch = _batch(0, 1, 10)

    def exchange(n: int) -> Exchange:
        data = [{"name": f"t-{n}", "partition_data": [{"index": n, "records": batch}]}]
        answer = [{"name": f"t-{n}", "partition_responses": [{"index": n, "base_offset": n}]}]
        return _exchange("Produce", 9, n, {"acks": -1, "topic_data": data}, {"responses": answer})

    return _one_connection(size, exchange)


@shape
def one_huge_frame(size: int, _chance: random.Random) -> bytes:
    one = _metadata(7, size // 150)
    return _one_connection(len(one[1]) * 11 // 10, lambda n: one if not n else _metadata(n, 0))


@shape
def one_huge_frame_cut(size: int, _chance: random.Random) -> bytes:
    """It lacks its last bytes."""
    one = _metadata(7, size // 150)
    return _one_connection(len(one[1]), lambda n: one)


@shape
def frames_of_a_few_bytes(size: int, _chance: random.Random) -> bytes:
    """Many frames a segment."""
    frame = b"\0\0\0\x0a\0\x12\0\0\0\0\0\x07\0\0"
    answer = b"\0\0\0\x0a\0\0\0\x07\0\0\0\0\0\0"

    def packets() -> Iterator[Packet]:
        talk = Talk()
        yield from talk.open()
        while True:
            yield talk.says(True, frame * 1_000)
            yield talk.says(False, answer * 1_000)

    return file_of(packets(), size)


def _batch(codec: int, records: int, value: int) -> bytes:
    """A batch of equal records, their values of so many bytes."""
    made = [
        {"offset": n, "timestamp": 1_790_000_000_000, "key": None, "value": "00" * value, "headers": []}
        for n in range(records)
    ]
    return records_bytes(
        {"batches": [{"base_offset": 0, "magic": 2, "attributes": codec, "base_timestamp": 1_790_000_000_000,
                      "records": made}]}
    )  # fmt: skip


def _produced(size: int, section: bytes) -> bytes:
    data = [{"name": _TOPIC, "partition_data": [{"index": 0, "records": section}]}]
    answer = [{"name": _TOPIC, "partition_responses": [{"index": 0, "base_offset": 1}]}]
    one = _exchange("Produce", 9, 7, {"acks": -1, "topic_data": data}, {"responses": answer})
    return _one_connection(size, lambda n: one)


@shape
def batches_that_become_15_megabytes(size: int, _chance: random.Random) -> bytes:
    return _produced(size, _batch(4, 1, 15 << 20))


@shape
def batches_of_20_000_records(size: int, _chance: random.Random) -> bytes:
    return _produced(size, _batch(4, 19_000, 1))


@shape
def responses_to_none_of_many_requests(size: int, _chance: random.Random) -> bytes:
    """Half of the bytes are requests that wait, the other half are responses with other ids."""
    count = size // 2 // len(ethernet(Packet(True, 0, request(1))))

    def packets() -> Iterator[Packet]:
        talk = Talk()
        yield from talk.open()
        yield from (talk.says(True, request(n)) for n in range(count))
        yield from (talk.says(False, response(count + n, bytes(30))) for n in range(1 << 24))

    return file_of(packets(), size)


@shape
def segments_without_a_connection(size: int, _chance: random.Random) -> bytes:
    """Empty segments of ever new connections."""

    def packets() -> Iterator[Packet]:
        for n in range(1 << 24):
            yield Packet(True, n, b"", ACK, 1, (f"10.{n >> 16 & 255}.{n >> 8 & 255}.{n & 255}", 1_024 + n % 60_000))

    return file_of(packets(), size)
