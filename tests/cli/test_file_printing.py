"""Rows come as soon as what is shown of them is known, and they are those that come when all is known first."""

import io
from collections.abc import Iterator
from functools import cache, lru_cache
from pathlib import Path

import pytest

from dissector.capture_session import Capture, Progress
from dissector.cli import file_printing
from dissector.cli.file_printing import FilePrinter
from dissector.cli.formats import Format
from dissector.cli.render.printing import RowRenderer
from dissector.filter import parse
from tests.conftest import PCAPS, some_of
from tests.findings.test_examination import RECORDED, VARIED

FORMS = [(Format.TEXT, None), (Format.CSV, None), (Format.TEXT, "number,findings"), (Format.JSON, None),
         (Format.TEXT, "number")]  # fmt: skip
QUICK = [path for path in RECORDED if path.stem in ("trouble-throttled", "trouble-rebalance-loop")]
QUESTIONS = [(None, None), ("severity >= warning || error", None), ("!response", None), ("finding", 3)]
"""A filter, and how many rows."""
ASKED = ((0, 1), (0, 3), (2, 2), (3, 1), (1, 0))
"""Which question of which form `make test` asks: each of both, but the form of one field."""
SEGMENT = min((PCAPS / "segments").rglob("*.log"))


class Stdout:
    """Keeps what is written."""

    def __init__(self) -> None:
        self.buffer = io.BytesIO()

    def flush(self) -> None:
        pass


@lru_cache(maxsize=2)
def examined(*paths: Path) -> Capture:
    """Return a capture that is read and examined to its end. It stays open for the next test."""
    capture = Capture([str(path) for path in paths])
    for _ in capture.read():
        pass
    for _ in capture.findings.examine():
        pass
    return capture


@cache
def rows_examined_first(form: tuple[Format, str | None], *paths: Path) -> list[bytes]:
    """What is printed of each row when all is known, row by row."""
    printing, capture = RowRenderer.of(*form), examined(*paths)
    return [b"".join(printing.lines(capture, range(n, n + 1))) for n in range(len(capture))]


def examined_first(paths: list[Path], form: tuple[Format, str | None], text: str | None, limit: int | None) -> bytes:
    printing, wanted = RowRenderer.of(*form), None if text is None else parse(text)
    exchanges = examined(*paths).exchanges()
    rows = [n for n, each in enumerate(exchanges) if wanted is None or wanted.matches(each)][:limit]
    lines = [rows_examined_first(form, *paths)[n] for n in rows]
    return (printing.head if lines or form[0] is Format.CSV else b"") + b"".join(lines)


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize(
    ("form", "text", "limit"),
    [
        pytest.param(
            form,
            *question,
            marks=() if (FORMS.index(form), QUESTIONS.index(question)) in ASKED else pytest.mark.exhaustive,
        )
        for form in FORMS
        for question in QUESTIONS
    ],
)
def test_the_output_is_as_if_all_was_examined_first(
    form: tuple[Format, str | None], text: str | None, limit: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dissector.findings.framework.examination.STEP", 7)
    monkeypatch.setattr(file_printing, "EARLY", 30)
    for paths in ([QUICK[0]], [SEGMENT, QUICK[1]]):
        out = Stdout()
        monkeypatch.setattr("sys.stdout", out)
        with Capture([str(path) for path in paths]) as capture:
            for _ in capture.read():
                pass
            wanted = None if text is None else parse(text)
            printed = FilePrinter(capture, RowRenderer.of(*form), wanted).print(limit)
        expected = examined_first(paths, form, text, limit)
        assert out.buffer.getvalue() == expected
        assert printed == (expected.count(b"\n") > (1 if form[0] is Format.CSV else 0))


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("path", some_of(RECORDED, *VARIED), ids=lambda path: path.stem)
def test_every_finding_is_known_at_its_row(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dissector.findings.framework.examination.STEP", 1)
    out = Stdout()
    monkeypatch.setattr("sys.stdout", out)
    with Capture([str(path)]) as capture:
        for _ in capture.read():
            pass
        FilePrinter(capture, RowRenderer.of(Format.CSV, None), parse("number > 0")).print(len(capture))
    assert out.buffer.getvalue() == examined_first([path], (Format.CSV, None), None, None)


@pytest.mark.long
def test_the_first_rows_are_printed_before_the_last_are_examined(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dissector.cli.file_printing.FIRST_STEP", 10)
    monkeypatch.setattr("dissector.cli.file_printing.ROWS_PER_STEP", 10)
    out = Stdout()
    monkeypatch.setattr("sys.stdout", out)
    with Capture([str(PCAPS / "librdkafka-pipelined.pcapng")]) as capture:
        for _ in capture.read():
            pass
        whole = capture.findings.examine
        sizes: list[int] = []

        def examine(*, step: int) -> Iterator[Progress]:
            for examined in whole(step=step):
                sizes.append(len(out.buffer.getvalue()))
                yield examined

        monkeypatch.setattr(capture.findings, "examine", examine)
        FilePrinter(capture, RowRenderer.of(Format.TEXT, None), parse("api == Produce")).print(None)
        assert len(sizes) > 5
        assert sizes[1] < sizes[len(sizes) // 2] < len(out.buffer.getvalue())


def test_a_limit_ends_the_examination_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dissector.cli.file_printing.FIRST_STEP", 10)
    monkeypatch.setattr("dissector.cli.file_printing.ROWS_PER_STEP", 10)
    monkeypatch.setattr("sys.stdout", out := Stdout())
    with Capture([str(PCAPS / "librdkafka-pipelined.pcapng")]) as capture:
        for _ in capture.read():
            pass
        FilePrinter(capture, RowRenderer.of(Format.TEXT, None), parse("api == Produce")).print(1)
        assert out.buffer.getvalue().count(b"\n") == 2
        assert next(capture.findings.examine(step=10)).done < len(capture)


@pytest.mark.parametrize("form", [Format.TEXT, Format.JSON])
def test_a_filter_that_no_row_matches_examines_nothing(form: Format, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout", out := Stdout())
    with Capture([str(PCAPS / "librdkafka-pipelined.pcapng")]) as capture:
        for _ in capture.read():
            pass
        monkeypatch.setattr(capture.findings, "examine", lambda **_: pytest.fail("rows are examined"))
        wanted = parse("request.max_wait_ms == 77777")
        assert not FilePrinter(capture, RowRenderer.of(form, None), wanted).print(None)
    assert out.buffer.getvalue() == b""
