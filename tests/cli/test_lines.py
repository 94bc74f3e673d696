"""Lines that the native kernel writes are those of rows that are decoded one by one."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dissector.capture_session import Capture
from dissector.cli.render.lines import API_WIDTH, MOST_EXACT, NO_LATENCY, row_line, text_lines, words, write_lines
from dissector.exchange.model import ExchangeRow
from dissector.index.index_columns import IndexColumns
from tests.conftest import BUNDLED

START_NS = 1_790_000_000_000_000_000
COUNTS = st.integers(-1, 12_000) | st.integers(1, 1 << 31)
HALVES = st.builds(lambda half, unit: half * unit // 2, st.integers(-30_000, 30_000), st.sampled_from((10**5, 10**6)))
"""Between two numbers that are shown."""
LATENCIES = st.none() | HALVES | st.integers(-10 * 10**9, 10 * 10**9) | st.integers(1 - MOST_EXACT, MOST_EXACT - 1)
TEXTS = st.text(st.sampled_from("aµ␡ 　\n"), max_size=6)
ROWS = st.builds(
    ExchangeRow,
    number=st.integers(1, 1 << 40),
    kind=st.just("exchange"),
    time_ns=st.integers(-(10**12), 10**16).map(lambda since: START_NS + since),
    connection=st.integers(1, 1 << 31),
    client=st.just(""),
    server=st.just(""),
    api=st.sampled_from(("Fetch", "an API with a name that is wider than its column")),
    version=st.integers(-(1 << 15), (1 << 15) - 1),
    correlation_id=st.integers(-(1 << 31), (1 << 31) - 1),
    client_id=st.none() | TEXTS,
    request_size=COUNTS.filter(lambda count: count >= 0),
    response_size=COUNTS.map(lambda count: None if count < 0 else count),
    latency_ns=LATENCIES,
    info=TEXTS,
    severity=st.none(),
)


def lines(rows: list[ExchangeRow]) -> str:
    """What the kernel writes."""
    numbers = np.arange(len(rows))
    texts = [f"{row.api:<{API_WIDTH}}" for row in rows] + [words(row.client_id, row.info) for row in rows]
    none = np.zeros(len(rows), np.int64)

    def column(name: str, missing: int = -1) -> np.ndarray:
        values = (getattr(row, name) for row in rows)
        return np.array([missing if value is None else value for value in values], np.int64)

    columns = IndexColumns(
        none, column("connection"), none, column("version"), column("correlation_id"), none, none,
        column("request_size"), column("response_size"), column("time_ns"), none, none, none,
    )  # fmt: skip
    latency = column("latency_ns", NO_LATENCY)
    written = write_lines(columns, column("number"), START_NS, latency, numbers, len(rows) + numbers, texts)
    return bytes(written).decode()


@given(st.lists(ROWS, min_size=1, max_size=20))
@example([])
def test_a_line_is_that_of_its_row(rows: list[ExchangeRow]) -> None:
    assert lines(rows) == "".join(f"{row_line(row, START_NS)}\n" for row in rows)


@pytest.mark.parametrize("path", BUNDLED)
def test_lines_of_a_capture_are_those_of_its_exchanges(path: Path) -> None:
    with Capture([str(path)]) as capture:
        for _ in capture.read():
            pass
        for _ in capture.findings.examine():
            pass
        expected = "".join(f"{row_line(exchange.row, capture.start_ns)}\n" for exchange in capture.exchanges())
        assert bytes(text_lines(capture, np.arange(len(capture)))).decode() == expected
