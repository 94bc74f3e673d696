"""Columns of the index equal the values of the decoded exchanges."""

import random
from pathlib import Path

import pytest

from dissector.capture_session import Capture
from dissector.exchange.row_fields import ROW_FIELDS
from dissector.export.table_cells import as_tabs, tab_lines
from tests.conftest import PCAPS
from tests.traffic import Packet, capture_of, conversation, exchanges, lossy

NAMES = tuple(name for name, field in ROW_FIELDS.items() if field.is_indexed)


def check(*paths: str, response_to: tuple[int, int] | None = None) -> list[str]:
    """The kinds of rows that were compared."""
    with Capture(paths, response_to=response_to) as capture:
        decoded = [[ROW_FIELDS[name].from_exchange(exchange) for name in NAMES] for exchange in capture.exchanges()]
        columns = capture.index.columns(NAMES, range(len(capture)))
        assert [list(row) for row in zip(*columns, strict=True)] == decoded
        middle = len(capture) // 2
        assert capture.index.columns(NAMES, range(middle, middle + 1)) == [[column[middle]] for column in columns]
        cells = capture.index.cells(NAMES, range(len(capture)))
        assert cells is None or tab_lines(cells) == as_tabs(columns)
        for name, column in zip(NAMES, columns, strict=True):
            assert capture.index.columns([name], range(len(capture))) == [column]
        return [str(row[NAMES.index("kind")]) for row in decoded]


def test_of_every_bundled_capture(bundled: Path) -> None:
    check(str(bundled))


def test_behind_the_entries_of_files() -> None:
    segment = next((PCAPS / "segments" / "rdkafka-ledger-0").glob("*.log"))
    kinds = check(str(segment), str(PCAPS / "java.pcapng"))
    assert {"batch", "exchange"} <= set(kinds)


@pytest.mark.long
@pytest.mark.slow
def test_of_gaps_and_responses_alone(tmp_path: Path) -> None:
    kinds: set[str] = set()
    for seed in range(8):
        packets = lossy(conversation(exchanges(40)), random.Random(seed), 0.2)
        kinds |= set(check(capture_of(tmp_path, packets)))
    assert {"gap", "exchange"} <= kinds


def test_of_a_connection_that_is_not_kafka(tmp_path: Path) -> None:
    hello = bytes.fromhex("160301") + (512).to_bytes(2, "big") + bytes(512)
    path = capture_of(tmp_path, [Packet(True, 1, hello), Packet(False, 1, hello)])
    assert check(path) == ["tls"]


@pytest.mark.parametrize("inferred", [None, (3, 12)])
def test_of_a_response_alone(tmp_path: Path, inferred: tuple[int, int] | None) -> None:
    path = tmp_path / "one.hex"
    path.write_text("< 0000000a 00000007 00000000 0000\n")
    assert check(str(path), response_to=inferred) == ["exchange"]
