"""The encrypted records behind plaintext: sessions of OpenSSL, cut by the lengths in their headers."""

from collections.abc import Iterator
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissector.core.store import Store
from dissector.tls import TlsStage
from tests.cases import cases
from tests.core.test_stages import Captured, Cuts, cuts_of_packets, output
from tests.tls.sessions import Session
from tests.tls.test_stage import KINDS, SIDES, plain, recorded, stage_of
from tests.traffic import Packet, conversation

HEADER = 5
PARTS = {
    "TLS 1.3": {"header": HEADER, "content type": 1, "authentication tag": 16},
    "TLS 1.2 GCM": {"header": HEADER, "explicit nonce": 8, "authentication tag": 16},
    "TLS 1.2 ChaCha20": {"header": HEADER, "authentication tag": 16},
    "TLS 1.2 CCM": {"header": HEADER, "explicit nonce": 8, "authentication tag": 16},
    "TLS 1.2 CBC": {"header": HEADER, "initialization vector": 16, "MAC": 48},
    "TLS 1.0": {"header": HEADER, "MAC": 20},
}
"""Sizes of parts as the RFCs have them: 8446, 5288, 7905, 6655, 5246, 2246."""


def sent(made: Session, side: bool) -> Iterator[tuple[int, bytes]]:
    """Offset and bytes of each record of a side, by the lengths in their headers."""
    stream, at = b"".join(turn.data for turn in made.turns if turn.from_client == side), 0
    while at < len(stream):
        end = at + HEADER + int.from_bytes(stream[at + 3 : at + HEADER], "big")
        yield at, stream[at:end]
        at = end


def carriers(packets: list[Packet], side: bool, start: int, end: int) -> tuple[int, ...]:
    """The packets with bytes of a stretch."""
    at, found = 0, []
    for number, packet in enumerate(packets):
        if packet.from_client == side:
            if packet.payload and at < end and start < at + len(packet.payload):
                found.append(number)
            at += len(packet.payload)
    return tuple(found)


def read(packets: list[Packet], key_log: bytes, cuts: Cuts) -> TlsStage:
    store = Store()
    chain, tls = stage_of(store, key_log)
    output(chain, Captured(packets, store).batches(list(cuts)))
    return tls


@cache
def whole(kind: str) -> TlsStage:
    return read(conversation(recorded(kind).turns, segment=700), recorded(kind).key_log, [])


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@given(cuts=cuts_of_packets)
def test_plaintext_leads_to_the_records_that_were_sent_and_to_their_packets(kind: str, cuts: Cuts) -> None:
    made = recorded(kind)
    packets = conversation(made.turns, segment=700)
    tls = read(packets, made.key_log, cuts)
    for side, direction in SIDES.items():
        records, at = dict(sent(made, side)), 0
        starts = iter(records)
        for record in tls.records_of(direction, 0, len(plain(made)[direction])):
            assert record.start == at
            at += record.size
            start = next(each for each in starts if records[each] == record.data)
            assert record.packets == carriers(packets, side, start, start + len(record.data))
        assert at == len(plain(made)[direction])


@cases("kind", KINDS)
def test_the_parts_of_a_record_tile_it_and_have_the_sizes_of_its_suite(kind: str) -> None:
    made = recorded(kind)
    for direction in SIDES.values():
        for record in whole(kind).records_of(direction, 0, len(plain(made)[direction])):
            ends = [0, *(part.end for part in record.parts)]
            assert [part.start for part in record.parts] == ends[:-1]
            assert ends[-1] == len(record.data)
            sizes = {part.name: part.end - part.start for part in record.parts}
            assert sizes.pop("ciphertext") == record.size
            padding = sizes.pop("padding", 0)
            assert sizes == PARTS[kind]
            assert 0 < padding <= 256 if "MAC" in sizes else padding == 0


@pytest.mark.parametrize("kind", ["TLS 1.3", "TLS 1.2 CBC"])
@given(start=st.integers(0, 12_000), size=st.integers(1, 5_000), side=st.booleans())
def test_a_stretch_leads_to_the_records_that_it_is_in(kind: str, start: int, size: int, side: bool) -> None:
    direction = SIDES[side]
    every = whole(kind).records_of(direction, 0, len(plain(recorded(kind))[direction]))
    some = [each for each in every if each.start < start + size and start < each.start + each.size]
    found = whole(kind).records_of(direction, start, size)
    assert found == [each._replace(start=each.start - start) for each in some]


def test_what_is_not_decrypted_has_no_records() -> None:
    made = recorded("TLS 1.3")
    assert not read(conversation(made.turns), b"", []).records_of(0, 0, 1 << 20)
