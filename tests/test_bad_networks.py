"""Captures of bad networks: a loss costs exactly the frames that it touched, and rows account for every byte."""

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cases import cases
from tests.networks import (
    HARMLESS,
    LOSSES,
    bytes_of_rows,
    captured_bytes,
    clean_exchanges,
    intact,
    one_file,
    reach,
    rows_of,
    traffic,
    with_closing,
    write_pcap,
)
from tests.traffic import (
    FIN,
    RST,
    SYN,
    Mangling,
    Packet,
    ethernet,
    pcap,
    reordered,
    repeated,
    resegmented,
    seeds,
)
from tests.transport.wrapping import TUNNELS, fragments
from tests.transport.wrapping import ethernet as framed


@pytest.mark.long
@pytest.mark.slow
@cases("mangle", HARMLESS.values(), ids=HARMLESS)
def test_a_network_that_loses_nothing_gives_every_exchange(tmp_path: Path, mangle: Mangling) -> None:
    clean = traffic()
    rows = rows_of(one_file(tmp_path, mangle(clean.packets)))
    assert clean_exchanges(rows) == clean.whole
    assert len(rows) == len(clean.exchanges)


@pytest.mark.long
@pytest.mark.parametrize(
    ("segment", "isn"),
    [
        pytest.param(1, (2**32 - 300, 2**32 - 9), marks=pytest.mark.slow),
        (23, (1000, 5000)),
        (1400, (2**32 - 300, 2**32 - 9)),
        (65_000, (2**32 - 300, 2**32 - 9)),
    ],
)
def test_segments_of_any_size_and_any_sequence_numbers(tmp_path: Path, segment: int, isn: tuple[int, int]) -> None:
    clean = traffic(segment, isn)
    rows = rows_of(one_file(tmp_path, clean.packets))
    assert (clean_exchanges(rows), len(rows)) == (clean.whole, len(clean.exchanges))


@pytest.mark.long
@cases(("mangle", "missed"), LOSSES.values(), ids=LOSSES)
def test_a_loss_costs_only_the_frames_it_touched(tmp_path: Path, mangle: Mangling, missed: int) -> None:
    clean = traffic()
    remaining = mangle(clean.packets)
    rows = rows_of(one_file(tmp_path, remaining))
    streams = captured_bytes(remaining)
    kept = intact(clean.exchanges, streams)
    assert clean_exchanges(rows) <= clean.whole
    assert (kept - clean_exchanges(rows)).total() == missed
    assert clean_exchanges(rows) <= kept
    # Rows have all captured bytes; and of a frame whose end was lost, its whole size or none of the missing bytes.
    in_rows = bytes_of_rows(rows)
    assert Counter({side: len(marks) for side, marks in streams.items()}) <= in_rows <= reach(clean.exchanges, streams)


@cases("tunnels", [("vxlan",), ("vxlan", "gre"), ("geneve", "vxlan over ipv6")])
def test_tunnels_in_tunnels_change_nothing(tmp_path: Path, tunnels: tuple[str, ...]) -> None:
    clean = traffic()
    packets = [packet.ip() for packet in clean.packets]
    for tunnel in tunnels:
        packets = [TUNNELS[tunnel](packet) for packet in packets]
    rows = rows_of([write_pcap(tmp_path, "made", map(framed, packets))])
    assert (clean_exchanges(rows), len(rows)) == (clean.whole, len(clean.exchanges))


@pytest.mark.parametrize("lost", [None, 30, 40])
def test_ip_fragments_in_any_order_and_one_lost(tmp_path: Path, lost: int | None) -> None:
    """A packet that lost a fragment is lost; data packets have two fragments at least."""
    clean, chance = traffic(), random.Random(3)
    parts: list[bytes] = []
    for number, packet in enumerate(clean.packets):
        cut = fragments(packet.ip(), number, 24)
        chance.shuffle(cut)
        parts += cut[number == lost :]
    assert lost is None or clean.packets[lost].payload
    rows = rows_of([write_pcap(tmp_path, "made", map(framed, parts))])
    streams = captured_bytes(packet for number, packet in enumerate(clean.packets) if number != lost)
    assert clean_exchanges(rows) == intact(clean.exchanges, streams)
    assert bytes_of_rows(rows) == reach(clean.exchanges, streams)


def test_a_file_a_direction_gives_what_one_file_gives(tmp_path: Path) -> None:
    clean = traffic()
    timed = pcap([ethernet(packet) for packet in clean.packets])
    head, records, at = timed[:24], [], 24
    for packet in clean.packets:
        size = 16 + len(ethernet(packet))
        records.append(timed[at : at + size])
        at += size
    files = []
    for side in (True, False):
        path = tmp_path / f"{side}.pcap"
        chosen = (each for each, packet in zip(records, clean.packets, strict=True) if packet.from_client == side)
        path.write_bytes(head + b"".join(chosen))
        files.append(path)
    rows = rows_of(files)
    assert (clean_exchanges(rows), len(rows)) == (clean.whole, len(clean.exchanges))


@pytest.mark.parametrize("from_client", [True, False])
def test_of_one_direction_every_frame_is_a_row(tmp_path: Path, from_client: bool) -> None:
    clean = traffic()
    rows = rows_of(one_file(tmp_path, [packet for packet in clean.packets if packet.from_client == from_client]))
    sizes = Counter(row.request_size if from_client else row.response_size for row in rows)
    assert sizes == Counter(len(each[2 if from_client else 3]) for each in clean.exchanges)
    assert {row.kind for row in rows} == {"exchange"}


@cases("limit", [58, 96, 1000])
def test_bytes_cut_off_by_a_snap_length_are_in_rows_to_the_byte(tmp_path: Path, limit: int) -> None:
    clean = traffic()
    path = tmp_path / "made.pcap"
    path.write_bytes(pcap([ethernet(packet) for packet in clean.packets], snaplen=limit))
    rows = rows_of([path])
    streams = captured_bytes(replace(packet, payload=packet.payload[: max(0, limit - 54)]) for packet in clean.packets)
    assert clean_exchanges(rows) <= intact(clean.exchanges, streams)
    assert bytes_of_rows(rows) == Counter({side: len(marks) for side, marks in captured_bytes(clean.packets).items()})


def test_bytes_of_packets_without_payload_are_in_rows_to_the_byte(tmp_path: Path) -> None:
    """As a snap length of 54 leaves them: no byte of any payload."""
    clean = traffic()
    path = tmp_path / "made.pcap"
    path.write_bytes(pcap([ethernet(packet) for packet in clean.packets], snaplen=54))
    assert bytes_of_rows(rows_of([path])) == Counter(
        {side: len(marks) for side, marks in captured_bytes(clean.packets).items()}
    )


@pytest.mark.parametrize("syn", [True, False])
def test_ports_used_again_are_read_again(tmp_path: Path, syn: bool) -> None:
    """Without a SYN, distant sequence numbers begin another connection after the first one was closed."""
    first = traffic()
    again = traffic(isn=(3_000_000_000, 2_000_000_000))
    later = [packet for packet in again.packets if syn or not packet.flags & SYN]
    rows = rows_of(one_file(tmp_path, [*with_closing(first.packets, FIN), *later]))
    assert clean_exchanges(rows) == first.whole + again.whole
    assert len({row.connection for row in rows}) == 6


def test_a_reset_in_the_middle_ends_a_stream(tmp_path: Path) -> None:
    clean = traffic()
    remaining = clean.packets[: len(clean.packets) // 2]
    rows = rows_of(one_file(tmp_path, with_closing(remaining, RST)))
    streams = captured_bytes(remaining)
    assert clean_exchanges(rows) == intact(clean.exchanges, streams)
    assert bytes_of_rows(rows) == reach(clean.exchanges, streams)


@pytest.mark.long
@given(late=st.integers(1, 120))
def test_a_capture_that_starts_late_invents_nothing(tmp_path: Path, late: int) -> None:
    clean = traffic()
    remaining = clean.packets[late:]
    rows = rows_of(one_file(tmp_path, remaining))
    kept = intact(clean.exchanges, captured_bytes(remaining))
    assert clean_exchanges(rows) <= kept
    assert (kept - clean_exchanges(rows)).total() <= 3, kept - clean_exchanges(rows)


@pytest.mark.long
@pytest.mark.slow
@given(chance=seeds, loss=st.floats(0.0, 0.3), steps=st.lists(
    st.sampled_from([resegmented, reordered, repeated]), max_size=3, unique=True))  # fmt: skip
def test_any_network_gives_the_exchanges_that_it_did_not_damage(
    tmp_path: Path, chance: random.Random, loss: float, steps: list[Callable[..., list[Packet]]]
) -> None:
    clean = traffic()
    packets = [packet for packet in clean.packets if not packet.payload or chance.random() >= loss]
    for step in steps:
        packets = step(packets, chance)
    rows = rows_of(one_file(tmp_path, packets))
    streams = captured_bytes(packets)
    kept = intact(clean.exchanges, streams)
    assert clean_exchanges(rows) <= kept
    assert loss or clean_exchanges(rows) == kept  # after losses, lone frames between holes are skipped, not guessed
    assert loss or len(rows) == len(clean.exchanges)
    sizes = bytes_of_rows(rows)
    for side, marks in streams.items():
        assert sizes[side] >= len(marks)  # how far beyond is the test below


@pytest.mark.parametrize("seed", [13, 38])
def test_a_search_after_losses_takes_no_bytes_inside_a_frame_for_a_size(tmp_path: Path, seed: int) -> None:
    """Of 128 and 16 MB they are, where zeros inside of a frame are read as one."""
    clean, chance = traffic(), random.Random(seed)
    remaining = resegmented(
        [packet for packet in clean.packets if not packet.payload or chance.random() >= 0.25], chance
    )
    assert bytes_of_rows(rows_of(one_file(tmp_path, remaining))) <= reach(clean.exchanges, captured_bytes(remaining))
