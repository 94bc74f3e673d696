"""What is found of many requests at once, to know that their connections have no secrets."""

import pickle
from collections.abc import Callable
from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dissector.capture_session import Capture
from dissector.index.secrecy import NEVER, Secrecy, _PacketByConnection
from dissector.protocol.schema.api_keys import ApiKey
from tests.cases import cases
from tests.index.test_indexer import Fed, Sent
from tests.traffic import Turn, capture_of, conversation, request

METADATA = request(1, version=1, body=b"\0\0\0\0")
LOGIN = request(2, api_key=ApiKey.SASL_HANDSHAKE, body=b"\0\5PLAIN")
VERSIONS = request(0, api_key=ApiKey.API_VERSIONS, body=b"")
OPENED = 2
"""The packets of the handshake."""


def read_secrecy(tmp_path: Path, *requests: bytes, opened: bool = True) -> Secrecy:
    """What is known when a client has sent these, each in a packet of its own."""
    packets = conversation([Turn(True, each) for each in requests], handshake=opened)
    with Capture([capture_of(tmp_path, packets)]) as capture:
        for _ in capture.read():
            pass
        secrecy = capture.pipeline.indexer.conversation_state._secrecy
        secrecy.update()
        return secrecy


def first_without(answers: Callable[[int, int], bool]) -> int | None:
    """The first of ten packets without secrets, none of which is followed by one that may have some."""
    answered = [answers(0, packet) for packet in range(10)]
    assert answered == sorted(answered, reverse=True)
    return None if answered[-1] else answered.index(False)


def test_a_connection_has_no_secrets_from_its_first_harmless_request_on(tmp_path: Path) -> None:
    secrecy = read_secrecy(tmp_path, METADATA, METADATA)
    assert first_without(secrecy.may_have_secrets) == OPENED
    secrecy = read_secrecy(tmp_path, VERSIONS, VERSIONS, METADATA)
    assert first_without(secrecy.may_have_secrets) == OPENED + 2
    for requests in ([LOGIN], [METADATA, LOGIN], [VERSIONS, LOGIN], [VERSIONS]):
        secrecy = read_secrecy(tmp_path, *requests)
        assert first_without(secrecy.may_have_secrets) is None
        assert first_without(secrecy.may_cut_secrets) is None
        assert secrecy.has_secrets(0) == (LOGIN in requests)


def test_parts_of_messages_are_shown_behind_the_packet_of_the_first_harmless_request_only(tmp_path: Path) -> None:
    assert first_without(read_secrecy(tmp_path, METADATA, METADATA).may_cut_secrets) == OPENED + 1
    assert first_without(read_secrecy(tmp_path, VERSIONS, METADATA, METADATA).may_cut_secrets) == OPENED + 2
    unopened = read_secrecy(tmp_path, METADATA, METADATA, opened=False)
    assert first_without(unopened.may_cut_secrets) == 1
    assert first_without(unopened.may_have_secrets) is None


def test_bytes_behind_the_fields_of_a_first_request_may_be_a_login(tmp_path: Path) -> None:
    longer = request(1, version=1, body=b"\0\0\0\0" + LOGIN)
    for requests in ([longer, METADATA], [VERSIONS, longer]):
        assert first_without(read_secrecy(tmp_path, *requests).may_have_secrets) is None


def test_what_is_forgotten_is_not_known_to_be_harmless(tmp_path: Path) -> None:
    for requests, has_secrets in (([METADATA], False), ([LOGIN], True)):
        secrecy = read_secrecy(tmp_path, *requests)
        secrecy.retain({0})
        assert secrecy.may_have_secrets(0, 9) == has_secrets
        assert secrecy.has_secrets(0) == has_secrets
        secrecy.retain({1})
        assert secrecy.may_have_secrets(0, 9)
        assert secrecy.may_cut_secrets(0, 9)
        assert not secrecy.has_secrets(0)


def fed_secrecy(*batches: list[Sent], skipped: int = 0) -> Secrecy:
    """What is known of connections that the capture has from their SYN on, when clients have sent these."""
    fed = Fed()
    fed.ends.seen_whole = {0, 1}
    fed.starts[0] = skipped
    secrecy = fed.indexer.conversation_state._secrecy
    for number, batch in enumerate(batches):
        if number:
            secrecy.retain({0, 1})
        fed.feed(*batch)
        secrecy.update()
    return secrecy


def test_each_connection_is_looked_at_from_its_own_beginning_on() -> None:
    both: list[Sent] = [(0, 1, METADATA), (2, 2, METADATA)]
    for batches in ([both], [[(0, 1, VERSIONS), (2, 1, VERSIONS)], both]):
        secrecy = fed_secrecy(*batches)
        assert not secrecy.may_have_secrets(0, 9)
        assert not secrecy.may_have_secrets(1, 9)
    assert fed_secrecy(both, skipped=50).may_have_secrets(0, 9)


def test_what_is_missing_behind_a_harmless_request_takes_nothing_back() -> None:
    cut = METADATA[:-2], 2
    assert not fed_secrecy([(0, 1, METADATA), (0, 2, cut)]).may_have_secrets(0, 9)
    assert fed_secrecy([(0, 1, cut), (0, 2, METADATA)]).may_have_secrets(0, 9)


@cases("size", [10, 600])
def test_a_request_is_not_taken_for_one_of_another_connection(size: int) -> None:
    longer = request(1, version=1, body=b"\0\0\0\0" + LOGIN.ljust(size, b"\0"))
    secrecy = fed_secrecy([(0, 1, METADATA), (2, 2, longer)])
    assert not secrecy.may_have_secrets(0, 9)
    assert secrecy.may_have_secrets(1, 9)


def begins_without_login(secrecy: Secrecy) -> list[bool]:
    return [secrecy.begins_without_login(0, packet) for packet in range(OPENED, OPENED + 3)]


def test_a_connection_begins_without_login_until_it_sends_what_may_be_a_login(tmp_path: Path) -> None:
    longer = request(0, api_key=ApiKey.API_VERSIONS, body=b"x")
    for requests in ([VERSIONS], [VERSIONS, VERSIONS], [VERSIONS, METADATA], [METADATA]):
        assert begins_without_login(read_secrecy(tmp_path, *requests)) == [True, True, True]
        assert begins_without_login(read_secrecy(tmp_path, *requests, opened=False)) == [False, False, False]
    for requests in ([METADATA, LOGIN], [VERSIONS, LOGIN], [VERSIONS, METADATA, LOGIN], [longer], [VERSIONS, longer]):
        assert begins_without_login(read_secrecy(tmp_path, *requests)) == [False, False, False]
    secrecy = read_secrecy(tmp_path, VERSIONS)
    secrecy.retain({1})
    assert begins_without_login(secrecy) == [False, False, False]


CONNECTIONS = st.lists(st.integers(0, 30), unique=True, max_size=9).map(sorted)


@given(st.lists(st.tuples(CONNECTIONS, CONNECTIONS), max_size=6))
def test_packets_are_known_of_connections_that_were_kept_and_in_their_copies(
    steps: list[tuple[list[int], list[int]]],
) -> None:
    """Each step keeps some of the connections that are open, and then those and later ones get packets."""
    packets, known, first, open_ones = _PacketByConnection(), dict[int, int](), 0, list[int]()
    for number, (met, kept) in enumerate(steps):
        some = np.array(sorted({*open_ones, *(first + each for each in met)}), np.int64)
        packets.set(some, some * 0 + number)
        known |= dict.fromkeys(some.tolist(), number)
        first += 31
        open_ones = [each for each in known if each % 31 in kept]
        packets.keep(np.array(sorted(open_ones), np.int64))
        known = {each: packet for each, packet in known.items() if each in open_ones}
        for copy in (packets, pickle.loads(pickle.dumps(packets))):
            assert [copy.of(each) for each in range(-1, first)] == [known.get(each, NEVER) for each in range(-1, first)]
            assert copy.are_known(np.arange(first)).tolist() == [each in known for each in range(first)]
        forgotten = np.array([*sorted(known)[:1], first], np.int64)
        packets.forget(forgotten)
        for each in forgotten.tolist():
            known.pop(each, None)
