"""An exported capture has the chosen exchanges unchanged, and a comment on each packet."""

import json
import random
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissector.capture_session import Capture
from dissector.conversation import pcapng
from dissector.exchange.to_json import json_line
from dissector.export.packets import carrying_packets
from tests.conftest import CAPTURES
from tests.needs import needs
from tests.traffic import (
    capture_of,
    conversation,
    ethernet,
    exchanges,
    pcap,
    reordered,
    repeated,
    resegmented,
    seeds,
)
from tests.transport.wrapping import fragments

pytestmark = pytest.mark.slow

MADE_ANEW = ("number", "connection", "latency_ns", "wait_ns", "response_transfer_ns", "findings")
"""What may differ where only some exchanges are taken along."""


def lines(path: Path | str) -> list[dict[str, Any]]:
    with Capture([str(path)], show_secrets=True) as capture:  # a part of a capture has more that may be one
        return [json.loads(json_line(exchange)) for exchange in capture.exchanges()]


def exported(source: Path | str, target: Path, rows: list[int] | None = None) -> Path:
    with Capture([str(source)]) as capture:
        for _ in capture.read():
            pass
        chosen = range(len(capture)) if rows is None else rows
        target.write_bytes(b"".join(pcapng(carrying_packets(capture, chosen), "made for a test")))
    return target


def test_an_export_of_all_rows_reads_the_same(bundled: Path, tmp_path: Path) -> None:
    was, now = lines(bundled), lines(exported(bundled, tmp_path / "out.pcapng"))
    assert [{**line, "connection": 0} for line in now] == [{**line, "connection": 0} for line in was]


@pytest.mark.long
def test_an_export_of_some_rows_has_them_unchanged(tmp_path: Path) -> None:
    chance = random.Random(5)
    for path in CAPTURES[::4]:
        was = lines(path)
        rows = sorted(chance.sample(range(len(was)), min(len(was), 9)))
        now = [_content(line) for line in lines(exported(path, tmp_path / "out.pcapng", rows))]
        for row in rows:
            if was[row]["kind"] == "exchange":
                assert _content(was[row]) in now, f"{path.name} row {row + 1}"


def _content(line: dict[str, Any]) -> dict[str, Any]:
    """Without what the exchanges left behind had taught: names of ids, partitions of a session."""
    kept = {name: value for name, value in line.items() if name not in MADE_ANEW}
    for side in ("request", "response"):
        if kept.get(side):
            kept[side] = {name: kept[side][name] for name in ("time_ns", "size", "header")}
    return kept


@pytest.mark.long
@given(chance=seeds, size=st.integers(1, 200))
def test_a_reordered_capture_is_exported_completely(tmp_path: Path, chance: random.Random, size: int) -> None:
    packets = conversation(exchanges(9, pipelined=3, size=40), segment=size)
    source = capture_of(tmp_path, repeated(reordered(resegmented(packets, chance), chance), chance))
    assert lines(exported(source, tmp_path / "out.pcapng")) == lines(source)


def test_a_row_is_exported_with_its_packets_alone(tmp_path: Path) -> None:
    source = capture_of(tmp_path, conversation(exchanges(9, size=4000)))
    with Capture([source]) as capture:
        for _ in capture.read():
            pass
        packets = list(carrying_packets(capture, [4]))
    # SYN, SYN|ACK, a request, three segments of a response
    assert [len(packet.data) for packet in packets] == [54, 54, 77, 1454, 1454, 1262]
    assert [packet.comments for packet in packets[2:4]] == [
        ("kdissect 5: Metadata v0 request, correlation id 4",),
        ("kdissect 5: Metadata v0 response, correlation id 4, latency 3.0 ms",),
    ]


def test_frames_in_ip_fragments_are_exported_with_all_fragments(tmp_path: Path) -> None:
    packets = conversation(exchanges(3, size=400))
    whole = [packet.ip() for packet in packets]
    cut = [
        piece
        for n, packet in enumerate(whole)
        for piece in (fragments(packet, n, 64) if len(packet) > 80 else [packet])
    ]
    source = tmp_path / "fragments.pcap"
    source.write_bytes(pcap(cut, link_type=101))
    assert len(cut) > len(whole)
    now, was = lines(exported(source, tmp_path / "out.pcapng", [1])), lines(source)
    assert (was[1]["request"], was[1]["response"]) in [(line.get("request"), line.get("response")) for line in now]


def test_files_of_one_capture_are_exported_as_one(tmp_path: Path) -> None:
    packets = [ethernet(packet) for packet in conversation(exchanges(6, size=3000))]
    blocks = pcap(packets)
    first, second = tmp_path / "a.pcap", tmp_path / "b.pcap"
    cut = 24 + sum(16 + len(packet) for packet in packets[:9])
    first.write_bytes(blocks[:cut])
    second.write_bytes(blocks[:24] + blocks[cut:])
    with Capture([str(second), str(first)]) as capture:
        was = [exchange.row for exchange in capture.exchanges()]
        (tmp_path / "out.pcapng").write_bytes(b"".join(pcapng(carrying_packets(capture, range(len(was))), "made")))
    with Capture([str(tmp_path / "out.pcapng")]) as capture:
        assert [exchange.row for exchange in capture.exchanges()] == was


@pytest.mark.long
def test_wireshark_shows_the_comments(tmp_path: Path) -> None:
    needs("tshark")
    path = exported(capture_of(tmp_path, conversation(exchanges(3))), tmp_path / "out.pcapng")
    command = ["tshark", "-r", str(path), "-Y", "kafka", "-T", "fields", "-e", "frame.comment"]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    assert len(shown) == 6
    assert shown[2] == "kdissect 2: Metadata v0 request, correlation id 1"
