"""A transcript reads as the exchanges that it was made from."""

from collections import Counter
from pathlib import Path

import pytest

from dissector.capture_session import Capture
from dissector.export.transcript import transcript
from tests.conftest import PCAPS
from tests.traffic import Turn, capture_of, conversation, request, response


def comparable(capture: Capture) -> Counter[tuple[object, ...]]:
    """The bytes of each message, without times and addresses."""
    return Counter(
        (each.fields.kind, each.fields.api, each.fields.version, each.request and each.request.data,
         each.response and each.response.data)
        for each in capture.exchanges()
    )  # fmt: skip


def written(path: Path | str, target: Path) -> Path:
    with Capture([str(path)], show_secrets=True) as capture:
        list(capture.read())
        target.write_text("".join(f"{line}\n" for line in transcript(capture, range(len(capture)))), "utf-8")
    return target


@pytest.mark.slow
def test_a_transcript_has_every_byte(bundled: Path, tmp_path: Path) -> None:
    with (
        Capture([str(bundled)], show_secrets=True) as was,
        Capture([str(written(bundled, tmp_path / "out.txt"))], show_secrets=True) as now,
    ):
        assert comparable(now) == comparable(was)


def test_text_of_the_wire_is_cleaned(tmp_path: Path) -> None:
    turns = [Turn(True, request(7, client_id=b"\x1b[2J\n> 00")), Turn(False, response(7))]
    path = written(capture_of(tmp_path, conversation(turns)), tmp_path / "out.txt")
    lines = path.read_text("utf-8").splitlines()
    assert lines[0].startswith("# 1: 10.0.0.1:40001 to 10.0.0.2:9092, Metadata v0, correlation id 7, ␛[2J␊> 00")
    assert [line[0] for line in lines] == ["#", ">", "<"]


def test_missing_bytes_are_mentioned(tmp_path: Path) -> None:
    packets = conversation([Turn(True, request(7)), Turn(False, response(7, bytes(3000)))])
    source = capture_of(tmp_path, [packet for packet in packets if packet.seq != 6401])
    with Capture([source]) as capture:
        list(capture.read())
        assert "# 1,400 bytes of it were not captured" in list(transcript(capture, range(len(capture))))


def test_secrets_are_masked(tmp_path: Path) -> None:
    path = PCAPS / "java-sasl-plain.pcapng"
    with Capture([str(path)]) as capture:
        list(capture.read())
        text = "".join(transcript(capture, range(len(capture)))).replace(" ", "")
    assert b"alice-secret".hex() not in text
