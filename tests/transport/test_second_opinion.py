"""dpkt reads the recordings, too: the same segments with the same bytes, and the same hellos."""

from pathlib import Path
from typing import NamedTuple

import dpkt
import pytest

from dissector.capture.file_opening import open_capture
from dissector.core.limits import DEFAULT
from dissector.core.store import Store
from dissector.tls.handshake import ClientHello, ServerHello, parse_client_hello, parse_server_hello
from dissector.transport import Transport
from tests.cases import cases
from tests.conftest import PCAPS

RECORDED = sorted(PCAPS.glob("*.pcapng"))
ENCRYPTED = sorted((PCAPS / "tls").glob("*.pcapng"))


class Segment(NamedTuple):
    """A segment of a packet."""

    packet: int
    seq: int
    ack: int
    flags: int
    payload: bytes


def by_dpkt(path: Path) -> list[Segment]:
    found = []
    with path.open("rb") as file:
        for number, (_, data) in enumerate(dpkt.pcapng.Reader(file)):
            network = dpkt.ethernet.Ethernet(data).data
            if isinstance(network, dpkt.ip.IP | dpkt.ip6.IP6) and isinstance(network.data, dpkt.tcp.TCP):
                tcp = network.data
                found.append(Segment(number, tcp.seq, tcp.ack, tcp.flags, bytes(tcp.data)))
    return found


def by_us(path: Path) -> list[Segment]:
    store = Store()
    transport = Transport(store, DEFAULT)
    found = []
    for batch in open_capture(str(path), store).batches():
        segments = transport.segments(batch)
        columns = (segments.packet, segments.seq, segments.ack, segments.flags, segments.address, segments.size)
        for packet, seq, ack, flags, address, size in zip(*(each.tolist() for each in columns), strict=True):
            payload = store.read(address, size).tobytes() if size else b""
            found.append(Segment(packet, seq, ack, flags, payload))
    return found


@pytest.mark.long
@pytest.mark.slow
@cases("path", RECORDED + ENCRYPTED, ids=lambda path: path.stem)
def test_segments_are_those_that_dpkt_reads(path: Path) -> None:
    found, expected = by_us(path), by_dpkt(path)
    assert found
    assert [each._replace(flags=each.flags & 0x1F) for each in found] == [
        each._replace(flags=each.flags & 0x1F) for each in expected
    ]


def hellos(path: Path) -> list[tuple[int, bytes]]:
    """Type and body of each hello that one segment has whole, at its beginning."""
    found = []
    for each in by_us(path):
        if each.payload[:2] == b"\x16\x03" and len(each.payload) >= 9:
            kind, size = each.payload[5], int.from_bytes(each.payload[6:9], "big")
            if kind in (1, 2) and len(each.payload) >= 9 + size:
                found.append((kind, each.payload[9 : 9 + size]))
    return found


@cases("path", ENCRYPTED, ids=lambda path: path.stem)
def test_hellos_are_those_that_dpkt_reads(path: Path) -> None:
    both = hellos(path)
    assert {kind for kind, _ in both} == {1, 2}
    for kind, body in both:
        ours: ClientHello | ServerHello | None
        if kind == 1:
            ours, theirs = parse_client_hello(body), dpkt.ssl.TLSClientHello(body)
            assert ours is not None
            assert list(ours.suites) == [each.code for each in theirs.ciphersuites]
        else:
            ours, theirs = parse_server_hello(body), dpkt.ssl.TLSServerHello(body)
            assert ours is not None
            assert ours.suite == theirs.ciphersuite.code
        assert (ours.random, ours.session_id) == (bytes(theirs.random), bytes(theirs.session_id))
        assert list(ours.extensions.items()) == [(number, bytes(data)) for number, data in theirs.extensions]
