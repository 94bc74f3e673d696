"""One clean capture in every link type and tunnel gives the same exchanges; tshark sees the same payloads in it."""

import struct
import subprocess
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissector.capture.file_opening import open_capture
from dissector.capture_session import Capture
from dissector.core.store import Store
from tests.cases import cases
from tests.needs import needs
from tests.traffic import block
from tests.transport.wrapping import LINKS, TUNNELS, Wrap, ethernet

CLEAN = Path(__file__).parents[2] / "pcaps" / "java-0.11.0-admin.pcapng"
WAYS: dict[str, tuple[int, Wrap]] = {
    **LINKS,
    **{name: (1, lambda packet, wrap=wrap: ethernet(wrap(packet))) for name, wrap in TUNNELS.items()},
}


@cache
def clean() -> list[tuple[int, bytes]]:
    """Time and IP packet of each packet."""
    store = Store()
    found = []
    for batch in open_capture(str(CLEAN), store).batches():
        assert set(batch.link_type.tolist()) == {1}
        places = zip(batch.time_ns.tolist(), batch.offset.tolist(), batch.captured.tolist(), strict=True)
        found += [(time_ns, batch.data[at + 14 : at + size].tobytes()) for time_ns, at, size in places]
    return found


def capture_of(path: Path, link_type: int, packets: list[tuple[int, bytes]], snaplen: int = 1 << 20) -> str:
    """A pcap file in nanoseconds."""
    parts = [struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 1 << 20, link_type)]
    for time_ns, packet in packets:
        cut = packet[:snaplen]
        parts.append(struct.pack("<IIII", *divmod(time_ns, 10**9), len(cut), len(packet)) + cut)
    path.write_bytes(b"".join(parts))
    return str(path)


def rows_and_ignored(path: str) -> tuple[list[object], dict[str, int]]:
    """Every exchange's row without numbers of packets, bytes and findings; and what was left out."""
    with Capture([path]) as capture:
        seen: list[object] = [
            (
                e.row._replace(packet=None, response_packet=None),
                e.request and e.request.data,
                e.response and e.response.data,
                e.findings,
            )
            for e in capture.exchanges()
        ]
        return seen, dict(capture.pipeline.ignored)


@cache
def expected() -> list[object]:
    seen, ignored = rows_and_ignored(str(CLEAN))
    assert len(seen) == 40
    assert not ignored
    return seen


@pytest.mark.long
@pytest.mark.slow
@cases("name", WAYS)
def test_every_link_type_and_tunnel_gives_the_same_exchanges(tmp_path: Path, name: str) -> None:
    link_type, wrap = WAYS[name]
    path = capture_of(tmp_path / "made.pcap", link_type, [(time_ns, wrap(packet)) for time_ns, packet in clean()])
    assert rows_and_ignored(path) == (expected(), {})


@pytest.mark.long
def test_tshark_sees_the_same_payload_in_every_link_type_and_tunnel(tmp_path: Path) -> None:
    needs("tshark")
    packets = [(time_ns, packet) for time_ns, packet in clean() if len(packet) > 60][:3]
    parts = [block("<", 0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1))]
    parts += [block("<", 1, struct.pack("<HHI", link_type, 0, 0)) for link_type, _ in WAYS.values()]
    for number, (_, wrap) in enumerate(WAYS.values()):
        for time_ns, packet in packets:
            data = wrap(packet)
            head = struct.pack("<IIIII", number, time_ns >> 32, time_ns & 0xFFFFFFFF, len(data), len(data))
            parts.append(block("<", 6, head + data + bytes(-len(data) % 4)))
    path = tmp_path / "all.pcapng"
    path.write_bytes(b"".join(parts))
    settings = ["--disable-protocol", "kafka", "-o", "tcp.desegment_tcp_streams:FALSE", "-d", "udp.port==8472,vxlan"]
    fields = ["-T", "fields", "-e", "frame.interface_id", "-e", "tcp.payload", "-E", "occurrence=l"]
    run = subprocess.run(["tshark", "-n", "-r", str(path), *settings, *fields], capture_output=True, text=True)
    payloads = [packet[20 + (packet[32] >> 4) * 4 :].hex() for _, packet in packets]
    wanted = [f"{number}\t{payload}" for number in range(len(WAYS)) for payload in payloads]
    assert dict(zip(wanted, run.stdout.splitlines(), strict=True)) == dict(zip(wanted, wanted, strict=True))


nestings = st.tuples(st.sampled_from(sorted(LINKS)), st.lists(st.sampled_from(sorted(TUNNELS)), max_size=4))
"""A link type, and the tunnels in it, innermost first."""


def nested(link: str, tunnels: list[str]) -> tuple[int, Wrap]:
    """A link type, and what puts a packet there."""

    def wrap(packet: bytes) -> bytes:
        for name in tunnels:
            packet = TUNNELS[name](packet)
        return LINKS[link][1](packet)

    return LINKS[link][0], wrap


@pytest.mark.slow
@given(nesting=nestings.filter(lambda nesting: nesting[0] != "ipv4"))
def test_tunnels_in_tunnels_give_the_same_exchanges(
    tmp_path_factory: pytest.TempPathFactory, nesting: tuple[str, list[str]]
) -> None:
    link_type, wrap = nested(*nesting)
    path = capture_of(tmp_path_factory.mktemp("nested") / "made.pcap", link_type, [(t, wrap(p)) for t, p in clean()])
    assert rows_and_ignored(path) == (expected(), {})


@cases("name", ["vxlan", "gre of mpls", "ip in ipv6"])
@cases("first", ["inside", "outside"])
def test_a_connection_captured_inside_and_outside_of_a_tunnel_is_one(tmp_path: Path, name: str, first: str) -> None:
    packets = []
    for time_ns, packet in clean():
        copies = [(time_ns, ethernet(packet)), (time_ns, ethernet(TUNNELS[name](packet)))]
        packets += copies if first == "inside" else copies[::-1]
    path = capture_of(tmp_path / "both.pcap", 1, packets)
    assert rows_and_ignored(path) == (expected(), {})
