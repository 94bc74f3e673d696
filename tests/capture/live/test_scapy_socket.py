"""scapy's socket as engine: here for a filter, where neither tcpdump nor dumpcap is on the search path, with libpcap
where the machine has it and without it."""

import contextlib
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from dissector.capture import CaptureError, GrowingFile
from dissector.capture.live import LOOPBACK, CaptureSettings, Recording
from dissector.capture.live.interfaces import interface
from dissector.capture.live.scapy_socket import ScapySocket
from dissector.capture_session import Capture
from tests.capture.live.loopback import broker, needs_rights, talk

ROOT = Path(__file__).parents[3]
pytestmark = [pytest.mark.slow, needs_rights]


@pytest.fixture(autouse=True)
def nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("scapy", reason="NOT TESTED with scapy: it is not installed")
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))


def wanted(expression: str, path: Path | str = "", interface: str = LOOPBACK) -> CaptureSettings:
    return CaptureSettings(interface, (9092,), expression, promiscuous=False, path=str(path))


@pytest.mark.long
def test_it_captures_each_packet_once(tmp_path: Path) -> None:
    with broker() as port, broker() as other:
        with Recording(wanted(f"tcp port {port}", tmp_path / "kept.pcapng")) as recording:
            assert recording.engine == "scapy"
            assert "60,000 packets a second" in next(recording.messages())
            name = recording.next_path()
            assert name is not None
            with Capture([GrowingFile(name, lambda: recording.ended)]) as capture:
                steps = capture.read()
                talk(port, 300)
                talk(other, 8)
                recording.stop()
                for _ in steps:
                    pass
                assert recording.dropped == 0
                assert len(capture) == 300
                assert len(capture.connections) == 1
                assert not capture.problems
                rows = capture.at(range(300))
                assert all(row.fields.latency_ns is not None and row.fields.latency_ns > 0 for row in rows)
                assert not any(row.findings for row in rows), "no packet is there twice"
        assert recording.captured == capture.packets
        assert not recording.failure


def opened(expression: str, refused: list[str]) -> ScapySocket | None:
    where = interface(LOOPBACK)
    assert where is not None
    return ScapySocket.open(wanted(expression), where, refused)


@pytest.fixture
def no_libpcap(monkeypatch: pytest.MonkeyPatch) -> None:
    """What importing scapy's binding does where libpcap is missing, as on a machine without tcpdump."""
    monkeypatch.setattr("dissector.capture.live.scapy_socket._finds_libpcap", lambda: False)


def test_packets_wait_while_nobody_reads() -> None:
    with broker() as port:
        found = opened(f"tcp port {port}", [])
        assert found is not None
        with contextlib.closing(found):
            talk(port, 1_000)
            packets = [packet for block in found.last_blocks() for packet in block]
            received, dropped = found.statistics()
            assert dropped == 0
            assert received == len(packets) > 2_000


@pytest.mark.usefixtures("no_libpcap")
def test_without_libpcap_the_filter_for_ports_is_ours() -> None:
    with broker() as port, broker() as second, broker() as other:
        found = opened(f"tcp port {port} or tcp port {second}", [])
        assert found is not None
        with contextlib.closing(found):
            for each in (port, second, other):
                talk(each, 20)
            ports = {struct.unpack_from(">HH", data, 14 + 20) for block in found.last_blocks() for _, _, data in block}
            assert {port, second} == {number for pair in ports for number in pair} & {port, second, other}
            assert found.statistics()[1] == 0


@pytest.mark.usefixtures("no_libpcap")
def test_without_libpcap_another_filter_is_refused_in_a_line() -> None:
    refused: list[str] = []
    assert opened("tcp port 9092 and host 127.0.0.1", refused) is None
    assert refused == ["scapy: without libpcap no filter but 'tcp port N or tcp port N' can be compiled"]


@pytest.mark.long
def test_a_wrong_filter_is_reported_in_a_line() -> None:
    with pytest.raises(CaptureError, match=r"^can't capture on lo: scapy: .*filter") as raised:
        Recording(wanted("tcp prt 9092"))
    assert "\n" not in str(raised.value)


@pytest.mark.long
def test_scapy_is_not_imported_before_it_is_needed() -> None:
    words = "import sys, dissector.capture.live.recorder; sys.exit('scapy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", words], check=False, cwd=ROOT).returncode == 0
