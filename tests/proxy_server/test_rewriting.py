"""What a proxy changes in responses: hosts and ports of brokers, the sizes around them, and nothing else."""

import random
from collections.abc import Iterator
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissector.protocol.codec.plan import plan
from dissector.protocol.codec.reader import reader
from dissector.protocol.codec.writer import write
from dissector.protocol.message_layout import PREFIX, response_layout, sized
from dissector.protocol.schema.api_keys import ApiKey
from dissector.protocol.schema.loader import api
from dissector.protocol.wire import uvarint
from dissector.proxy_server.address_fields import ADDRESSES
from dissector.proxy_server.address_walk import FoundAddress
from dissector.proxy_server.rewriting import HELD_BACK, HELD_BYTES, filler, rewriter
from tests.cases import cases
from tests.conftest import costly
from tests.protocol.random_messages import make

HOST, PORT = "proxy.example.internal", 19092
VERSIONS = [
    (key, version)
    for key in ADDRESSES
    if (known := api(key)) is not None
    for version in range(known.versions.low, known.versions.high + 1)
]


class OwnAddresses:
    """Has one address for all; keeps what it was asked for and what was said."""

    def __init__(self) -> None:
        self.asked: list[FoundAddress] = []
        self.said: list[str] = []

    def of(self, found: FoundAddress) -> tuple[str, int] | None:
        self.asked.append(found)
        return HOST, PORT

    def complain(self, words: str) -> None:
        self.said.append(words)


def frame_of(key: int, version: int, body: object) -> bytes:
    layout = response_layout(key, version, b"")
    assert layout.header is not None
    assert layout.body is not None
    head = write(layout.header, layout.header_version, {"correlation_id": 7})
    return sized(head + write(layout.body, layout.body_version, body))


def body_of(key: int, version: int, frame: bytes) -> dict[str, object]:
    layout = response_layout(key, version, b"")
    assert layout.header is not None
    assert layout.body is not None
    _, at = reader(layout.header, layout.header_version)(frame, PREFIX, len(frame))
    body, at = reader(layout.body, layout.body_version)(frame, at, len(frame))
    assert at == len(frame) == PREFIX + int.from_bytes(frame[:PREFIX], "big")
    return body


def passed(key: int, version: int, frame: bytes, advertised: OwnAddresses, cuts: random.Random | None = None) -> bytes:
    """What goes on of a frame that comes in pieces."""
    sink = rewriter(key, version, len(frame), advertised)
    if sink is None:
        return frame
    out, at = b"", 0
    while at < len(frame):
        step = len(frame) if cuts is None else cuts.choice((1, 2, 7, 50, 1000))
        out += b"".join(sink.feed(frame[at : at + step]))
        at += step
    return out


def replaced(value: object, key: int) -> object:
    """The same body with the address of the proxy in each place that has a broker's."""
    for place in ADDRESSES[key]:
        value = _replaced(value, place.path)
    return value


def _replaced(value: object, path: tuple[str, ...]) -> object:
    if isinstance(value, list):
        return [_replaced(each, path) for each in value]
    if not isinstance(value, dict):
        return value
    if path:
        return value | {path[0]: _replaced(value[path[0]], path[1:])} if path[0] in value else value
    if value.get("host") and 0 < value["port"] < 1 << 16:
        return value | {"host": HOST, "port": PORT}
    return value


def put_addresses(value: object, chance: random.Random, key: int) -> None:
    """Put an address where there is a host and a port, mostly a valid one. At the end of Fetch, a port that is none may
    hide the addresses before it."""
    for each in value if isinstance(value, list) else value.values() if isinstance(value, dict) else ():
        put_addresses(each, chance, key)
    if isinstance(value, dict) and "host" in value:
        is_valid = chance.random() < 0.9
        if is_valid or key == ApiKey.FETCH:
            value["port"] = chance.choice((9092, 1, 65_535, 9_984))  # the last is a multiple of 256
        if is_valid:
            value["host"] = chance.choice(("b", "broker-1.kafka.example", "10.0.0.7", "::1", "x" * 200))


@pytest.mark.parametrize(("key", "version"), VERSIONS)
@costly(8)
@given(st.integers(0, 2**32))
def test_only_hosts_and_ports_change_whatever_the_pieces(key: int, version: int, seed: int) -> None:
    chance = random.Random(seed)
    known = api(key)
    assert known is not None
    body, _ = make(plan(known.response, version), chance)
    put_addresses(body, chance, key)
    frame = frame_of(key, version, body)
    out = passed(key, version, frame, OwnAddresses(), chance)
    assert body_of(key, version, out) == replaced(body_of(key, version, frame), key)


@pytest.mark.parametrize(("key", "version"), VERSIONS)
@costly(8)
@given(st.integers(0, 2**32))
def test_each_address_is_told_with_its_node(key: int, version: int, seed: int) -> None:
    chance = random.Random(seed)
    known = api(key)
    assert known is not None
    body, _ = make(plan(known.response, version), chance)
    put_addresses(body, chance, key)
    advertised = OwnAddresses()
    passed(key, version, frame_of(key, version, body), advertised)
    assert [(each.host, each.port, each.node) for each in advertised.asked] == list(_addresses(body, key))


def _addresses(body: dict[str, object], key: int) -> Iterator[tuple[object, object, object]]:
    for place in ADDRESSES[key]:
        yield from _at(body, place.path, place.node, None)


def _at(value: object, path: tuple[str, ...], node: str, around: object) -> Iterator[tuple[object, object, object]]:
    if isinstance(value, list):
        for each in value:
            yield from _at(each, path, node, around)
    elif isinstance(value, dict):
        around = value.get(node, around)
        if path:
            yield from _at(value.get(path[0]), path[1:], node, around)
        elif value.get("host") and 0 < value["port"] < 1 << 16:
            yield value["host"], value["port"], around


@pytest.mark.long
@pytest.mark.parametrize("key", [ApiKey.FETCH, ApiKey.SHARE_FETCH])
@pytest.mark.parametrize("records", [20_000, 1_000_003])
@cases("longer", [*range(-1, 7), 100, 127, 128, 129, 130, 131, 132, 300])
def test_a_long_response_goes_on_as_it_comes_and_addresses_at_its_end_are_told_if_they_fit(
    key: ApiKey, records: int, longer: int
) -> None:
    """`longer`: than the proxy's address; at least by two bytes, or not at all, it can be written in as many bytes."""
    known = api(key)
    assert known is not None
    partitions = [{"partition_index": number, "records": bytes(records)} for number in range(5)]
    host = "b" * (len(HOST) + longer)
    endpoints = [{"node_id": 3, "host": host, "port": 9092, "rack": "r1"}]
    frame = frame_of(key, known.versions.high, {"responses": [{"partitions": partitions}], "node_endpoints": endpoints})
    advertised = OwnAddresses()
    sink = rewriter(key, known.versions.high, len(frame), advertised)
    assert len(frame) > HELD_BYTES
    assert sink is not None
    out, held = b"", 0
    for at in range(0, len(frame), 65_536):
        out += b"".join(sink.feed(frame[at : at + 65_536]))
        held = max(held, min(len(frame), at + 65_536) - len(out))
    assert held <= HELD_BACK
    assert len(out) == len(frame)
    read = body_of(key, known.versions.high, out)
    fits = longer == 0 or longer >= 2
    assert (read.get("node_endpoints") or []) == ([endpoints[0] | {"host": HOST, "port": PORT}] if fits else [])
    assert read["responses"] == body_of(key, known.versions.high, frame)["responses"]


@pytest.mark.parametrize("key", [ApiKey.FETCH, ApiKey.SHARE_FETCH])
@pytest.mark.parametrize("records", [HELD_BYTES // 6, HELD_BYTES // 5 + 1])
def test_a_long_response_without_addresses_is_the_same(key: ApiKey, records: int) -> None:
    known = api(key)
    assert known is not None
    partitions = [{"partition_index": number, "records": bytes(records)} for number in range(5)]
    frame = frame_of(key, known.versions.high, {"responses": [{"partitions": partitions}]})
    assert passed(key, known.versions.high, frame, OwnAddresses(), random.Random(3)) == frame


@cases("size", [*range(2, 300), *range(16_380, 16_400)])
def test_any_number_of_bytes_is_filled(size: int) -> None:
    made = filler(size)
    assert len(made) == size
    assert made[0] == 127
    content, at = uvarint(made, 1)
    assert at + content == size


@pytest.mark.parametrize(("key", "version"), VERSIONS)
@costly(8)
@given(st.integers(0, 2**32))
def test_what_is_damaged_or_unknown_goes_on_byte_for_byte(key: int, version: int, seed: int) -> None:
    chance = random.Random(seed)
    content = chance.randbytes(chance.choice((4, 9, 40, 300)))
    advertised = OwnAddresses()
    out = passed(key, version, sized(content), advertised, chance)
    if not advertised.asked:
        assert out == sized(content)
    known = api(key)
    assert known is not None
    assert passed(key, known.versions.high + 1, sized(content), advertised) == sized(content)


@pytest.mark.parametrize("version", range(5))
def test_versions_that_cannot_be_rewritten_are_not_offered(version: int) -> None:
    known = {key: found.versions.high for key in ADDRESSES if (found := api(key)) is not None}
    offered = [{"api_key": key, "min_version": 0, "max_version": 99} for key in (*ADDRESSES, ApiKey.JOIN_GROUP, 1234)]
    frame = frame_of(ApiKey.API_VERSIONS, version, {"api_keys": offered})
    read = body_of(
        ApiKey.API_VERSIONS,
        version,
        passed(ApiKey.API_VERSIONS, version, frame, OwnAddresses(), random.Random(1)),
    )
    ranges = cast(list[dict[str, int]], read["api_keys"])
    assert {each["api_key"]: each["max_version"] for each in ranges} == {
        **known, ApiKey.JOIN_GROUP: 99, 1234: 99,
    }  # fmt: skip


def test_versions_of_a_broker_that_lacks_this_one_are_capped_too() -> None:
    offered = [{"api_key": ApiKey.METADATA, "min_version": 0, "max_version": 99}]
    frame = frame_of(ApiKey.API_VERSIONS, 0, {"error_code": 35, "api_keys": offered})
    out = passed(ApiKey.API_VERSIONS, 4, frame, OwnAddresses())
    metadata = api(ApiKey.METADATA)
    assert metadata is not None
    assert body_of(ApiKey.API_VERSIONS, 0, out)["api_keys"] == [offered[0] | {"max_version": metadata.versions.high}]


def test_addresses_that_are_sent_before_they_can_be_replaced_are_said() -> None:
    """So many brokers at the end of a response that is too long to be held."""
    nodes = [{"node_id": n, "host": f"broker-{n}.kafka.example", "port": 9092, "rack": None} for n in range(800)]
    partition = {"partition_index": 0, "records": bytes(2 * HELD_BYTES)}
    body = {"responses": [{"partitions": [partition]}], "node_endpoints": nodes}
    frame, advertised = frame_of(ApiKey.FETCH, 16, body), OwnAddresses()
    assert passed(ApiKey.FETCH, 16, frame, advertised, random.Random(1)) == frame
    [words] = advertised.said
    assert words.startswith("Fetch: the addresses of 800 brokers")


def test_an_offer_that_is_too_long_to_be_one_is_not_held() -> None:
    advertised, size = OwnAddresses(), PREFIX + (1 << 30)
    assert rewriter(ApiKey.API_VERSIONS, 3, size, advertised) is None
    [words] = advertised.said
    assert words.startswith("ApiVersions: ")
