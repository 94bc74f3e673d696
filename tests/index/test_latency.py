"""Latencies and their parts, held against tshark's times of packets: from the packet with the first byte of the request
to the packet with the last one of the response."""

import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from dissector.capture_session import Capture
from tests.conftest import PCAPS, some_of
from tests.findings.test_network_recordings import NETWORK

RECORDINGS = [
    *(PCAPS / f"{name}.pcapng" for name in ("java", "librdkafka", "librdkafka-pipelined", "kafkajs", "sarama-2.3.0")),
    *(NETWORK / f"{name}.pcap" for name in ("slow-link", "nagle-request", "nagle-response")),
]
MOST_DIFFERENT = ("java", "librdkafka-pipelined", "slow-link", "nagle-response")
Times = dict[tuple[str, str, int], tuple[int, int, int, int]]
"""By client, server and correlation id: the times of the first and last byte of request and response."""


def by_tshark(path: Path) -> Times:
    """Exchanges whose messages end each in a packet of its own: tshark has one time for all that end in a packet."""
    fields = ("frame.number", "frame.time_epoch", "ip.src", "tcp.srcport", "ip.dst", "tcp.dstport",
              "kafka.correlation_id", "tcp.segment", "kafka.request_frame")  # fmt: skip
    command = ["tshark", "-r", str(path), "-T", "fields", "-d", "tcp.port==9092,kafka"]
    for field in fields:
        command += ["-e", field]
    out = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout
    times: dict[int, int] = {}
    messages: dict[tuple[str, str, int, bool], tuple[int, int]] = {}
    seen: Counter[tuple[str, str, int, bool]] = Counter()
    for line in out.splitlines():
        number, epoch, source, from_port, target, to_port, ids, pieces, _ = line.split("\t")
        seconds, _, rest = epoch.partition(".")
        times[int(number)] = int(seconds) * 10**9 + int(rest.ljust(9, "0")[:9])
        if not ids or "," in ids:
            continue
        is_request = to_port == "9092"
        ends = (f"{source}:{from_port}", f"{target}:{to_port}")
        key = (*(ends if is_request else ends[::-1]), int(ids), is_request)
        begin = min(map(int, pieces.split(","))) if pieces else int(number)
        messages[key] = begin, int(number)
        seen[key] += 1
    found = {}
    for (client, server, number, is_request), request in messages.items():
        response = messages.get((client, server, number, False))
        once = all(seen[client, server, number, each] == 1 for each in (True, False))
        if is_request and response is not None and once:
            found[client, server, number] = (*(times[n] for n in request), *(times[n] for n in response))
    return found


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.skipif(shutil.which("tshark") is None, reason="NOT TESTED with tshark: it is not installed")
@pytest.mark.parametrize(
    "path",
    some_of(RECORDINGS, "java", "librdkafka-pipelined", "slow-link", "nagle-response"),
    ids=lambda path: path.stem,
)
def test_latencies_are_between_the_packets_that_tshark_has(path: Path) -> None:
    expected, compared = by_tshark(path), 0
    with Capture([str(path)]) as capture:
        for _ in capture.read():
            pass
        rows = [exchange.fields for exchange in capture.exchanges()]
    for row in rows:
        key = (row.client, row.server, row.correlation_id)
        if row.latency_ns is None or key not in expected:
            continue
        sent, sent_all, came, came_all = expected[key]
        parts = (row.request_transfer_ns, row.wait_ns, row.response_transfer_ns)
        assert (row.latency_ns, parts) == (came_all - sent, (sent_all - sent, came - sent_all, came_all - came))
        compared += 1
    assert compared >= 10


def test_a_transfer_is_what_lies_between_the_pieces() -> None:
    """Of a request in two pieces, 40 ms apart, and of a response of 150 kB over 1 Mbit/s."""
    for name, part, least in (
        ("nagle-request", "request_transfer_ns", 38),
        ("slow-link", "response_transfer_ns", 700),
    ):
        with Capture([str(NETWORK / f"{name}.pcap")]) as capture:
            for _ in capture.read():
                pass
            longest = max(capture.exchanges(), key=lambda each: each.fields.latency_ns or 0).fields
            assert getattr(longest, part) >= least * 10**6
            assert 10 * getattr(longest, part) >= 8 * (longest.latency_ns or 0)
