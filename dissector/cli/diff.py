"""`kdissect diff`: two sides compared, or several beside each other."""

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from contextlib import ExitStack
from pathlib import PurePath
from typing import Any, Final

from dissector.analysis.diff import DiffSide, ManualMatches, build_matrix, diff
from dissector.analysis.diff.rendering import render_html, render_markdown, render_text
from dissector.analysis.diff.report import ReportBlock, diff_report, matrix_report
from dissector.analysis.diff.to_json import diff_to_json, matrix_to_json
from dissector.capture_session import Capture
from dissector.cli.cluster import THIS_MACHINE, Cluster
from dissector.cli.errors import UsageError
from dissector.cli.exit_codes import NEGATIVE, print_error
from dissector.cli.filter_option import parse_filter
from dissector.cli.formats import DiffFormat
from dissector.cli.render.progress import read_with_progress
from dissector.cli.show import no_kafka_message
from dissector.cli.table_captures import open_sides, side_of_tables
from dissector.cli.tables import are_tables, is_folder
from dissector.core.garbage_collection import infrequent_collection
from dissector.core.json_text import dumps
from dissector.filter import Filter

RENDERERS: Final = {DiffFormat.TEXT: render_text, DiffFormat.MARKDOWN: render_markdown, DiffFormat.HTML: render_html}
AS_A_WHOLE: Final = "what each side does as a whole, beside each other: captures are compared field by field"
Screen = Callable[[DiffSide, DiffSide, ManualMatches], int]
"""Shows two sides; gives the exit code."""
_MATCH: Final = re.compile(r"A:C?(\d{1,9})=B:C?(\d{1,9})", re.ASCII)


def compare(
    files: Sequence[str],
    form: DiffFormat | Screen,
    chosen: tuple[str | None, str | None] = (None, None),
    matches: Sequence[str] = (),
    *,
    ports: Set[int] = frozenset(),
    on: Cluster = THIS_MACHINE,
) -> int:
    """Compare and print, or show on a screen; the exit code: 0 for the same, 1 for different, 2 where there is nothing
    to compare.

    `chosen` are filters for A and for B. One file alone is both sides."""
    found = [_MATCH.fullmatch(each) for each in matches]
    if wrong := next((each for each, fits in zip(matches, found, strict=True) if not fits), None):
        raise UsageError(f"--match {wrong}: write the connections as A:3=B:5")
    tables = [side_of_tables(each) for each in files]
    if any(tables) or any(map(is_folder, files)):
        return _tables(files, tables, form, on, is_chosen=any(chosen) or bool(matches) or bool(ports))
    are_tables(files, on)
    _check_usage(len(files), chosen, matches)
    filters = [parse_filter(text, option) for text, option in zip(chosen, ("--a", "--b"), strict=True)]
    with infrequent_collection(), ExitStack() as stack:
        captures = [stack.enter_context(Capture([file], ports=ports)) for file in files]
        sides = [_side(capture, each) for capture, each in zip((captures[0], captures[-1]), filters, strict=True)]
        connections = tuple((int(fits[1]), int(fits[2])) for fits in found if fits)
        if not isinstance(form, DiffFormat):
            return form(sides[0], sides[1], connections)
        for capture in captures:
            read_with_progress(capture)
            for problem in capture.problems:
                print_error(problem.message)
            if not len(capture):
                return print_error(no_kafka_message(capture))
        if len(captures) > 2:
            return _matrix([_side(capture, None) for capture in captures], form)
        comparison = diff(sides[0], sides[1], connections)
        for side in (comparison.a, comparison.b):
            if not side.exchanges:
                return print_error(f"{side.label}: no request of Kafka's in it")
        _write(form, diff_to_json(comparison), diff_report(comparison))
        return 0 if comparison.is_same else NEGATIVE


def _check_usage(files: int, chosen: tuple[str | None, str | None], matches: Sequence[str]) -> None:
    """Raise `UsageError` for options that do not go together."""
    if files == 1 and not all(chosen):
        raise UsageError("with one capture, --a and --b choose what to compare: --a 'conn == 1' --b 'conn == 2'")
    if files > 2 and (any(chosen) or matches):
        raise UsageError("--a, --b and --match need two sides, not a matrix")


def _tables(
    files: Sequence[str], tables: Sequence[tuple[str, str] | None], form: DiffFormat | Screen, on: Cluster, *,
    is_chosen: bool,
) -> int:  # fmt: skip
    """What sides of tables do, beside each other, however large they are."""
    asked = [each for each in tables if each is not None]
    if len(asked) < len(files) or len(files) < 2 or is_chosen:
        raise UsageError("with tables, name two or more sides as TABLES:NAME, a client id or a capture, and no options")
    print(AS_A_WHOLE, file=sys.stderr)
    with infrequent_collection(), open_sides(asked, on) as found, ExitStack() as stack:
        captures = [stack.enter_context(Capture([each.path], ports=each.ports, topics=each.topics)) for each in found]
        for capture in captures:
            read_with_progress(capture)
        named = [DiffSide(capture, name) for capture, (_, name) in zip(captures, asked, strict=True)]
        return _matrix(named, form if isinstance(form, DiffFormat) else DiffFormat.TEXT)


def _matrix(columns: Sequence[DiffSide], form: DiffFormat) -> int:
    beside = build_matrix(columns)
    _write(form, matrix_to_json(beside), matrix_report(beside))
    return 0 if beside.is_same else NEGATIVE


def _side(capture: Capture, chosen: Filter | None) -> DiffSide:
    name = PurePath(capture.names[0]).stem
    return DiffSide(capture, f"{name}, {chosen.text}" if chosen else name, chosen)


def _write(form: DiffFormat, value: dict[str, Any], blocks: Iterable[ReportBlock]) -> None:
    if form is DiffFormat.JSON:
        sys.stdout.buffer.write(dumps(value) + b"\n")
        return
    lines: Iterator[str] = RENDERERS[form](blocks)
    for line in lines:
        print(line)
