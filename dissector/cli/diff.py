"""`kdissect diff`: compare two sides, or more of them in a matrix."""

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from dissector.analysis.diff import DiffResult, DiffSide, ManualMatches, build_matrix, compared, diff, profiled
from dissector.analysis.diff.report import diff_report, matrix_report
from dissector.analysis.diff.to_json import diff_to_json, matrix_to_json
from dissector.analysis.rendering import ReportBlock, render_html, render_markdown, render_text
from dissector.capture_session import Capture
from dissector.cli import side_process
from dissector.cli.errors import BAD_INPUT, NEGATIVE, UsageError, print_error
from dissector.cli.formats import DiffFormat
from dissector.cli.options import CaptureOptions, parse_filter
from dissector.cli.render.progress import read_with_progress
from dissector.cli.show import read_rows
from dissector.cli.side_process import SideProcess
from dissector.cli.table_captures import open_sides, side_of_tables
from dissector.cli.tables import are_tables, is_folder
from dissector.cli.workers import WorkerError
from dissector.core.json_text import dumps
from dissector.core.process_memory import infrequent_collection
from dissector.exchange.client_families import FAMILIES, family

if TYPE_CHECKING:  # without a filter its parser is not needed
    from dissector.filter import Filter

RENDERERS: Final = {DiffFormat.TEXT: render_text, DiffFormat.MARKDOWN: render_markdown, DiffFormat.HTML: render_html}
CLIENT_OPTIONS: Final = ("--client-a", "--client-b")
MATRIX_ONLY: Final = "a matrix of what each side does: only captures are compared field by field"
_MATCH: Final = re.compile(r"A:C?(\d{1,9})=B:C?(\d{1,9})", re.ASCII)


class Screens(NamedTuple):
    """Show two sides, or any number of them, and return the exit code."""

    pair: Callable[[DiffSide, DiffSide, ManualMatches], int]
    matrix: Callable[[Sequence[DiffSide]], int]


def compare(
    files: Sequence[str],
    form: DiffFormat | Screens,
    filters: tuple[str | None, str | None],
    matches: Sequence[str],
    clients: tuple[str | None, str | None],
    *,
    options: CaptureOptions,
) -> int:
    """Compare and print, or show on the screen; return the exit code: 0 for the same, 1 for different, 2 if there is
    nothing to compare.

    `filters` are those of A and of B, and so are `clients`, the families of clients. A single file is both sides."""
    families = [_parse_client(text, option) for text, option in zip(clients, CLIENT_OPTIONS, strict=True)]
    connections = tuple(map(_parse_match, matches))
    tables = [side_of_tables(each) for each in files]
    if any(tables) or any(map(is_folder, files)):
        has_options = any(filters) or any(clients) or bool(matches) or options.is_set
        return _compare_tables(files, tables, form, has_options=has_options)
    are_tables(files)
    _check_usage(len(files), filters, clients, matches)
    row_filters = [parse_filter(text, option, options) for text, option in zip(filters, ("--a", "--b"), strict=True)]
    with infrequent_collection(), ExitStack() as stack:
        captures = [stack.enter_context(options.open([file])) for file in files]
        both = zip((captures[0], captures[-1]), row_filters, families, strict=True)
        sides = [_side(capture, row_filter, client) for capture, row_filter, client in both]
        if not isinstance(form, DiffFormat):
            if len(captures) > 2:
                return form.matrix([_side(capture, None) for capture in captures])
            return form.pair(sides[0], sides[1], connections)
        if len(captures) == 2 and form is not DiffFormat.HTML and side_process.pays(*captures):
            profiling = [partial(profiled, side, n, connections) for n, side in enumerate(sides)]
            try:
                with SideProcess(sides[1], profiling[1]) as other:
                    if not read_rows(captures[0]) or not other.read_rows():
                        return BAD_INPUT
                    return _report(form, compared(profiling[0](), other.profile()))
            except WorkerError as error:
                return print_error(str(error))
        for capture in captures:
            if not read_rows(capture):
                return BAD_INPUT
        if len(captures) > 2:
            return _matrix([_side(capture, None) for capture in captures], form)
        return _report(form, diff(sides[0], sides[1], connections))


def _report(form: DiffFormat, comparison: DiffResult) -> int:
    """Print a comparison; return the exit code."""
    for side in (comparison.a, comparison.b):
        if not side.exchanges:
            return print_error(f"{side.label}: contains no Kafka request")
    as_json = partial(diff_to_json, comparison)
    write_report(form, as_json, diff_report(comparison, with_bytes=form is DiffFormat.HTML))
    return 0 if comparison.is_same else NEGATIVE


def _parse_client(text: str | None, option: str) -> str:
    """Return the family of a client. Raises `UsageError`."""
    found = "" if text is None else family(text)
    if found is None:
        raise UsageError(f"{option} {text}: known are {', '.join(dict.fromkeys(name for _, name in FAMILIES))}")
    return found


def _parse_match(text: str) -> tuple[int, int]:
    """Return the connections of ``A:3=B:5``. Raises `UsageError`."""
    found = _MATCH.fullmatch(text)
    if not found:
        raise UsageError(f"--match {text}: write the connections as A:3=B:5")
    return int(found[1]), int(found[2])


def _check_usage(
    files: int, filters: tuple[str | None, str | None], clients: tuple[str | None, str | None], matches: Sequence[str]
) -> None:
    """Raise `UsageError` for an invalid combination of options."""
    if files == 1 and not all(filters):
        raise UsageError("with one capture, choose what to compare with --a and --b: --a 'conn == 1' --b 'conn == 2'")
    if files > 2 and (any(filters) or any(clients) or matches):
        raise UsageError("--a, --b, --client-a, --client-b and --match need two sides, not a matrix")


def _compare_tables(
    files: Sequence[str], tables: Sequence[tuple[str, str] | None], form: DiffFormat | Screens, *,
    has_options: bool,
) -> int:  # fmt: skip
    """Print the matrix of sides in tables, however large they are."""
    sides = [each for each in tables if each is not None]
    if len(sides) < len(files) or len(files) < 2 or has_options:
        raise UsageError(
            "with tables, name two or more sides as TABLES:NAME, where NAME is a client id or a capture, "
            "without options"
        )
    print(MATRIX_ONLY, file=sys.stderr)
    with infrequent_collection(), open_sides(sides) as found, ExitStack() as stack:
        captures = [stack.enter_context(Capture([each.path], ports=each.ports, topics=each.topics)) for each in found]
        for capture in captures:
            read_with_progress(capture)
        named = [DiffSide(capture, name) for capture, (_, name) in zip(captures, sides, strict=True)]
        return _matrix(named, form if isinstance(form, DiffFormat) else DiffFormat.TEXT)


def _matrix(columns: Sequence[DiffSide], form: DiffFormat) -> int:
    matrix = build_matrix(columns)
    write_report(form, partial(matrix_to_json, matrix), matrix_report(matrix))
    return 0 if matrix.is_same else NEGATIVE


def _side(capture: Capture, row_filter: "Filter | None", client: str = "") -> DiffSide:
    name = PurePath(capture.names[0]).stem
    return DiffSide(capture, f"{name}, {row_filter.text}" if row_filter else name, row_filter, client)


def write_report(form: DiffFormat, as_json: Callable[[], dict[str, Any]], blocks: Iterable[ReportBlock]) -> None:
    """Print a comparison."""
    if form is DiffFormat.JSON:
        sys.stdout.buffer.write(dumps(as_json()) + b"\n")
        return
    lines: Iterator[str] = RENDERERS[form](blocks)
    for line in lines:
        print(line)
