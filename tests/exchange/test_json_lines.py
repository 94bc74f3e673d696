"""The JSON lines of many rows at once are those of each row decoded."""

from pathlib import Path

import pytest

from dissector.capture_session import Capture
from dissector.exchange import json_bodies, json_fields
from dissector.exchange.to_json import json_line
from dissector.protocol.kernel import json_messages
from tests.conftest import BUNDLED, PCAPS
from tests.exchange.test_info_texts import opened


def check(capture: Capture) -> int:
    """Hold the lines against decoded rows; return how many there are."""
    rows = range(len(capture))
    lines = []
    for text, ends in capture.json_lines(rows):
        lines += [text[start:end] for start, end in zip([0, *ends.tolist()], ends.tolist(), strict=False)]
    for line, exchange in zip(lines, capture.at(rows), strict=True):
        assert line in (b"", json_line(exchange))
    return sum(map(bool, lines))


@pytest.mark.parametrize("show_secrets", [False, True])
@pytest.mark.parametrize("path", BUNDLED)
def test_lines_are_those_of_decoded_rows(path: Path, show_secrets: bool) -> None:
    capture = opened(path, show_secrets=show_secrets)
    for _ in capture.examine():
        pass
    check(capture)


@pytest.mark.parametrize(
    ("name", "least"),
    [
        ("java-streams", 0.99),
        ("librdkafka-pipelined", 0.98),
        ("franz-go", 0.8),
        ("compare-java-1", 0.99),
        ("java-admin", 0.95),
    ],
)
def test_most_rows_of_clients_need_no_careful_look(name: str, least: float) -> None:
    capture = opened(PCAPS / f"{name}.pcapng")
    assert check(capture) > least * len(capture)


def test_little_memory_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_messages, "FEW_BYTES", 1 << 8)
    monkeypatch.setattr(json_messages, "MOST_BYTES", 1 << 14)
    monkeypatch.setattr(json_messages, "HOLES_TOGETHER", 4)
    monkeypatch.setattr(json_fields, "MOST_BYTES", 1 << 10)
    monkeypatch.setattr(json_bodies, "MOST_PLAIN", 1 << 10)
    monkeypatch.setattr(json_bodies, "MOST_FRAME_BYTES", 1 << 12)
    assert check(opened(PCAPS / "librdkafka-pipelined.pcapng"))
    assert check(opened(PCAPS / "java-streams.pcapng"))


def test_a_line_does_not_depend_on_which_rows_are_asked_for() -> None:
    capture = opened(PCAPS / "librdkafka.pcapng")
    every = b"".join(each.text for each in capture.json_lines(range(len(capture))))
    single = (each.text for row in range(len(capture)) for each in capture.json_lines(range(row, row + 1)))
    assert b"".join(single) == every
