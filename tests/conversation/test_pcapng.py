"""What is written is a capture for others too: times, lengths, link types and comments come back."""

import subprocess
from pathlib import Path

import dpkt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissector.capture import open_capture
from dissector.conversation import Packet, pcapng
from dissector.conversation.pcapng import LATEST, LONGEST_COMMENT
from dissector.core.store import Store
from tests.needs import needs

PACKETS = st.lists(
    st.builds(
        Packet,
        time_ns=st.integers(0, LATEST),
        data=st.binary(max_size=30),
        length=st.none() | st.integers(30, 1 << 20),
        link_type=st.sampled_from([1, 101, 113, 276]),
        comments=st.lists(st.text(max_size=20), max_size=2).map(tuple),
    ),
    max_size=8,
)


def written(path: Path, packets: list[Packet]) -> str:
    path.write_bytes(b"".join(pcapng(packets, "made for a test")))
    return str(path)


@given(packets=PACKETS)
def test_our_reader_returns_every_packet_unchanged(tmp_path: Path, packets: list[Packet]) -> None:
    reader = open_capture(written(tmp_path / "a.pcapng", packets), Store())
    found = [
        (time, bytes(batch.data[at : at + size]), length, link)
        for batch in reader.batches()
        for time, at, size, length, link in zip(
            batch.time_ns.tolist(), batch.offset.tolist(), batch.captured.tolist(), batch.length.tolist(),
            batch.link_type.tolist(), strict=True,
        )
    ]  # fmt: skip
    assert found == [(p.time_ns, p.data, len(p.data) if p.length is None else p.length, p.link_type) for p in packets]
    assert reader.problems == []


def test_another_reader_finds_the_packets_too(tmp_path: Path) -> None:
    path = written(
        tmp_path / "a.pcapng", [Packet(10**18 + n, bytes([n] * n), comments=("one", "two")) for n in range(9)]
    )
    with Path(path).open("rb") as file:
        assert [data for _, data in dpkt.pcapng.Reader(file)] == [bytes([n] * n) for n in range(9)]


@pytest.mark.long
def test_comments_of_any_length_are_shown_by_wireshark(tmp_path: Path) -> None:
    needs("tshark")
    long = "ü" * LONGEST_COMMENT
    path = written(tmp_path / "a.pcapng", [Packet(1, bytes(60), comments=("Fetch v12", long)), Packet(2, bytes(60))])
    command = ["tshark", "-r", path, "-T", "fields", "-e", "frame.comment"]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    assert shown == ["Fetch v12," + "ü" * (LONGEST_COMMENT // 2), ""]
