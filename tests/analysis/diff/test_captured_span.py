"""What a capture could not have of its connections is no difference, but a sentence; what it has is compared."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from dissector.analysis.baseline import hold, observe, read_baseline, write_baseline
from dissector.analysis.baseline.baseline_file import LACKS
from dissector.analysis.baseline.holding import CAPTURED
from dissector.analysis.diff import build_matrix
from dissector.analysis.diff.captured_span import (
    MIN_STEADY_NS,
    SLACK,
    CapturedSpan,
    Sight,
    comes_late,
    is_phase,
    lacking,
    may_be_equal,
    may_lack,
    sights,
)
from dissector.analysis.diff.report import diff_report, matrix_report
from dissector.analysis.diff.side_profile import SideProfile
from dissector.analysis.diff.to_json import diff_to_json, matrix_to_json
from dissector.analysis.outcomes import RuleOutcome, RuleStatus
from dissector.analysis.rendering import render_text
from tests.analysis.diff.cutting import TENTHS, cut, recording
from tests.analysis.diff.editing import Lines, bundled, compared, edited, entry_texts, of, side
from tests.cases import cases

SEVERAL_PROGRAMS = ("connect-3.4", "connect-4.3", "java-2.8", "java-3.4", "streams-3.4", "streams-4.3")
"""Whose recordings have programs that begin in turn: of two parts, each may have some of them from their start, and
nothing tells that the others were there."""
UNTOLD = ("connect-3.4", "mirror-maker-3.4", "mirror-maker-4.3", "streams-3.4")
"""Whose programs do some of the same: nothing tells which of it a part has, beside a whole recording either."""
ALL = {each.parent.name for each in recording("*", "").parent.parent.glob("*/plain-2.pcapng.zst")}
CLIENTS = sorted(ALL - set(UNTOLD))
QUICK = ("java-4.3", "librdkafka-2.16", "kafkajs")
PARTS = [*((0, n) for n in range(1, TENTHS)), *((n, TENTHS) for n in range(1, TENTHS)), (2, 5), (4, 8)]
QUICK_PARTS = [(0, 4), (3, TENTHS), (2, 7)]
LATE = "begins in the middle of"
MINUTE_SPAN = CapturedSpan(2, 0, 0, MIN_STEADY_NS)


def check(a: str, b: str) -> None:
    """Compare, unless a part has all connections of some programs whole, and none of the others."""
    profile = SideProfile(side(b), {}, {})
    if profile.exchanges and lacking(profile.span):
        comparison = compared(a, b)
        assert entry_texts(comparison) == [], (a, b)
        assert comparison.not_compared, (a, b)


@pytest.mark.long
@pytest.mark.parametrize("client", QUICK)
def test_what_was_not_captured_is_no_difference(client: str, tmp_path: Path) -> None:
    whole = str(recording(client, "plain-1"))
    parts = [cut(recording(client, "plain-2"), *part, tmp_path) for part in QUICK_PARTS]
    for part in parts:
        check(whole, part)
    check(cut(recording(client, "plain-1"), 0, 6, tmp_path), parts[1])


@pytest.mark.exhaustive
@pytest.mark.parametrize("client", CLIENTS)
def test_what_was_not_captured_is_no_difference_wherever_it_is_cut(client: str, tmp_path: Path) -> None:
    whole = str(recording(client, "plain-1"))
    parts = [cut(recording(client, "plain-2"), *part, tmp_path) for part in PARTS]
    others = [cut(recording(client, "plain-1"), *part, tmp_path) for part in QUICK_PARTS]
    for part in parts:
        check(whole, part)
    for part in () if client in SEVERAL_PROGRAMS else parts[::3]:
        for other in others:
            check(other, part)


def test_a_whole_capture_says_nothing_of_it() -> None:
    comparison = compared(bundled("compare-java-1"), bundled("compare-java-2"))
    assert comparison.not_compared == ()


def test_the_sentence_is_in_each_form(tmp_path: Path) -> None:
    comparison = compared(bundled("compare-java-1"), cut(Path(bundled("compare-java-2")), 5, TENTHS, tmp_path))
    [first, *_] = comparison.not_compared
    assert first.startswith(f"B {LATE}")
    assert "versions, logins and joins of those" in first
    assert "ApiVersions" in first
    assert any(line.lstrip(" ·-").startswith("Not compared: B begins") for line in render_text(diff_report(comparison)))
    assert diff_to_json(comparison)["not_compared"] == list(comparison.not_compared)


def without(api: str) -> Callable[[Lines], Lines]:
    return lambda lines: [line for line in lines if line["api"] != api]


@pytest.mark.parametrize("api", ["ApiVersions", "LeaveGroup", "OffsetCommit", "InitProducerId"])
def test_what_a_client_really_stopped_to_request_is_a_difference(api: str, tmp_path: Path) -> None:
    comparison = compared(bundled("compare-java-1"), edited(bundled("compare-java-1"), tmp_path, without(api)))
    assert comparison.not_compared == ()
    assert (api, "only on one side") in {(entry[0], entry[2]) for entry in entry_texts(comparison)}


def acks(lines: Lines) -> None:
    for line in of(lines, "Produce"):
        line["request"]["body"]["acks"] = 1


def waits(lines: Lines) -> None:
    for line in of(lines, "Fetch"):
        line["request"]["body"]["max_wait_ms"] = 100


@pytest.mark.parametrize(
    ("edit", "field", "part"), [(acks, "request.acks", (0, 9)), (waits, "request.max_wait_ms", (5, TENTHS))]
)
def test_what_both_have_is_compared(
    edit: Callable[[Lines], None], field: str, part: tuple[int, int], tmp_path: Path
) -> None:
    other = cut(Path(edited(bundled("compare-java-2"), tmp_path, edit)), *part, tmp_path)
    comparison = compared(bundled("compare-java-1"), other)
    assert comparison.not_compared
    assert field in {entry[1] for entry in entry_texts(comparison)}


def held(path: str, text: str) -> list[RuleOutcome]:
    baseline, lines = read_baseline(text)
    return hold(SideProfile(side(path), {}, {}), baseline, lines, file="orders.toml")


def broken(outcomes: list[RuleOutcome]) -> list[str]:
    return [each.rule for each in outcomes if each.status is RuleStatus.BROKEN]


@pytest.mark.parametrize("client", QUICK)
@pytest.mark.parametrize("part", QUICK_PARTS)
def test_what_was_not_captured_breaks_no_line_of_a_baseline(client: str, part: tuple[int, int], tmp_path: Path) -> None:
    whole = str(recording(client, "plain-1"))
    some = cut(recording(client, "plain-2"), *part, tmp_path)
    for before, after in ((whole, some), (some, whole)):
        text = write_baseline(observe(SideProfile(side(before), {}, {}))[0])
        assert (f"{LACKS} = " in text) == (before == some)
        outcomes = held(after, text)
        assert broken(outcomes) == []
        assert [each.rule for each in outcomes].count(CAPTURED) == 1


def test_a_setting_that_a_part_shows_breaks_its_line(tmp_path: Path) -> None:
    text = write_baseline(observe(SideProfile(side(bundled("compare-java-1")), {}, {}))[0])
    other = cut(Path(edited(bundled("compare-java-2"), tmp_path, waits)), 5, TENTHS, tmp_path)
    assert broken(held(other, text)) == ["settings.fetch max wait (ms)"]


def test_a_minute_shows_what_a_client_does_but_its_start_and_its_end() -> None:
    late = MINUTE_SPAN._replace(begun_before=1)
    brief = MINUTE_SPAN._replace(open_at_end=1, duration_ns=MIN_STEADY_NS - 1)
    assert not any(may_lack(api, MINUTE_SPAN) for api in ("JoinGroup", "Fetch", "LeaveGroup"))
    assert [may_lack(api, late) for api in ("JoinGroup", "ApiVersions", "Fetch")] == [True, True, False]
    assert [may_lack(api, MINUTE_SPAN._replace(open_at_end=1)) for api in ("LeaveGroup", "Fetch")] == [True, False]
    assert may_lack("Fetch", brief)
    assert lacking(late) == "the beginning of 1 of 2 connections"
    assert lacking(MINUTE_SPAN) == ""


def test_of_two_that_have_their_start_the_longer_one_has_all() -> None:
    is_open = MINUTE_SPAN._replace(open_at_end=1)
    shorter = is_open._replace(duration_ns=MIN_STEADY_NS - 1)
    assert [each.is_partial for each in sights(is_open, shorter)] == [False, True]
    assert [each.is_partial for each in sights(is_open, is_open)] == [False, False]
    assert [each.is_partial for each in sights(is_open, MINUTE_SPAN)] == [True, False]
    assert [each.is_partial for each in sights(is_open, shorter._replace(begun_before=1))] == [True, True]


@cases(("first_ns", "late"), [(MIN_STEADY_NS // SLACK, True), (MIN_STEADY_NS // SLACK - 1, False), (0, False)])
def test_what_comes_in_the_second_half_of_the_time_may_be_missed(first_ns: int, *, late: bool) -> None:
    """A side that lasts twice as long as the other took would have it, too."""
    assert comes_late(first_ns, MIN_STEADY_NS) == late


@cases(("pause_ns", "may"), [(MIN_STEADY_NS // SLACK, True), (MIN_STEADY_NS // SLACK - 1, False)])
def test_who_pauses_for_half_of_the_time_of_another_may_be_missed(pause_ns: int, *, may: bool) -> None:
    times_ns = np.arange(0, 3 * MIN_STEADY_NS, pause_ns)
    assert is_phase(times_ns, (0, int(times_ns[-1])), MIN_STEADY_NS) == may
    brief = times_ns[times_ns < MIN_STEADY_NS]
    assert is_phase(brief, (0, int(brief[-1])), MIN_STEADY_NS)


@pytest.mark.parametrize("part", [(0, 5), (2, 5)])
def test_an_earlier_program_may_be_missed_by_who_stops_early(part: tuple[int, int], tmp_path: Path) -> None:
    """Java 2.8: an admin client, then a producer, then a consumer; the second part has connections of the consumer
    alone, and these from their start."""
    some = cut(recording("java-2.8", "plain-2"), *part, tmp_path)
    comparison = compared(str(recording("java-2.8", "plain-1")), some)
    assert entry_texts(comparison) == []
    assert "nor " in comparison.not_compared[0]


def test_what_a_program_does_before_the_rest_is_not_missed(tmp_path: Path) -> None:
    """The capture stops early; a producer asks for an id, on a connection of its own, before it produces."""
    quiet = edited(bundled("compare-java-2"), tmp_path, without("InitProducerId"))
    found = entry_texts(compared(bundled("compare-java-1"), cut(Path(quiet), 0, 9, tmp_path)))
    assert ("InitProducerId", "", "only on one side") in [each[:3] for each in found]


def test_a_matrix_says_what_its_sides_lack(tmp_path: Path) -> None:
    paths = [
        bundled("compare-java-1"),
        bundled("compare-java-2"),
        cut(Path(bundled("compare-java-2")), 5, 10, tmp_path),
    ]
    matrix = build_matrix([side(path) for path in paths])
    [words] = matrix.not_compared
    assert words.startswith(f"{Path(paths[2]).stem} lacks the beginning of ")
    assert any(line.lstrip(" ·-").startswith("Not compared: ") for line in render_text(matrix_report(matrix)))
    assert matrix_to_json(matrix)["not_compared"] == [words]
    assert build_matrix([side(path) for path in paths[:2]]).not_compared == ()


def test_only_what_a_side_may_have_missed_may_be_equal() -> None:
    whole, part = Sight(begins_late=False, ends_early=False, is_open=False), Sight(True, False, is_open=False)
    assert may_be_equal({1, 2}, {1}, (whole, part))
    assert not may_be_equal({1, 2}, {1}, (part, whole))
    assert not may_be_equal({1}, {2}, (part, part))
    assert may_be_equal({1, 2}, {1, 3}, (part, part))
    assert not may_be_equal({1, 2}, {1, 3}, (whole, part))
