"""The info column of many rows at once is that of each row decoded."""

from pathlib import Path

import numpy as np
import pytest

from dissector.bulk import body_columns, field_keys, info_texts
from dissector.bulk.body_columns import BodyColumns
from dissector.capture_session import Capture
from tests.conftest import BUNDLED, PCAPS


def opened(path: Path, *, show_secrets: bool = False) -> Capture:
    capture = Capture([str(path)], show_secrets=show_secrets)
    for _ in capture.read():
        pass
    capture.connections.learn()
    return capture


def check(capture: Capture) -> int:
    """Hold the texts against decoded rows; return how many there are."""
    rows = range(len(capture))
    found = capture.messages.info(rows)
    for text, exchange in zip(found, capture.at(rows), strict=True):
        assert text is None or text == exchange.row.info
    return sum(text is not None for text in found)


@pytest.mark.parametrize("show_secrets", [False, True])
@pytest.mark.parametrize("path", BUNDLED)
def test_texts_are_those_of_decoded_rows(path: Path, show_secrets: bool) -> None:
    check(opened(path, show_secrets=show_secrets))


@pytest.mark.parametrize(
    ("name", "least"),
    [
        ("java-streams", 0.8),
        ("java-admin", 0.99),
        ("java-share-admin", 0.99),
        ("kraft-quorum", 0.95),
        ("java-sasl-scram-sha-512", 0.99),
        ("java-sasl-oauthbearer", 0.99),
        ("franz-go", 0.99),
    ],
)
def test_most_rows_need_no_careful_look(name: str, least: float) -> None:
    capture = opened(PCAPS / f"{name}.pcapng")
    assert check(capture) > least * len(capture)


def test_rows_with_findings_of_several_messages_are_decoded() -> None:
    capture = opened(PCAPS / "java-streams.pcapng")
    for _ in capture.findings.examine():
        pass
    check(capture)


def test_few_keys_and_texts_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(field_keys, "MOST_KEYS", 20)
    monkeypatch.setattr(info_texts, "MOST_TEXTS", 3)
    capture = opened(PCAPS / "java-streams.pcapng")
    assert check(capture)
    monkeypatch.setattr(field_keys, "MOST_KEY_BYTES", 64)
    check(opened(PCAPS / "java-streams.pcapng"))


def test_a_text_does_not_depend_on_which_rows_are_asked_for() -> None:
    capture = opened(PCAPS / "librdkafka.pcapng")
    every = capture.messages.info(range(len(capture)))
    assert [capture.messages.info(range(row, row + 1))[0] for row in range(len(capture))] == every


def test_frames_in_pieces_are_joined_some_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    capture = opened(PCAPS / "two-brokers.pcapng")
    every = capture.messages.info(range(len(capture)))
    monkeypatch.setattr(body_columns, "READ_TOGETHER", 1 << 10)
    bodies = BodyColumns(capture.pipeline.indexer, capture.pipeline.store, show_secrets=False)
    rows = np.arange(len(capture))
    parts = [part for side in (True, False) for part in bodies.messages(rows, is_request=side)]
    whole = {(part.api_key, part.layout) for part in parts}
    assert len(parts) > len(whole)
    assert opened(PCAPS / "two-brokers.pcapng").messages.info(range(len(capture))) == every
