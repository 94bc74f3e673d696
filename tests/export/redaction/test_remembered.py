"""Messages that are not plain by themselves are decoded once, and redacted as by their trees."""

import random
from collections import Counter
from pathlib import Path

import pytest

from dissector.capture_session import Capture
from dissector.exchange.model import Exchange
from dissector.export.redaction.frames import Redactor
from dissector.export.redaction.rows import FrameSide, RedactedFrames
from tools.benchmarks.hostile_shapes import SHAPES


@pytest.mark.parametrize(
    ("shape", "size"),
    [
        ("a short snap length", 2_000),
        *(
            pytest.param(shape, size, marks=pytest.mark.long)
            for shape, size in (
                ("only what brokers send", 20_000), ("a file damaged everywhere", 10_000),
                ("bodies of random bytes", 4_000), ("a hole behind each request", 4_000),
            )
        ),
    ],
)  # fmt: skip
def test_what_decoding_told_is_remembered(
    shape: str, size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "some.pcap"
    path.write_bytes(SHAPES[shape](size, random.Random(7)))
    decoded: Counter[int] = Counter()
    decode = RedactedFrames._decode

    def counted(frames: RedactedFrames, row: int) -> Exchange:
        decoded[row] += 1
        return decode(frames, row)

    with Capture([str(path)]) as capture:
        list(capture.read())
        sides = [
            FrameSide(row, span.of_client, span.size)
            for row in range(len(capture))
            for span in capture.frames.spans(row)
        ]
        monkeypatch.setattr(RedactedFrames, "_decode", counted)
        redactor = Redactor()
        frames = RedactedFrames(capture, redactor)
        frames.learn(range(len(capture)))
        found = list(frames.contents(sides))
        trees = Redactor()
        trees.remnants = redactor.remnants
        for side, frame in zip(sides, found, strict=True):
            [exchange] = capture.at(range(side.row, side.row + 1))
            message = exchange.request if side.of_client else exchange.response
            assert frame == (b"" if message is None else trees.message(message)), side
    assert decoded
    assert decoded.total() <= 1.1 * len(capture)
