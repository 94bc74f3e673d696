"""dumpcap and tcpdump as engines: used where our own can't be, here for a filter on all interfaces."""

import shutil
from pathlib import Path

import pytest

from dissector.capture import CaptureError, GrowingFile
from dissector.capture.live import CaptureSettings, Recording, RingSettings
from dissector.capture_session import Capture
from tests.capture.live.loopback import broker, needs_rights, talk
from tests.needs import needs


@pytest.fixture(params=["dumpcap", "tcpdump"])
def tool(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The only program that captures on this machine, as far as the search path shows."""
    name = str(request.param)
    needs(name)
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / name).symlink_to(str(shutil.which(name)))
    monkeypatch.setenv("PATH", str(folder))
    return name


def wanted(expression: str, path: Path | str = "", ring: RingSettings | None = None) -> CaptureSettings:
    return CaptureSettings("any", (9092,), expression, promiscuous=False, path=str(path), ring=ring)


@pytest.mark.long
@pytest.mark.slow
@needs_rights
def test_it_captures_what_the_filter_says(tool: str, tmp_path: Path) -> None:
    with broker() as port, broker() as other:
        with Recording(wanted(f"tcp port {port}", tmp_path / "kept")) as recording:
            assert recording.engine == tool
            name = recording.next_path()
            assert name is not None
            with Capture([GrowingFile(name, lambda: recording.ended)]) as capture:
                steps = capture.read()
                talk(port, 8)
                talk(other, 8)
                while len(capture) < 8:
                    next(steps)
                recording.stop()
                for _ in steps:
                    pass
                assert len(capture) == 8
                assert len(capture.connections) == 1
        assert recording.captured == capture.packets
        assert not recording.failure


@pytest.mark.long
@pytest.mark.slow
@needs_rights
def test_a_wrong_filter_is_reported(tool: str) -> None:
    with pytest.raises(CaptureError, match=rf"^can't capture on any: {tool}: .*(syntax error|Invalid capture filter)"):
        Recording(wanted("tcp prt 9092"))


@pytest.mark.long
@pytest.mark.slow
@needs_rights
def test_only_dumpcap_writes_rings(tool: str, tmp_path: Path) -> None:
    ring = RingSettings(kilobytes=1, files=2)
    with broker() as port:
        settings = wanted(f"tcp port {port}", tmp_path / "ring.pcapng", ring)
        if tool == "tcpdump":
            with pytest.raises(CaptureError, match="tcpdump can't write a ring"):
                Recording(settings)
            return
        with Recording(settings) as recording:
            for _ in range(5):
                talk(port, 40)
            recording.stop()
            recording.join()
        assert not recording.failure
        files = sorted(path for path in tmp_path.iterdir() if path.suffix == ".pcapng")
        assert len(files) == 2
        for path in files:
            with Capture([str(path)]) as capture:
                for _ in capture.read():
                    pass
                assert not capture.problems


@needs_rights
def test_without_any_program_a_filter_on_all_interfaces_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(CaptureError, match=r"^--capture-filter needs dumpcap or tcpdump, and neither is installed$"):
        Recording(wanted("tcp port 9092"))
