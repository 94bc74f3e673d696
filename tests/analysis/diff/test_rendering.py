"""Reports in every format: 80 columns, and no text of the wire acts on a terminal, a page or a table."""

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from dissector.analysis.diff import build_matrix
from dissector.analysis.diff.report import diff_report, matrix_report
from dissector.analysis.rendering import ReportBlock, render_html, render_markdown, render_text
from dissector.core.text import HOSTILE
from tests.analysis.diff.editing import Lines, bundled, edited, of, side
from tests.analysis.diff.editing import compared as comparison_of

HOSTILE_WORDS = "\x1b[31m<script>alert(1)</script>\u202e|`*_[x](y)\x9b"


def hostile(folder: Path) -> str:
    """Write a capture of a client with hostile names for itself and its group."""

    def spoil(lines: Lines) -> None:
        for line in of(lines, "ApiVersions"):
            line["request"]["body"]["client_software_name"] = HOSTILE_WORDS
        for line in of(lines, "JoinGroup"):
            line["request"]["body"]["group_id"] = HOSTILE_WORDS
            line["request"]["body"]["reason"] = HOSTILE_WORDS

    return edited(bundled("compare-java-1"), folder, spoil)


def report(one: str, other: str) -> list[ReportBlock]:
    return list(diff_report(comparison_of(one, other)))


def test_text_has_80_columns_and_no_control_characters() -> None:
    lines = list(render_text(report(bundled("compare-java-1"), bundled("compare-librdkafka-1"))))
    assert max(map(len, lines)) <= 80
    assert re.fullmatch(r"\d+ differences", lines[0])
    assert "  Fetch version: v18 vs v16 (16 times) [version]" in lines
    assert all(line.isprintable() for line in lines)


@pytest.mark.long
def test_a_long_report_begins_with_a_line_for_each_area() -> None:
    lines = list(render_text(report(bundled("franz-go"), bundled("sarama-2.3.0"))))
    brief = lines[lines.index("In brief") + 1 :]
    brief = brief[: brief.index("")]
    areas = [line.strip().partition(":")[0] for line in brief]
    assert areas == ["Producing", "Consuming", "Groups", "Connecting", "Administration", "Versions"]
    assert [line for line in lines if line in areas] == areas  # the sections follow in this order
    assert "idempotence only in A" in brief[0]


def test_a_summary_counts_the_entries_that_it_leaves_out() -> None:
    lines = list(render_text(report(bundled("compare-java-1"), bundled("compare-aiokafka-1"))))
    brief = next(line for line in lines if line.startswith("  Groups: "))
    groups = lines[lines.index("Groups") + 1 :]
    entries = sum(re.match(r"  \S", line) is not None for line in groups[: groups.index("")])
    left = re.search(r"and (\d+) more", brief)
    assert left is not None
    assert int(left[1]) + brief.count("; ") == entries


def test_a_short_report_has_no_summary(tmp_path: Path) -> None:
    def wait_less(lines: Lines) -> None:
        of(lines, "Fetch")[0]["request"]["body"]["max_wait_ms"] = 1

    java = bundled("compare-java-1")
    assert "In brief" not in list(render_text(report(java, edited(java, tmp_path, wait_less))))


def test_equal_sides_have_a_report_that_lists_what_is_ignored() -> None:
    lines = list(render_text(report(bundled("compare-java-1"), bundled("compare-java-2"))))
    assert lines[0] == "No differences"
    assert "Ignored" in lines


@pytest.mark.long
@pytest.mark.parametrize("form", [render_text, render_markdown, render_html])
def test_no_format_lets_hostile_characters_through(form: object, tmp_path: Path) -> None:
    blocks = report(hostile(tmp_path), bundled("compare-java-2"))
    out = "\n".join(form(blocks))
    assert "alert" in out
    assert not HOSTILE.search(out.replace("\n", ""))


class Tags(HTMLParser):
    """The elements of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.seen.append(tag)
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.mark.long
def test_a_page_is_well_formed_and_self_contained_with_no_element_of_the_wire(tmp_path: Path) -> None:
    path = hostile(tmp_path)
    for blocks in (report(path, bundled("compare-java-2")), matrix_report(build_matrix([side(path)] * 3))):
        page, tags = "\n".join(render_html(blocks)), Tags()
        tags.feed(page)
        assert tags.open == []
        assert "script" not in tags.seen
        assert "http" not in page


@pytest.mark.long
def test_markdown_has_no_markup_of_the_wire(tmp_path: Path) -> None:
    lines = "\n".join(render_markdown(matrix_report(build_matrix([side(hostile(tmp_path))] * 3)))).splitlines()
    rows = [line for line in lines if line.startswith("|")]
    assert len({len(re.findall(r"(?<!\\)\|", row)) for row in rows}) == 1
    assert not re.search(r"(?<!\\)[`*<\[]", "".join(rows).replace("|---", ""))
