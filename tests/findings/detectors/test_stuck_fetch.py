"""A consumer that fetches one offset again and again, and consumers that wait."""

import struct
from pathlib import Path
from typing import Any

import pytest

from dissector.core.finding import Finding
from tests.cases import cases
from tests.findings.conversations import troubles
from tests.findings.wire import Wire, pcap_of

CUT = struct.pack(">qi", 41, 5_000) + bytes(700)
WHOLE: dict[str, Any] = {"batches": [{"magic": 2, "base_offset": 41, "records": [{"offset": 41, "value": "76"}]}]}


def fetch(wire: Wire, at: float, offset: int, records: Any, end: int = 90, version: int = 11) -> None:
    asked = {"partition": 0, "fetch_offset": offset, "partition_max_bytes": 1_000}
    got = {"partition_index": 0, "high_watermark": end, "records": records}
    if isinstance(records, bytes):
        got["records"] = {
            "size": len(records),
            "batches": [],
            "truncated": {"size": len(records), "data": records.hex()},
        }
    wire.exchange(
        at, "Fetch", version, {"topics": [{"topic": "ev{0}", "partitions": [asked]}]},
        {"responses": [{"topic": "ev{0}", "partitions": [got]}]},
    )  # fmt: skip


def found(folder: Path, *wires: Wire) -> list[Finding]:
    return [finding for _, finding in troubles(pcap_of(folder, *wires)) if finding.code == "stuck-fetch"]


@cases(("count", "is_stuck"), [(4, False), (5, True), (9, True)])
def test_a_message_that_is_larger_than_a_fetch(tmp_path: Path, count: int, is_stuck: bool) -> None:
    wire = Wire()
    for n in range(count):
        fetch(wire, 10 * n, 41, CUT, version=1)
    messages = [each.message for each in found(tmp_path, wire)]
    assert len(messages) == is_stuck
    if is_stuck:
        assert messages[0].startswith(f"ev{{0}}[0]: offset 41 was fetched {count} times within {10 * count - 10}.0 ms")
        assert "only the beginning of a message of 5,012 bytes: it is larger than 1,000 bytes" in messages[0]


def test_a_batch_that_the_client_does_not_get_past(tmp_path: Path) -> None:
    wire = Wire()
    for n in range(6):
        fetch(wire, 10 * n, 41, WHOLE)
    [finding] = found(tmp_path, wire)
    assert "though the responses have records: the client does not get past them" in finding.message


@pytest.mark.parametrize("step", [1, 2, 3, 4096])
def test_it_does_not_depend_on_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int) -> None:
    monkeypatch.setattr("dissector.findings.framework.examination.STEP", step)
    wire = Wire()
    for n in range(7):
        fetch(wire, 10 * n, 41, CUT, version=1)
    fetch(wire, 100, 50, WHOLE)
    [finding] = found(tmp_path, wire)
    assert "7 times" in finding.message


def test_waiting_at_the_end_is_nothing(tmp_path: Path) -> None:
    wire = Wire()
    for n in range(20):
        fetch(wire, 10 * n, 90, None)
    assert not found(tmp_path, wire)


def test_a_consumer_that_goes_on_is_not_stuck(tmp_path: Path) -> None:
    wire = Wire()
    for n in range(40):
        fetch(wire, 10 * n, n // 4, WHOLE)
    assert not found(tmp_path, wire)


def test_empty_responses_before_the_high_watermark_are_an_open_transaction(tmp_path: Path) -> None:
    wire = Wire()
    for n in range(20):
        fetch(wire, 10 * n, 41, None)
    assert not found(tmp_path, wire)


def test_two_connections_are_not_one(tmp_path: Path) -> None:
    wires = [Wire(1), Wire(2)]
    for n in range(8):
        fetch(wires[n % 2], 10 * n, 41, CUT, version=1)
    assert not found(tmp_path, *wires)


def test_a_client_that_tries_versions_is_not_stuck(tmp_path: Path) -> None:
    wire = Wire()
    for version in range(4, 12):
        fetch(wire, 10 * version, 41, WHOLE, version=version)
    assert not found(tmp_path, wire)
