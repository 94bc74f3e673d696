"""Which requests are harmless, of all APIs and versions; the kernel and the reader in Python agree."""

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dissector
from dissector.index.secrecy import are_harmless, is_harmless, secret_keys
from dissector.protocol.codec.plan import plan
from dissector.protocol.embedded.secrets import names_metadata_log
from dissector.protocol.embedded.topics import CLUSTER_METADATA
from dissector.protocol.kernel.shredding import FrameMemory
from dissector.protocol.message_layout import request_layout
from dissector.protocol.schema.api_keys import ApiKey
from dissector.protocol.schema.loader import alternatives, apis
from dissector.protocol.schema.model import Api
from tests.cases import cases
from tests.protocol.random_messages import make

FLEXIBLE = 2
"""The version of a request's header that has tagged fields."""
UNKNOWN_TAG = b"\x01\x8f\x4e\x01?"
KINDS = [(known, version) for known in apis() for version in known.versions]
UNKNOWN = [
    (key, version)
    for known in apis()
    for key, version in ((known.key, known.versions.high + 1), (known.key, known.versions.low - 1), (known.key, -1))
] + [(0x7FF0, 0), (-1, 0)]


def request_of(key: int, version: int, chance: random.Random, client_id: str = "made", tags: bytes = b"\0") -> bytes:
    """A request of random values behind its size, API key, version and client id; `tags` are those of its header."""
    layout = request_layout(key, version)
    assert layout.header is not None
    assert layout.body is not None
    _, body = make(plan(layout.body, layout.body_version), chance)
    head = key.to_bytes(2, "big", signed=True) + version.to_bytes(2, "big", signed=True) + chance.randbytes(4)
    name = len(client_id).to_bytes(2, "big") + client_id.encode() if layout.header_version else b""
    return framed(head + name + (tags if layout.header_version == FLEXIBLE else b"") + body)


def framed(content: bytes) -> bytes:
    return len(content).to_bytes(4, "big") + content


def variants(data: bytes, chance: random.Random) -> list[bytes]:
    """A request as it is; with texts that are not UTF-8; cut; with bytes behind its last field."""
    content = data[4:]
    cut = [framed(content[: chance.randrange(len(content))]) for _ in range(4)]
    behind = [framed(content + chance.randbytes(size)) for size in (1, 2, 30)]
    return [data, data.replace(b"orders", b"or\xff\xc0rs"), *cut, framed(content[:-1]), *behind]


def of_kernel(key: int, version: int, requests: list[bytes]) -> list[bool]:
    memory = np.frombuffer(b"".join(requests), np.uint8)
    sizes = np.array([len(each) for each in requests], np.int64)
    frames = FrameMemory.of_buffer(memory, np.cumsum(sizes) - sizes, sizes)
    found = are_harmless(frames, np.full(len(sizes), key, np.int16), np.full(len(sizes), version, np.int16))
    return found.tolist()


def of_reader(key: int, version: int, requests: list[bytes]) -> list[bool]:
    return [is_harmless(key, version, each, len(each), is_whole=True) for each in requests]


@pytest.mark.long
@cases("known", apis(), ids=lambda known: known.name)
def test_both_readers_agree_on_requests_of_each_version(known: Api) -> None:
    for version in known.versions:
        chance = random.Random(f"{known.name} {version}")
        made = [request_of(known.key, version, chance) for _ in range(3)]
        names_log = request_of(known.key, version, chance, client_id=CLUSTER_METADATA)
        requests = [names_log, *(each for data in made for each in variants(data, chance))]
        kernel, reader = of_kernel(known.key, version, requests), of_reader(known.key, version, requests)
        if known.key == ApiKey.FETCH:  # its topics are left to the reader
            assert not any(kernel)
        elif alternatives(known.request, version):  # the other layouts are, too
            assert all(one <= other for one, other in zip(kernel, reader, strict=True))
        else:
            assert kernel == reader
            assert not kernel[0] or CLUSTER_METADATA.encode() not in names_log
            assert sum(kernel) >= len(made)  # those that are well-formed


@given(kind=st.sampled_from(KINDS), seed=st.integers(0, 1000), data=st.data())
def test_no_damage_makes_the_kernel_believe_more(kind: tuple[Api, int], seed: int, data: st.DataObject) -> None:
    known, version = kind
    request = bytearray(request_of(known.key, version, random.Random(seed)))
    for at, byte in data.draw(st.lists(st.tuples(st.integers(8, len(request) - 1), st.integers(0, 255)), max_size=4)):
        request[at] = byte
    requests = [bytes(request), bytes(request[: data.draw(st.integers(0, len(request)))]), bytes(request) + b"\0"]
    for one, other in zip(
        of_kernel(known.key, version, requests), of_reader(known.key, version, requests), strict=True
    ):
        assert one <= other


def judged(key: int, version: int, data: bytes) -> bool:
    return is_harmless(key, version, data, len(data), is_whole=True)


@pytest.mark.long
@cases("known", apis(), ids=lambda known: known.name)
def test_requests_of_each_version_are_harmless_as_they_are_and_not_otherwise(known: Api) -> None:
    for version in known.versions:
        chance = random.Random(f"{known.name} {version}")
        for data in (request_of(known.key, version, chance) for _ in range(3)):
            content = data[4:]
            if known.key != ApiKey.FETCH:  # its topics decide, and not its numbers
                assert judged(known.key, version, data) != names_metadata_log(data)
            assert not judged(known.key, version, framed(content[:8]))
            assert not any(judged(known.key, version, framed(content + bytes(size))) for size in (1, 2, 30))
        names_log = request_of(known.key, version, chance, client_id=CLUSTER_METADATA)
        if known.key != ApiKey.FETCH and CLUSTER_METADATA.encode() in names_log:
            assert not judged(known.key, version, names_log)


@given(kind=st.sampled_from(UNKNOWN), content=st.binary(max_size=60))
def test_requests_of_unknown_apis_and_versions_are_not_harmless(kind: tuple[int, int], content: bytes) -> None:
    assert not any(judged(*kind, each) for each in (framed(content), framed(bytes(30))))


@given(kind=st.sampled_from(KINDS), seed=st.integers(0, 1000), data=st.data())
def test_a_request_without_its_header_is_not_harmless(kind: tuple[Api, int], seed: int, data: st.DataObject) -> None:
    known, version = kind
    request = request_of(known.key, version, random.Random(seed))
    cut = request[: data.draw(st.integers(0, 7))]
    assert not is_harmless(known.key, version, cut, len(cut), is_whole=False)


@given(kind=st.sampled_from(KINDS), seed=st.integers(0, 1000))
def test_a_request_that_is_not_whole_is_left_to_the_reader(kind: tuple[Api, int], seed: int) -> None:
    known, version = kind
    request = request_of(known.key, version, random.Random(seed))
    nowhere = FrameMemory(np.zeros(1, np.uint64), np.array([len(request)]), None)
    assert are_harmless(nowhere, np.array([known.key]), np.array([version])).tolist() == [False]


@given(kind=st.sampled_from(KINDS), seed=st.integers(0, 1000))
def test_a_header_with_a_field_that_no_schema_has_is_left_to_the_reader(kind: tuple[Api, int], seed: int) -> None:
    known, version = kind
    if request_layout(known.key, version).header_version == FLEXIBLE:
        request = request_of(known.key, version, random.Random(seed), tags=UNKNOWN_TAG)
        assert of_kernel(known.key, version, [request]) == [False]


def test_apis_with_secrets_are_known_by_their_keys() -> None:
    logins = {ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE, ApiKey.ALTER_CONFIGS, ApiKey.FETCH_SNAPSHOT}
    assert logins <= secret_keys()
    assert not {ApiKey.METADATA, ApiKey.PRODUCE, ApiKey.FETCH, ApiKey.API_VERSIONS} & secret_keys()


def test_a_fetch_is_harmless_by_its_topics_and_not_by_its_numbers() -> None:
    """Partition 0, leader epoch 0 and offset 1 are the bytes of the metadata log's topic id."""
    partition = {"partition": 0, "current_leader_epoch": 0, "fetch_offset": 1, "partition_max_bytes": 1}
    for topic, is_other in (("orders", True), (CLUSTER_METADATA, False)):
        data = dissector.encode_request("Fetch", 12, {"topics": [{"topic": topic, "partitions": [partition]}]})
        assert is_harmless(ApiKey.FETCH, 12, data, len(data), is_whole=True) == is_other
        assert not is_harmless(ApiKey.FETCH, 12, data, len(data) - 1, is_whole=False)
