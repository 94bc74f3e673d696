"""Connections of TLS 1.3 whose beginning was not captured are decrypted, once their records have shown their keys."""

from functools import cache
from typing import NamedTuple

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESCCM, AESGCM, ChaCha20Poly1305
from hypothesis import given
from hypothesis import strategies as st

from dissector.core.limits import DEFAULT, Limits
from dissector.core.store import Store
from dissector.tls.key_derivation import expand_label
from dissector.tls.late_start import first_record
from dissector.tls.sequence_search import SequenceSearch
from dissector.tls.stage import TlsStage
from dissector.tls.suites import CipherKind, CipherSuite, suites_of_secret
from tests.core.test_stages import NONE, Captured, Cuts, cuts_of_packets, output
from tests.tls.sessions import Session, session
from tests.tls.test_stage import TLS12, runs_of, stage_of
from tests.traffic import Mangling, Packet, conversation, exchanges, manglings

TURNS = [turn for size in (8, 100, 7_000) for turn in exchanges(4, pipelined=2, size=size)]
OTHERS = b"".join(
    f"{side}_TRAFFIC_SECRET_0 {number:064x} {number:096x}\n".encode()
    for number in range(3)
    for side in ("CLIENT", "SERVER")
)
"""The secrets of other connections."""
FEW = Limits(key_search=1 << 14)
"""Searches that fail take no longer than they have to."""


@cache
def recorded() -> Session:
    return session(TURNS)


def packets_of(made: Session) -> list[Packet]:
    """The packets behind the handshake."""
    return conversation(made.turns)[len(conversation(made.turns[: made.shaken])) :]


def whole_turns(made: Session, packets: list[Packet]) -> dict[bool, bytes]:
    """The plaintext of each side in turns of which the last packets have all."""
    seen = {side: sum(len(each.payload) for each in packets if each.from_client is side) for side in (True, False)}
    found = {True: b"", False: b""}
    for turn, encrypted in reversed(list(zip(TURNS, made.turns[made.shaken :], strict=True))):
        seen[turn.from_client] -= len(encrypted.data)
        if seen[turn.from_client] >= 0:
            found[turn.from_client] = turn.data + found[turn.from_client]
    return found


class Late(NamedTuple):
    """What is decrypted of a part of a session."""

    tls: TlsStage
    data: dict[bool, bytes]
    """By side, behind the last gap."""


def read(packets: list[Packet], key_log: bytes, cuts: Cuts = (), limits: Limits = DEFAULT) -> Late:
    store = Store()
    chain, tls = stage_of(store, key_log, limits=limits)
    found, at = {0: b"", 1: b""}, {0: 0, 1: 0}
    for run in runs_of(output(chain, Captured(packets, store).batches(list(cuts))), store):
        assert run.start == at[run.direction]
        at[run.direction] += run.size
        found[run.direction] = b"" if run.data is None else found[run.direction] + run.data
    client = tls.connections[0].client if tls.is_decrypted(0) else 0
    assert client is not None
    return Late(tls, {True: found[client], False: found[1 - client]})


def test_the_parts_of_its_records_are_those_of_tls_1_3() -> None:
    made = recorded()
    packets = packets_of(made)
    late = read(packets, made.key_log)
    records = [record for direction in (0, 1) for record in late.tls.records_of(direction, 0, 1 << 20)]
    assert b"".join(late.data.values()) == b"".join(made.sent.values())
    assert sum(record.size for record in records) == sum(map(len, made.sent.values()))
    for record in records:
        assert [part.name for part in record.parts] == ["header", "ciphertext", "content type", "authentication tag"]


@given(first=st.integers(0, 1000), mangle=manglings(), cuts=cuts_of_packets)
def test_a_late_start_is_decrypted_from_the_first_whole_record_on(first: int, mangle: Mangling, cuts: Cuts) -> None:
    """Packets out of order are behind the first ones: what is in front of a late start is not known. A side that has
    none of those may begin with any."""
    made = recorded()
    packets = packets_of(made)
    packets = packets[first % (len(packets) - 8) :]
    late = read(packets[:8] + mangle(packets[8:]), made.key_log, cuts)
    assert late.tls.bad_records == 0
    for side, expected in whole_turns(made, packets).items():
        assert late.tls.is_decrypted(0) or not expected
        assert not late.tls.is_decrypted(0) or made.sent[side].endswith(late.data[side])
        assert late.data[side].endswith(expected) or side not in {each.from_client for each in packets[:8]}


@pytest.mark.parametrize("lost", [{True}, {False}, {True, False}], ids=["client's", "server's", "both"])
@given(cuts=cuts_of_packets)
def test_with_a_lost_hello_all_data_is_decrypted(lost: set[bool], cuts: Cuts) -> None:
    made = recorded()
    packets = conversation(made.turns)
    hellos = [next(each for each in packets if each.payload and each.from_client is side) for side in lost]
    late = read([each for each in packets if each not in hellos], made.key_log, cuts)
    assert late.data == made.sent


def test_its_keys_may_be_those_of_one_of_many_connections() -> None:
    made = recorded()
    late = read(packets_of(made)[3:], OTHERS + made.key_log)
    assert made.sent[False].endswith(late.data[False])
    session = late.tls.session(0)
    assert session is not None
    assert (session.version, session.cipher) == ("TLS 1.3", made.suite)
    lines = [line for line in made.key_log.splitlines() if b"TRAFFIC" in line]
    assert set(lines) <= set(late.tls.key_log_of([0]).splitlines())


@pytest.mark.parametrize("key_log", [b"", OTHERS], ids=["no keys", "keys of others"])
@given(first=st.integers(0, 20), cuts=cuts_of_packets)
def test_without_its_keys_a_late_start_passes_as_it_is(key_log: bytes, first: int, cuts: Cuts) -> None:
    packets = packets_of(recorded())[first:]
    assert passed(packets, key_log, cuts) == bytes_of(packets)


@given(first=st.integers(0, 20), cuts=cuts_of_packets)
def test_plain_connections_pass_as_they_are_wherever_they_begin(first: int, cuts: Cuts) -> None:
    packets = conversation(exchanges(8, size=3_000))[2 + first :]
    assert passed(packets, OTHERS, cuts) == bytes_of(packets)


@pytest.mark.parametrize("suite", ["ECDHE-RSA-AES128-GCM-SHA256", "ECDHE-RSA-AES256-SHA384"])
def test_tls_1_2_is_not_found_without_its_hellos(suite: str) -> None:
    made = session(exchanges(8), TLS12, suite)
    packets = packets_of(made)
    assert passed(packets, made.key_log + OTHERS) == bytes_of(packets)


def bytes_of(packets: list[Packet]) -> dict[bool, bytes]:
    return {side: b"".join(p.payload for p in packets if p.from_client is side) for side in (True, False)}


def passed(packets: list[Packet], key_log: bytes, cuts: Cuts = ()) -> dict[bool, bytes]:
    late = read(packets, key_log, cuts, FEW)
    assert not late.tls.is_decrypted(0)
    return late.data if packets[0].from_client else {side: late.data[not side] for side in (True, False)}


def test_a_search_that_takes_too_long_is_ended_and_counted() -> None:
    packets = packets_of(recorded())
    late = read(packets, OTHERS, limits=Limits(key_search=10_000))
    assert late.tls.late.given_up == 1
    assert late.data == bytes_of(packets)


@given(at=st.integers(0, 20))
def test_keys_may_come_behind_a_late_start(at: int) -> None:
    made, store = recorded(), Store()
    packets = packets_of(made)[3:]
    chain, tls = stage_of(store, b"", most_waiting=10_000, limits=FEW)
    tls.expects_keys = True
    found = []
    for number, batch in enumerate(Captured(packets, store).batches([at])):
        if number:
            tls.keys.add(OTHERS)
        found += runs_of([*chain.feed(batch), *chain.end(NONE)], store)
    tls.keys.add(made.key_log)
    found += runs_of([*chain.end(NONE), *chain.flush()], store)
    data = [b"".join(run.data or b"" for run in found if run.direction == side) for side in (0, 1)]
    assert sorted(map(len, data)) == sorted(map(len, whole_turns(made, packets).values()))


@pytest.mark.parametrize("suite", [*suites_of_secret(bytes(32)), *suites_of_secret(bytes(48))], ids=lambda s: s.name)
@given(number=st.integers(0, 5_000), text=st.binary(max_size=60), padding=st.sampled_from((0, 1, 16, 40)))
def test_the_number_that_opens_a_record_is_found(suite: CipherSuite, number: int, text: bytes, padding: int) -> None:
    """Whatever the plaintext, with the JDK's padding too."""
    secret = bytes(range(48 if suite.prf_hash == "sha384" else 32))
    header, fragment = protected(suite, secret, number, text + bytes([23]) + bytes(padding))
    search = SequenceSearch(suite, secret)
    assert search.find(header, fragment, 0, 5_001) == number
    assert search.find(header, fragment, number + 1, number + 500) is None
    other = SequenceSearch(suite, secret[::-1])
    assert other.find(header, fragment, max(0, number - 100), number + 100) is None


def test_high_numbers_are_found() -> None:
    [suite] = suites_of_secret(bytes(48))
    header, fragment = protected(suite, bytes(48), 3_000_000, b"x" * 20 + bytes([23]))
    assert SequenceSearch(suite, bytes(48)).find(header, fragment, 2_900_000, 4_000_000) == 3_000_000


def protected(suite: CipherSuite, secret: bytes, number: int, inner: bytes) -> tuple[bytes, bytes]:
    """A record of TLS 1.3, header and fragment (RFC 8446, 5.2)."""
    key = expand_label(suite.prf_hash, secret, b"key", suite.key_size)
    nonce = int.from_bytes(expand_label(suite.prf_hash, secret, b"iv", 12), "big") ^ number
    tag = 8 if suite.kind is CipherKind.CCM_8 else 16
    aead: AESGCM | ChaCha20Poly1305 | AESCCM = AESCCM(key, tag) if "CCM" in suite.kind.value else AESGCM(key)
    aead = ChaCha20Poly1305(key) if suite.kind is CipherKind.CHACHA20 else aead
    header = b"\x17\x03\x03" + (len(inner) + tag).to_bytes(2, "big")
    return header, aead.encrypt(nonce.to_bytes(12, "big"), inner, header)


@given(data=st.binary(max_size=100))
def test_any_bytes_are_survived_as_the_middle_of_a_stream(data: bytes) -> None:
    found = first_record(data)
    assert found is None or found == -1 or data[found + 1] == 3
