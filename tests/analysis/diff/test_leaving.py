"""Whether clients commit as they leave: one that commits by itself does."""

from collections.abc import Callable
from pathlib import Path

import pytest

from dissector.analysis.diff import DiffReason
from dissector.analysis.diff.behavior import ON_LEAVING, side_behavior
from dissector.analysis.diff.side_profile import SideProfile
from tests.analysis.diff.editing import Lines, bundled, compared, edited, of, side
from tests.cases import cases

JAVA = bundled("compare-java-1")
MS = 1_000_000


def last_commit(before_leaving_ms: int | None, *, has_read: bool = True) -> Callable[[Lines], Lines]:
    """Have the last commit answered so long before the request to leave, or not sent; or nothing read or committed."""

    def change(lines: Lines) -> Lines:
        commit, [leave] = of(lines, "OffsetCommit")[-1], of(lines, "LeaveGroup")
        if before_leaving_ms is not None:
            shift_ns = leave["request"]["time_ns"] - before_leaving_ms * MS - commit["response"]["time_ns"]
            for part in ("request", "response"):
                commit[part]["time_ns"] += shift_ns
        gone = [commit] if before_leaving_ms is None else []
        gone += [] if has_read else [*of(lines, "OffsetCommit"), *of(lines, "Fetch")[:-2]]
        return sorted((each for each in lines if each not in gone), key=lambda each: each["request"]["time_ns"])

    return change


@cases(
    ("before_leaving_ms", "has_read", "differs"),
    [
        (None, True, True),  # Java commits what it has committed already
        (2_000, True, True),
        # near misses: a while before, at once, and with nothing to commit
        (400, True, False),
        (50, True, False),
        (None, False, False),
    ],
)
def test_a_client_that_commits_by_itself_does_as_it_leaves(
    before_leaving_ms: int | None, has_read: bool, differs: bool, tmp_path: Path
) -> None:
    path = edited(JAVA, tmp_path, last_commit(before_leaving_ms, has_read=has_read))
    for sides, only in (((JAVA, path), ("1", "0")), ((path, JAVA), ("0", "1"))):
        found = [each for each in compared(*sides).entries if each.path == "on_leaving"]
        expected = [("on_leaving", DiffReason.ONE_SIDE, *only, (("Java", "enable.auto.commit"),))] if differs else []
        assert [(each.path, each.reason, each.a, each.b, each.settings) for each in found] == expected


@pytest.mark.parametrize(("before_leaving_ms", "commits"), [(5, "yes"), (None, "-")])
def test_baselines_say_whether_it_does(before_leaving_ms: int | None, commits: str, tmp_path: Path) -> None:
    path = edited(JAVA, tmp_path, last_commit(before_leaving_ms))
    assert side_behavior(SideProfile(side(path), {}, {}))[ON_LEAVING] == commits
