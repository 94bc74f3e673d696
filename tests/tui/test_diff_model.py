"""The model of the diff screen: which pairs, which lines, their text."""

import sys
from collections.abc import Iterator
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from dissector.analysis.diff import DiffSide, PairVerdict, diff
from dissector.capture_session import Capture
from dissector.core.text import clean
from tests.conftest import PCAPS
from tests.terminal import terminal
from tui.diff_labels import cause_cells, cause_head, fit, line_cells, line_head, pair_cells, pair_head
from tui.diff_model import SIDES, DiffModel, row_of
from tui.diff_runner import compare
from tui.threads import Stopped

NAMES = ["java-1", "java-2", "librdkafka-1", "kafka-python-1", "aiokafka-1"]
COMMAND = [sys.executable, "-m", "dissector.cli.main", "diff"]


@cache
def side(name: str) -> DiffSide:
    capture = Capture([str(PCAPS / f"compare-{name}.pcapng")])
    for _ in capture.read():
        pass
    return DiffSide(capture, name)


@cache
def model(a: str, b: str) -> DiffModel:
    return DiffModel(diff(side(a), side(b)), side(a).capture, side(b).capture)


two = pytest.mark.parametrize(("a", "b"), [("java-1", "librdkafka-1"), ("aiokafka-1", "kafka-python-1")])


@given(st.text(max_size=60).map(clean), st.integers(0, 40), st.booleans())
def test_a_fitted_text_has_exactly_its_width(text: str, width: int, tail: bool) -> None:
    fitted = fit(text, width, tail=tail)
    assert cell_len(fitted) == width
    if width and cell_len(text) <= width:
        assert fitted.rstrip() == text.rstrip()


@pytest.mark.slow
@two
@pytest.mark.parametrize("width", [58, 78, 98, 140, 200])
def test_every_line_of_every_list_fills_its_width(a: str, b: str, width: int) -> None:
    shown = model(a, b)

    def lines() -> Iterator[list[tuple[str, str]]]:
        for entry in shown.comparison.entries:
            yield cause_cells(entry, width, first=True)
        for pair in shown.comparison.pairs:
            yield pair_cells(shown, pair, width, matched=False, marked=None)
        shown.choose(shown.comparison.pairs[0])
        for line in shown.lines:
            yield line_cells(shown, line, width)

    assert all(cell_len("".join(text for text, _ in cells)) == width for cells in lines())
    assert all(cell_len(head(width)) <= width for head in (cause_head, pair_head, line_head))


@two
def test_hiding_what_is_equal_hides_nothing_else(a: str, b: str) -> None:
    shown = model(a, b)
    shown.show_equal(shown=False)
    pairs = shown.comparison.pairs
    hidden = [pair for n, pair in enumerate(pairs) if n not in set(shown.shown)]
    shown.show_equal(shown=True)
    assert list(shown.shown) == list(range(len(pairs)))
    for pair in hidden:
        assert pair.verdict is PairVerdict.SAME
        assert not shown.comparison.differences(pair)
        assert not shown.differs(pair)


@pytest.mark.long
@given(st.sampled_from(NAMES), st.sampled_from(NAMES), st.integers(0, 80))
def test_the_nearest_pair_is_the_same_or_the_next_that_is_shown(a: str, b: str, place: int) -> None:
    shown = model(a, b)
    shown.show_equal(shown=False)
    found = shown.nearest(place)
    if shown.shown:
        assert 0 <= found < len(shown.shown)
        behind = [each for each in shown.shown if each >= place]
        assert shown.shown[found] == (behind[0] if behind else shown.shown[-1])
    shown.show_equal(shown=True)


@pytest.mark.long
@pytest.mark.slow
@two
def test_every_difference_is_visited_forwards_and_backwards(a: str, b: str) -> None:
    shown = model(a, b)
    pairs = shown.comparison.pairs

    def walk(step: int) -> list[tuple[int, int]]:
        met = []
        position = shown.next_pair(0 if step > 0 else len(pairs) - 1, step, lambda: False)
        while position is not None:
            shown.choose(pairs[position])
            if step < 0:
                shown.choose_line(shown.last_line())
            line: int | None = shown.line
            while line is not None:
                met.append((position, line))
                shown.choose_line(line)
                line = shown.next_line(step)
            position = shown.next_pair(position + step, step, lambda: False)
        return met

    met = walk(1)
    assert met == walk(-1)[::-1]
    for position, pair in enumerate(pairs):
        count = sum(each == position for each, _ in met)
        if pair.a is not None and pair.b is not None and pair.verdict is not PairVerdict.ORDER:
            assert count == len(shown.comparison.differences(pair)) + shown.versions_differ(pair)


@two
def test_all_fields_of_a_pair_are_those_of_both_messages_and_have_all_differences(a: str, b: str) -> None:
    shown = model(a, b)
    for pair in shown.comparison.pairs:
        fields = shown.comparison.fields(pair)
        for n in SIDES:
            assert any((each.where_a, each.where_b)[n] for each in fields) is (row_of(pair, n) is not None)
        differences = [each.difference for each in fields if each.difference is not None]
        assert len(differences) == len(set(differences))
        assert {each.part for each in fields} <= {"request", "response"}


@two
def test_every_cause_of_an_api_is_shown_by_a_pair_of_it(a: str, b: str) -> None:
    shown = model(a, b)
    for entry in shown.comparison.entries:
        place = shown.first_shown(entry, lambda: False)
        assert (place is None) is (entry.row_a is None and entry.row_b is None and not entry.api)
        if place is not None:
            pair = shown.comparison.pairs[place]
            apis = {shown.api(n, row) for n in SIDES if (row := row_of(pair, n)) is not None}
            assert apis == {entry.api}


def test_a_comparison_reports_its_progress_and_stops_on_request() -> None:
    path = str(PCAPS / "compare-java-1.pcapng")
    with Capture([path]) as one, Capture([path]) as other:
        progress: list[str] = []
        found = compare(DiffSide(one, "one"), DiffSide(other, "other"), (), (), progress.append, lambda: False)
        assert found.is_same
        assert [words.split("%")[0] for words in progress if words.startswith("comparing")] != []
        with pytest.raises(Stopped):
            compare(DiffSide(one, "one"), DiffSide(other, "other"), (), (), progress.append, lambda: True)


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize(
    ("b", "title", "code"),
    [pytest.param("java-2", "the same", 0, marks=pytest.mark.exhaustive), ("librdkafka-1", "differences", 1)],
)
def test_on_a_terminal_kdissect_diff_opens_the_screen_and_exits_with_the_result(b: str, title: str, code: int) -> None:
    files = [str(PCAPS / f"compare-{name}.pcapng") for name in ("java-1", b)]
    with terminal([*COMMAND, *files]) as shown:
        shown.until(title)
        shown.press("q")
        shown.rest()
        assert shown.process.wait(timeout=20) == code
