"""Plaintext of real sessions, made by OpenSSL: any suite, any cutting, any network, keys at any time."""

import ssl
from collections.abc import Iterable
from functools import cache
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissector.core.batches import NOWHERE, RunBatch, RunKind
from dissector.core.limits import DEFAULT, Limits
from dissector.core.object_graph import from_nodes, to_nodes
from dissector.core.stage import StageChain
from dissector.core.store import Store
from dissector.tls import KeyLog, TlsStage
from dissector.tls.suites import SUITES
from dissector.transport import Transport
from tests.cases import cases
from tests.core.test_stages import NONE, Captured, Cuts, cuts_of_packets, output
from tests.tls.sessions import Session, session
from tests.traffic import Mangling, Packet, Turn, conversation, exchanges, manglings

TLS13, TLS12 = ssl.TLSVersion.TLSv1_3, ssl.TLSVersion.TLSv1_2
KINDS = {
    "TLS 1.3": (TLS13, ""), "TLS 1.2 GCM": (TLS12, "ECDHE-RSA-AES128-GCM-SHA256"),
    "TLS 1.2 ChaCha20": (TLS12, "ECDHE-RSA-CHACHA20-POLY1305"), "TLS 1.2 CCM": (TLS12, "ECDHE-ECDSA-AES256-CCM"),
    "TLS 1.2 CBC": (TLS12, "ECDHE-RSA-AES256-SHA384"),
} | ({"TLS 1.0": (ssl.TLSVersion.TLSv1, "AES256-SHA")} if ssl.HAS_TLSv1 else {})  # fmt: skip
"""Python may be built with a library that has no old versions any more."""
AEAD = ("TLS 1.3", "TLS 1.2 GCM", "TLS 1.2 ChaCha20", "TLS 1.2 CCM")
SIDES = {True: 0, False: 1}


@cache
def recorded(kind: str) -> Session:
    """A session with 12 exchanges of several sizes."""
    version, ciphers = KINDS[kind]
    turns = [turn for size in (8, 100, 3000) for turn in exchanges(4, pipelined=2, size=size)]
    return session(turns, version, ciphers, key="ec" if "ECDSA" in ciphers else "rsa")


class Run(NamedTuple):
    """A row that came out, with its bytes."""

    direction: int
    start: int
    size: int
    data: bytes | None


def runs_of(batches: Iterable[RunBatch], store: Store) -> list[Run]:
    found = []
    for batch in batches:
        for n in range(len(batch)):
            size, at = int(batch.size[n]), int(batch.address[n])
            data = None if at == NOWHERE else bytes(store.read(at, size))
            assert (data is None) == (batch.kind[n] != RunKind.DATA)
            found.append(Run(int(batch.direction[n]), int(batch.start[n]), size, data))
    return found


def stage_of(
    store: Store, key_log: bytes, most_waiting: int = 0, limits: Limits = DEFAULT
) -> tuple[StageChain, TlsStage]:
    keys = KeyLog()
    keys.add(key_log)
    tls = TlsStage(store, keys, limits, most_waiting=most_waiting)
    return StageChain(Transport(store, limits), tls), tls


def decrypted(packets: list[Packet], key_log: bytes, cuts: Cuts = ()) -> list[Run]:
    store = Store()
    chain, _ = stage_of(store, key_log)
    return runs_of(output(chain, Captured(packets, store).batches(list(cuts))), store)


def streams(runs: list[Run]) -> dict[int, bytes]:
    """The bytes of each direction; fails where rows don't tile it, or have gaps."""
    found: dict[int, bytes] = {0: b"", 1: b""}
    for run in runs:
        assert run.start == len(found[run.direction])
        assert run.data is not None
        found[run.direction] += run.data
    return found


def plain(made: Session) -> dict[int, bytes]:
    return {SIDES[side]: data for side, data in made.sent.items()}


@cases("kind", KINDS)
def test_plaintext_is_what_was_sent(kind: str) -> None:
    made = recorded(kind)
    assert streams(decrypted(conversation(made.turns), made.key_log)) == plain(made)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@given(mangle=manglings(), cuts=cuts_of_packets)
def test_plaintext_does_not_depend_on_segments_and_batches(kind: str, mangle: Mangling, cuts: Cuts) -> None:
    made = recorded(kind)
    assert streams(decrypted(mangle(conversation(made.turns)), made.key_log, cuts)) == plain(made)


@pytest.mark.parametrize("kind", AEAD)
@given(mangle=manglings(loss=True), cuts=cuts_of_packets)
def test_what_is_not_lost_stands_where_it_was_sent(kind: str, mangle: Mangling, cuts: Cuts) -> None:
    """A gap has the size of the plaintext that is missing; nothing false comes out."""
    made = recorded(kind)
    packets = conversation(made.turns)
    shaken = len(conversation(made.turns[: made.shaken]))
    runs = decrypted(packets[:shaken] + mangle(packets[shaken:]), made.key_log, cuts)
    ends = {0: 0, 1: 0}
    for run in runs:
        assert run.start == ends[run.direction]
        ends[run.direction] += run.size
        if run.data is not None:
            assert plain(made)[run.direction][run.start :][: run.size] == run.data


@given(mangle=manglings(loss=True), cuts=cuts_of_packets)
def test_the_size_of_a_gap_is_estimated_within_the_padding_of_cbc(mangle: Mangling, cuts: Cuts) -> None:
    """A block of 16 bytes for each record, at most."""
    made = recorded("TLS 1.2 CBC")
    packets = conversation(made.turns)
    shaken = len(conversation(made.turns[: made.shaken]))
    most = 15 * (len(made.turns) - made.shaken)
    for run in decrypted(packets[:shaken] + mangle(packets[shaken:]), made.key_log, cuts):
        if run.data is not None:
            around = plain(made)[run.direction][max(0, run.start - most) : run.start + run.size + most]
            assert run.data in around


@pytest.mark.parametrize("lost", [1, 2])
@given(cuts=cuts_of_packets)
def test_what_is_lost_of_a_handshake_is_no_gap_of_plaintext(lost: int, cuts: Cuts) -> None:
    """Of the server's flight in TLS 1.3: its hello, or its certificate."""
    made = recorded("TLS 1.3")
    packets = conversation(made.turns, segment=700)
    [*_, missing] = [each for each in packets if each.payload and not each.from_client][:lost]
    assert streams(decrypted([each for each in packets if each is not missing], made.key_log, cuts)) == plain(made)


@pytest.mark.parametrize("kind", KINDS)
@given(at=st.integers(0, 10_000), bit=st.integers(0, 7))
def test_a_damaged_record_is_a_gap(kind: str, at: int, bit: int) -> None:
    made = recorded(kind)
    turns = list(made.turns)
    number = made.shaken + at % (len(turns) - made.shaken)
    data = bytearray(turns[number].data)
    data[5 + at % (len(data) - 5)] ^= 1 << bit
    turns[number] = Turn(turns[number].from_client, bytes(data))
    for run in decrypted(conversation(turns), made.key_log):
        if run.data is not None and kind in AEAD:
            assert plain(made)[run.direction][run.start :][: run.size] == run.data
        elif run.data is not None:
            assert run.data in plain(made)[run.direction]


@cases("kind", KINDS)
@cases("key_log", [b"", b"nonsense\n", b"CLIENT_RANDOM " + b"00" * 32 + b" " + b"11" * 48 + b"\n"])
def test_without_its_keys_a_connection_passes_as_it_is(kind: str, key_log: bytes) -> None:
    made = recorded(kind)
    assert streams(decrypted(conversation(made.turns), key_log)) == {
        SIDES[side]: b"".join(turn.data for turn in made.turns if turn.from_client == side) for side in (True, False)
    }


@cases("kind", KINDS)
def test_wrong_keys_open_nothing(kind: str) -> None:
    made = recorded(kind)
    wrong = b"".join(line[:-9] + b"123456789\n"[-9:] + b"\n" for line in made.key_log.splitlines())
    assert decrypted(conversation(made.turns), wrong) == [] or streams(decrypted(conversation(made.turns), wrong))


@pytest.mark.parametrize("kind", KINDS)
@given(at=st.integers(0, 100))
def test_keys_may_come_later(kind: str, at: int) -> None:
    made = recorded(kind)
    packets, store = conversation(made.turns), Store()
    at %= len(packets)
    chain, tls = stage_of(store, b"", most_waiting=10_000)
    found = []
    captured = Captured(packets, store)
    for number, batch in enumerate(captured.batches([at])):
        if number:
            tls.keys.add(made.key_log)
        found += runs_of([*chain.feed(batch), *chain.end(NONE)], store)
    tls.keys.add(made.key_log)
    found += runs_of([*chain.end(NONE), *chain.flush()], store)
    assert streams(found) == plain(made)


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@given(arrivals=st.lists(st.integers(0, 30), min_size=6, max_size=6).map(sorted), closes=st.booleans())
def test_keys_may_come_line_by_line(kind: str, arrivals: list[int], closes: bool) -> None:
    """Programs write the secrets of a connection one after the other: those of the handshake before those of data."""
    made, store = recorded(kind), Store()
    lines = [line for line in made.key_log.splitlines(keepends=True) if not line.startswith(b"#")]
    arrival = dict(enumerate(arrivals[: len(lines)]))
    chain, tls = stage_of(store, b"", most_waiting=10_000)
    found: list[RunBatch] = []
    for number, batch in enumerate(Captured(conversation(made.turns), store).batches(list(range(1, 100)))):
        tls.keys.add(b"".join(lines[n] for n in arrival if arrival[n] == number))
        found += [*chain.feed(batch), *chain.end(NONE)]
    tls.keys.add(b"".join(lines[n] for n in arrival if arrival[n] > number))
    found += [*chain.end(np.array([0]) if closes else NONE), *chain.flush()]
    assert streams(runs_of(found, store)) == plain(made)


def test_a_log_without_the_secrets_of_data_opens_the_handshake_once_no_more_is_expected() -> None:
    made, store = recorded("TLS 1.3"), Store()
    lines = b"".join(line + b"\n" for line in made.key_log.splitlines() if b"HANDSHAKE" in line)
    [batch] = Captured(conversation(made.turns), store).batches([])
    chain, tls = stage_of(store, lines, most_waiting=10_000)
    assert not runs_of(chain.feed(batch), store)
    assert not tls.connections[0].is_opened
    assert all(run.data is None for run in runs_of(chain.end(np.array([0])), store))
    assert tls.connections[0].is_opened


def test_other_connections_pass_untouched() -> None:
    packets = conversation(exchanges(5))
    assert streams(decrypted(packets, b"")) == {
        SIDES[side]: b"".join(p.payload for p in packets if p.from_client == side) for side in (True, False)
    }


def test_a_connection_with_a_certificate_of_the_client_is_decrypted() -> None:
    for version in (TLS12, TLS13):
        made = session(exchanges(3), version, client_certificate=True)
        assert streams(decrypted(conversation(made.turns), made.key_log)) == plain(made)


def suites() -> list[str]:
    """All of TLS 1.2 that this OpenSSL offers for a certificate without other parameters, and that are decrypted."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.set_ciphers("ALL:@SECLEVEL=0")
    offered = (each for each in context.get_ciphers() if each["id"] & 0xFFFF in SUITES)
    return [each["name"] for each in offered if each["name"].startswith(("ECDHE-", "AES"))]


@cases("suite", suites())
def test_every_suite_is_decrypted(suite: str) -> None:
    made = session(exchanges(2, size=500), TLS12, suite, key="ec" if "ECDSA" in suite else "rsa")
    assert made.suite == suite
    assert streams(decrypted(conversation(made.turns), made.key_log)) == plain(made)


@pytest.mark.parametrize("kind", KINDS)
@given(at=st.integers(0, 200))
def test_decryption_goes_on_where_it_is_restored_and_no_checkpoint_has_a_secret(kind: str, at: int) -> None:
    made = recorded(kind)
    packets, store = conversation(made.turns), Store()
    at %= len(packets) + 1
    chain, tls = stage_of(store, made.key_log)
    before = runs_of(fed(chain, Captured(packets[:at], store)), store)
    nodes = to_nodes((chain, tls, store), store, store.excerpt(*chain.held_regions()))
    data = b"".join(filter(None, nodes.data))
    assert not any(secret in data for secret in secrets_in(made.key_log))
    chain, tls, other = from_nodes(nodes)
    assert not tls.keys
    tls.keys.add(made.key_log)
    after = runs_of(output(chain, Captured(packets[at:], other, first=at).batches([])), other)
    assert streams(before + after) == plain(made)


def fed(chain: StageChain, captured: Captured) -> list[RunBatch]:
    """What comes out before the end."""
    return [runs for batch in captured.batches([]) for runs in (*chain.feed(batch), *chain.end(NONE))]


def secrets_in(key_log: bytes) -> list[bytes]:
    return [bytes.fromhex(line.split()[2].decode()) for line in key_log.splitlines() if not line.startswith(b"#")]
