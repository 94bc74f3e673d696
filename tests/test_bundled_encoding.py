"""What `show` prints of the bundled captures is written back to the very bytes, and shows the same as a capture."""

import json
from pathlib import Path
from typing import Any

import pytest

from dissector.capture_session import Capture
from dissector.cli.encode import CaptureTarget, TranscriptTarget, add_line
from dissector.exchange.from_json import EncodedFrame, frames_of_exchange, token
from dissector.exchange.to_json import json_line
from tests.conftest import BUNDLED, CAPTURES, VARIED
from tests.imprecise import DURATIONS

pytestmark = pytest.mark.slow

HONEST = [path for path in CAPTURES if path.stem != "trouble-oversized-request"]
"""All but the one with a request whose size prefix says 110 MiB before 4 kB: what is written has its true size."""
SOME_HONEST = [path for path in HONEST if path.stem in VARIED]
honest = pytest.mark.parametrize("recorded", [each for each in BUNDLED if each.values[0] in HONEST])
"""What is made of frames is read in those that differ in this."""


def written(line: dict[str, Any]) -> tuple[EncodedFrame | None, EncodedFrame | None]:
    """What a line holds of a request and a response; a login's token by itself is either."""
    if line["kind"] == "exchange":
        return frames_of_exchange(line)
    return (token(line), None) if line["direction"] == "request" else (None, token(line))


@pytest.mark.long
@pytest.mark.parametrize(
    "paths", [pytest.param(SOME_HONEST, id="some"), pytest.param(HONEST, marks=pytest.mark.exhaustive, id="all")]
)
def test_every_frame_of_bundled_captures_comes_back(paths: list[Path], capsys: Any) -> None:
    """Also those with bytes that no field has: three too many in librdkafka's Metadata, ApiVersions v99."""
    frames, indexed = 0, 0
    for path in paths:
        with Capture([str(path)], show_secrets=True) as capture:
            for _ in capture.read():
                pass
            indexed += sum(len(capture.frames.spans(row)) for row in range(len(capture)))
            for exchange in capture.exchanges():
                messages = (exchange.request, exchange.response)
                for message, back in zip(messages, written(json.loads(json_line(exchange))), strict=True):
                    assert (message is None) == (back is None)
                    if message is not None:
                        assert back == (message.data, 0), f"{path.name} {exchange.row.number} {exchange.row.api}"
                        frames += 1
    with capsys.disabled():
        print(f"\nencode: all {frames:,} frames of the bundled captures come back byte for byte")
    assert frames == indexed > 0


def shown(path: Path) -> list[dict[str, Any]]:
    """What `show` prints, without what is counted."""
    with Capture([str(path)], show_secrets=True) as capture:
        lines = [json.loads(json_line(exchange)) for exchange in capture.exchanges()]
    left_out = ("number", "connection", *DURATIONS)
    return [{name: value for name, value in line.items() if name not in left_out} for line in lines]


@honest
def test_a_capture_made_from_json_shows_the_same(recorded: Path, tmp_path: Path) -> None:
    made = CaptureTarget()
    with Capture([str(recorded)], show_secrets=True) as capture:
        lines = [json.loads(json_line(exchange)) for exchange in capture.exchanges()]
    for line in lines:
        add_line(made, line)
    path = tmp_path / "made.pcapng"
    path.write_bytes(b"".join(made.pcapng("made for a test")))
    assert shown(path) == shown(recorded)


@honest
def test_a_transcript_made_from_json_has_the_same_pairs(recorded: Path, tmp_path: Path) -> None:
    path = tmp_path / "made.hex"
    with path.open("wb") as out, Capture([str(recorded)], show_secrets=True) as capture:
        transcript = TranscriptTarget(out)
        before = list(capture.exchanges())
        for exchange in before:
            add_line(transcript, json.loads(json_line(exchange)))
    with Capture([str(path)], show_secrets=True) as capture:
        after = list(capture.exchanges())
    for was, now in zip(before, after, strict=True):
        for one, other in ((was.request, now.request), (was.response, now.response)):
            assert (one is None) == (other is None)
            if one is not None and other is not None:
                assert other.data == one.data
