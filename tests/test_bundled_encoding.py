"""What `show` prints of the bundled captures is written back to the very bytes, and shows the same as a capture."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

from dissector.capture_file import Capture
from dissector.cli.json_lines import json_line
from dissector.cli.spoken import Captured, Transcript, take
from dissector.encoding import Held, held, token
from dissector.session.exchange import Message
from tests.conftest import CAPTURES

NOT_CANONICAL = {"trailing-bytes", "unknown-version"}
"""Frames with bytes that no field has: JSON does not hold those."""
NOT_EQUAL = {"librdkafka": 2, "plain-socket": 1}
"""librdkafka writes three bytes too many behind Metadata requests; one request is of ApiVersions v99."""
LEAST_FRAMES = 3900


def written(line: dict[str, Any]) -> tuple[Held | None, Held | None]:
    """What a line holds of a request and a response; a login's token by itself is either."""
    if line["kind"] == "exchange":
        return held(line)
    return (token(line), None) if line["direction"] == "request" else (None, token(line))


def is_canonical(message: Message) -> bool:
    return not NOT_CANONICAL & {finding.code for finding in message.findings}


def test_every_frame_of_every_bundled_capture_comes_back(capsys: Any) -> None:
    equal, odd = 0, Counter[str]()
    for path in CAPTURES:
        with Capture([str(path)]) as capture:
            for exchange in capture.exchanges():
                messages = (exchange.request, exchange.response)
                for message, back in zip(messages, written(json.loads(json_line(exchange))), strict=True):
                    assert (message is None) == (back is None)
                    if message is None or back is None:
                        continue
                    if back == (message.data, 0):
                        equal += 1
                    else:
                        assert not is_canonical(message), f"{path.name} {exchange.row.number} {exchange.row.api}"
                        odd[path.stem] += 1
    with capsys.disabled():
        print(f"\nencode: {equal:,} of {equal + odd.total():,} frames come back byte for byte")
    assert odd == NOT_EQUAL
    assert equal >= LEAST_FRAMES


def shown(path: Path) -> list[dict[str, Any]]:
    """What `show` prints, without what is counted."""
    with Capture([str(path)]) as capture:
        lines = [json.loads(json_line(exchange)) for exchange in capture.exchanges()]
    return [{name: value for name, value in line.items() if name not in ("number", "connection")} for line in lines]


def test_a_capture_made_from_json_shows_the_same(bundled: Path, tmp_path: Path) -> None:
    made = Captured()
    with Capture([str(bundled)]) as capture:
        lines = [json.loads(json_line(exchange)) for exchange in capture.exchanges()]
        canonical = [all(is_canonical(m) for m in (e.request, e.response) if m) for e in capture.exchanges()]
    for line in lines:
        take(made, line)
    path = tmp_path / "made.pcapng"
    path.write_bytes(b"".join(made.pcapng("made for a test")))
    for was, now, same in zip(shown(bundled), shown(path), canonical, strict=True):
        if same:
            assert was == now


def test_a_transcript_made_from_json_has_the_same_pairs(bundled: Path, tmp_path: Path) -> None:
    path = tmp_path / "made.hex"
    with path.open("wb") as out, Capture([str(bundled)]) as capture:
        transcript = Transcript(out)
        before = list(capture.exchanges())
        for exchange in before:
            take(transcript, json.loads(json_line(exchange)))
    with Capture([str(path)]) as capture:
        after = list(capture.exchanges())
    for was, now in zip(before, after, strict=True):
        for one, other in ((was.request, now.request), (was.response, now.response)):
            assert (one is None) == (other is None)
            if one is not None and other is not None and is_canonical(one):
                assert other.data == one.data
