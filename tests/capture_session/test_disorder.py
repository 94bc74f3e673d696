"""Captures whose packets are not in the order in which they were sent: exchanges are those of the plain capture.

Cards with several queues, the interface `any`, and captures of two taps merged all do this.
"""

import random
from collections import Counter
from pathlib import Path

import dpkt
import pytest

from dissector.capture_session import Capture
from tests.conftest import CAPTURES, VARIED, some_of
from tests.traffic import Packet, Turn, conversation, ethernet, pcap

MOVED = 6
SMALL = 600_000
LATE = (("client", 1_000), ("server", 1_000))
"""Bytes of recordings that are read several times."""
RECORDINGS = [
    path if path.stem in VARIED else pytest.param(path, marks=pytest.mark.exhaustive)
    for path in CAPTURES
    if path.suffix == ".pcapng" and path.stat().st_size < SMALL
]
WITH_HEADERS = [each for each in RECORDINGS if not any(name in str(each) for name in ("sasl-v0", "as-0.10-sasl"))]
"""Without raw SASL tokens: those of a server a second before the handshake cannot be recognized."""
Exchanges = Counter[tuple[object, ...]]


def exchanges(*paths: Path) -> tuple[Exchanges, set[str]]:
    """All rows with their bytes, without numbers and times; codes of what is wrong with the capture."""
    with Capture([str(path) for path in paths]) as capture:
        found = Counter(
            (
                e.row.kind, e.row.client, e.row.server, e.row.api, e.row.version, e.row.correlation_id,
                e.request and e.request.data, e.response and e.response.data,
            )
            for e in capture.exchanges()
        )  # fmt: skip
        return found, {problem.code for problem in capture.problems}


def packets(path: Path) -> tuple[int, list[bytes]]:
    with path.open("rb") as file:
        reader = dpkt.pcapng.Reader(file)
        return reader.datalink(), [data for _, data in reader]


def moved(some: list[bytes], chance: random.Random) -> list[bytes]:
    """Each moves by up to `MOVED` places."""
    places = [n + chance.uniform(0, MOVED) for n in range(len(some))]
    return [some[n] for n in sorted(range(len(some)), key=places.__getitem__)]


@pytest.mark.slow
@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.stem)
def test_packets_that_move_by_six_places_change_no_exchange(path: Path, tmp_path: Path) -> None:
    link_type, plain = packets(path)
    ordered, disordered = tmp_path / "ordered.pcap", tmp_path / "disordered.pcap"
    ordered.write_bytes(pcap(plain, link_type=link_type))
    disordered.write_bytes(pcap(moved(plain, random.Random(path.stem)), link_type=link_type))
    assert exchanges(disordered)[0] == exchanges(ordered)[0]


@pytest.mark.slow
@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.stem)
def test_segments_that_move_by_six_places_change_no_exchange(path: Path, tmp_path: Path) -> None:
    """The first connections of the recording, in segments of 100 bytes, one after the other."""
    turns: dict[int, list[Turn]] = {}
    with Capture([str(path)]) as capture:
        for exchange in capture.exchanges():
            for from_client, message in ((True, exchange.request), (False, exchange.response)):
                if message is not None and exchange.row.connection <= 3 and len(message.data) < 20_000:
                    turns.setdefault(exchange.row.connection, []).append(Turn(from_client, message.data))
    made: list[Packet] = []
    for number, some in turns.items():
        made += conversation(some[:60], segment=100, client=("10.0.0.1", 50_000 + number))
    plain = [ethernet(packet) for packet in made]
    ordered, disordered = tmp_path / "ordered.pcap", tmp_path / "disordered.pcap"
    ordered.write_bytes(pcap(plain))
    disordered.write_bytes(pcap(moved(plain, random.Random(path.stem))))
    assert exchanges(disordered)[0] == exchanges(ordered)[0]


@pytest.mark.slow
@pytest.mark.parametrize("late", some_of([(side, ms) for side in ("client", "server") for ms in (5, 1_000)], *LATE))
@pytest.mark.parametrize("path", WITH_HEADERS, ids=lambda path: path.stem)
def test_the_two_directions_captured_with_two_clocks_give_the_exchanges(
    path: Path, late: tuple[str, int], tmp_path: Path
) -> None:
    """A file has what clients sent, another what the server sent; the clock of one is late."""
    late_side, late_ms = late
    with path.open("rb") as file:
        reader = dpkt.pcapng.Reader(file)
        link_type, timed = reader.datalink(), [(time, data) for time, data in reader]
    of_server = [_source_port(data, link_type) < 32_768 for _, data in timed]
    files = {"client": tmp_path / "client.pcap", "server": tmp_path / "server.pcap"}
    for side, file_path in files.items():
        with file_path.open("wb") as out:
            writer = dpkt.pcap.Writer(out, linktype=link_type, nano=True)
            for (time, data), from_server in zip(timed, of_server, strict=True):
                if from_server == (side == "server"):
                    writer.writepkt(data, float(time) + (late_ms / 1000 if side == late_side else 0))
    found, problems = exchanges(*files.values())
    assert found == exchanges(path)[0]
    if late_ms == 1000:
        assert ("early-responses" in problems) == (late_side == "client")


def _source_port(data: bytes, link_type: int) -> int:
    frame = dpkt.ethernet.Ethernet(data) if link_type == dpkt.pcap.DLT_EN10MB else dpkt.sll.SLL(data)
    segment = frame.data.data
    return int(segment.sport) if isinstance(segment, dpkt.tcp.TCP) else 0
