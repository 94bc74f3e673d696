"""Summaries of findings, kept as numbers, are what decoding the rows gives, in whatever order they were made."""

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dissector
from dissector.capture_session import Capture
from dissector.core.finding import Severity
from dissector.exchange.message_subjects import ERROR
from dissector.exchange.model import Exchange
from dissector.exchange.silence_causes import SILENCE_CAUSES, UNANSWERED_CODE
from dissector.filter import parse
from dissector.filter.column_evaluation import OPEN, YES
from dissector.filter.selection import evaluate_index
from dissector.findings.registry import CODES
from dissector.findings.summary import SEVERITIES, FindingSummary
from dissector.protocol.records.batch import HEADER
from dissector.protocol.records.compression import CODECS
from dissector.protocol.schema.enums import ERROR_CODE, members
from tests.conftest import BUNDLED, CAPTURES, PCAPS
from tests.findings.conversations import Talk, grown, heartbeat, written
from tests.traffic import Turn, capture_of, conversation

NAMES = ("java", "trouble-error-storm", "trouble-rebalance-loop", "java-sasl-refused", "plain-socket-message-sets")
QUICK = [path for path in CAPTURES if path.stem in NAMES]


def decoded(exchange: Exchange) -> FindingSummary:
    """What a row tells, as whoever looks at it sees it."""
    severity = exchange.row.severity
    return FindingSummary(
        frozenset(finding.code for finding in exchange.findings),
        -1 if severity is None else SEVERITIES.index(severity),
        frozenset(ERROR.of(exchange)),
    )


def kept(capture: Capture) -> list[FindingSummary | None]:
    """What the columns have of each row, of what it tells by itself and with others; None where it is not known."""
    entries = next((n for n in range(len(capture)) if not capture.exchange(n).is_stored), len(capture))
    rows = np.arange(len(capture) - entries)
    (numbers, own), (others, several) = (
        capture.findings.message_summaries(rows),
        capture.findings.cross_message_summaries(rows),
    )
    row_summary: list[FindingSummary | None] = [None] * entries
    for number, other in zip(numbers.tolist(), others.tolist(), strict=True):
        one, two = own[number], several[other]
        own_codes = one.codes if SILENCE_CAUSES.isdisjoint(two.codes) else one.codes - {UNANSWERED_CODE}
        both = FindingSummary(own_codes | two.codes, max(one.severity, two.severity), one.errors)
        row_summary.append(both if number else None)
    return row_summary


def examine_rows(capture: Capture, rows: Iterable[int]) -> None:
    for _ in capture.findings.examine_messages(np.array(sorted(rows), np.int64)):
        pass


def opened(path: Path, *, examined: bool = False) -> Capture:
    capture = Capture([str(path)])
    for _ in capture.read():
        pass
    for _ in capture.findings.examine() if examined else ():
        pass
    return capture


def produced(number: int, section: bytes, codec: int) -> list[Turn]:
    """A Produce of a batch with such a section, and its response without an error."""
    head = list(HEADER.unpack(bytes(HEADER.size)))
    head[1], head[3], head[5], head[12] = HEADER.size - 12 + len(section), 2, codec, 1
    data = [{"name": "t", "partition_data": [{"index": 0, "records": HEADER.pack(*head) + section}]}]
    asked = dissector.encode_request("Produce", 9, {"acks": -1, "topic_data": data}, correlation_id=number)
    answer = dissector.encode_response("Produce", 9, {"responses": []}, correlation_id=number)
    return [Turn(True, asked), Turn(False, answer)]


@pytest.mark.parametrize("codec", [1, 2, 3, 4])
def test_rows_with_records_that_do_not_open_are_not_taken_for_others(tmp_path: Path, codec: int) -> None:
    whole = CODECS[codec].compress(b"\x26\0\0\0\1\x18abcdefghijkl\0")
    sections = [whole, b"damaged text" + whole, whole, whole[:-1], whole + b"and text", whole]
    turns = [turn for number, each in enumerate(sections) for turn in produced(number, each, codec)]
    with opened(Path(capture_of(tmp_path, conversation(turns)))) as capture:
        examine_rows(capture, range(len(capture)))
        found = kept(capture)
        expected = [decoded(capture.exchange(row)) for row in range(len(capture))]
    assert found == expected
    assert expected[0].codes == expected[2].codes == expected[5].codes == frozenset()
    assert "bad-compression" in expected[1].codes


@pytest.mark.slow
@pytest.mark.parametrize(
    "path", [each for each in BUNDLED if each.id not in NAMES] + [pytest.param(each, id=each.stem) for each in QUICK]
)
@pytest.mark.parametrize("examined", [False, True])
def test_summaries_of_rows_are_what_decoding_gives(path: Path, examined: bool) -> None:
    """Every row has the summary that decoding gives; filters by code and severity match just these rows, and so do
    filters by error, which read the responses."""
    with opened(path, examined=examined) as capture:
        expected = [decoded(exchange) for exchange in capture.at(range(len(capture)))]
        examine_rows(capture, range(len(capture)))
        assert kept(capture) == expected
        expected_by_filter = {
            f"finding == {code}": [code in row_summary.codes for row_summary in expected] for code in CODES
        }
        expected_by_filter |= {f"severity == {name.value}": [row_summary.severity == n for row_summary in expected]
                  for n, name in enumerate(Severity)}  # fmt: skip
        expected_by_filter |= {f"severity >= {name.value}": [row_summary.severity >= n for row_summary in expected]
                  for n, name in enumerate(Severity)}  # fmt: skip
        expected_by_filter |= {
            "finding": [bool(row_summary.codes) for row_summary in expected],
            "severity": [row_summary.severity >= 0 for row_summary in expected],
        }
        for text, fits in expected_by_filter.items():
            answers = evaluate_index(parse(text), capture, range(len(capture)))
            assert not (answers == OPEN).any(), text
            assert (answers == YES).tolist() == fits, text
            assert (
                evaluate_index(parse(f"!({text})"), capture, range(len(capture))).tolist() == (YES - answers).tolist()
            )
        errors = [row_summary.errors for row_summary in expected]
        names = members(ERROR_CODE)
        rows_by_filter = {
            f"error == {names[code]}": [code in each for each in errors] for code in frozenset[object]().union(*errors)
        }
        rows_by_filter["error"] = [bool(each - {0}) for each in errors]
        for text, fits in rows_by_filter.items():
            assert capture.matching(parse(text), np.arange(len(capture))).tolist() == np.flatnonzero(fits).tolist(), (
                text
            )


@cache
def told_of(name: str) -> list[FindingSummary]:
    with opened(PCAPS / f"{name}.pcapng") as capture:
        return [decoded(exchange) for exchange in capture.at(range(len(capture)))]


@pytest.mark.long
@pytest.mark.slow
@given(st.sampled_from(NAMES), st.data())
def test_summaries_do_not_depend_on_the_order_of_steps(name: str, data: st.DataObject) -> None:
    with opened(PCAPS / f"{name}.pcapng") as capture:
        rows = st.sets(st.integers(0, len(capture) - 1))
        for some in data.draw(st.lists(rows, max_size=4)):
            examine_rows(capture, some)
            assert all(now in (None, then) for now, then in zip(kept(capture), told_of(name), strict=True))
        for text in ("error", "severity >= warning", "finding == unanswered"):
            wanted = parse(text)
            fits = [n for n, each in enumerate(capture.exchanges()) if wanted.matches(each)]
            assert [row for found in capture.select(wanted) for row in found.rows.tolist()] == fits


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("path", QUICK, ids=lambda path: path.stem)
def test_while_a_capture_grows_nothing_is_kept_that_changes_later(path: Path, tmp_path: Path) -> None:
    whole = path.read_bytes()
    early: list[FindingSummary | None] = []
    for capture in grown(tmp_path / "growing.pcapng", whole, [len(whole) * n // 9 for n in range(1, 9)]):
        for _ in capture.findings.examine():
            pass
        examine_rows(capture, range(len(capture)))
        now = kept(capture)
        codes = [row_summary.codes if row_summary is not None else None for row_summary in now]
        assert all(one is None or one.codes <= (two or set()) for one, two in zip(early, codes, strict=False))
        assert all(one is None or two is None or one.errors == two.errors for one, two in zip(early, now, strict=False))
        early = now
        if capture.is_read:
            assert now == [decoded(exchange) for exchange in capture.at(range(len(capture)))]


def test_cross_message_findings_count_where_nothing_else_is_found(tmp_path: Path) -> None:
    talk = Talk()
    for at in (0, 1):
        heartbeat(talk, at, took=20, correlation_id=7)
    with opened(Path(written(tmp_path, talk))) as capture:
        wanted = parse("severity == error && finding == duplicate-correlation-id")
        examine_rows(capture, range(2))
        assert not capture.matching(wanted, np.arange(2)).tolist()
        for _ in capture.findings.examine():
            pass
        assert evaluate_index(wanted, capture, range(2)).tolist() == [0, YES]


def test_concurrent_threads_give_the_same_summaries() -> None:
    with opened(PCAPS / "java.pcapng") as capture, ThreadPoolExecutor(3) as threads:
        list(threads.map(lambda first: examine_rows(capture, range(first, len(capture), 2)), (0, 1, 0)))
        assert kept(capture) == told_of("java")


def test_most_rows_of_a_busy_capture_are_summarized_without_decoding_them(monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(PCAPS / "librdkafka-pipelined.pcapng") as capture:
        lookup, read_rows = capture._decoder, []
        look = lookup.exchanges
        monkeypatch.setattr(lookup, "exchanges", lambda rows: look(read_rows.append(len(rows)) or rows))
        monkeypatch.setattr("dissector.findings.message_column.TOGETHER", 64)
        examine_rows(capture, range(len(capture)))
        assert 0 < sum(read_rows) < len(capture) // 2
