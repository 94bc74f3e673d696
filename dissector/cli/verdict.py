"""What `kdissect live` and `proxy` judge at their end: `--check`, `--baseline FILE`, `--fail-on FILTER`.

Each is a part of one report, with the words, the outcomes and the exit codes of `check` and `diff --baseline`: as text
for whoever watches, and in files for CI servers.

Invariants:
  * options are judged before anything is captured: a mistake in them costs nobody a run of tests;
  * a capture without a Kafka request is no success (exit code 2): nothing was tested.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Final, NamedTuple, TextIO

import numpy as np

from dissector.analysis.baseline import Baseline, choices, hold
from dissector.analysis.conformance import RULES, a_rule, check
from dissector.analysis.conformance.report import check_report
from dissector.analysis.diff import DiffSide
from dissector.analysis.diff.side_profile import SideProfile
from dissector.analysis.outcomes import RuleOutcome, RuleStatus, junit_suites, sarif
from dissector.analysis.rendering import HeadingBlock, ListBlock, ReportBlock, render_markdown, render_text
from dissector.capture.live.report_files import ReportFiles
from dissector.capture_session import Capture
from dissector.cli import check as checking
from dissector.cli.baseline import read_known
from dissector.cli.errors import NEGATIVE, UsageError, print_error
from dissector.cli.options import CaptureOptions, VerdictOptions, parse_filter
from dissector.cli.render.outcomes import outcome_blocks
from dissector.cli.wrong_listeners import print_wrong_listeners
from dissector.core.files import write_reason
from dissector.core.json_text import dumps
from dissector.core.text import clean, counted
from dissector.core.written_files import check_output
from dissector.exchange.model import ExchangeRow
from dissector.filter import Filter

FAIL_ON: Final = "fail-on"
"""The rule that `--fail-on` is, in reports."""
FAIL_ON_TITLE: Final = "kdissect --fail-on"
_ABOUT_REPORTS: Final = ("ignore", "junit", "sarif", "summary")
SHOWN: Final = 10
"""Exchanges that a report shows of those that match `--fail-on`; all are counted."""
_ROWS_TOGETHER: Final = 1 << 16


class _ReportPart(NamedTuple):
    """A part of the report."""

    title: str
    outcomes: Sequence[RuleOutcome]
    blocks: Sequence[ReportBlock]


@dataclass(frozen=True)
class CaptureVerdict:
    """What is judged, and where reports go."""

    checks: bool
    baseline: Baseline | None
    lines: dict[str, int]
    """Where each line of the baseline stands in its file."""
    fail_on: Filter | None
    ignored: str
    asked: VerdictOptions
    reports: ReportFiles = field(default_factory=ReportFiles)

    @classmethod
    def of(cls, asked: VerdictOptions, options: CaptureOptions) -> "CaptureVerdict | None":
        """Return what options ask for; None if it is nothing. Raises `UsageError`, `CaptureError`."""
        if not (asked.check or asked.baseline is not None or asked.fail_on is not None):
            if named := next((f"--{name}" for name in _ABOUT_REPORTS if getattr(asked, name)), None):
                raise UsageError(f"{named} needs --check, --baseline or --fail-on")
            return None
        if asked.ignore and not asked.check and asked.baseline is None:
            raise UsageError("--ignore needs --check or --baseline: it names their rules")
        _check_fail_on(asked)
        for name in _files(asked):
            _check_writing(check_output, name)
        baseline, lines = read_known(asked.baseline) if asked.baseline is not None else (None, {})
        _check_ignored(asked)
        fail_on = parse_filter(asked.fail_on, "--fail-on", options)
        return cls(asked.check, baseline, lines, fail_on, asked.ignore or "", asked)

    def keep_writable(self) -> None:
        """Open the files of reports that can't be written once this process has given up its rights. Raises
        `UsageError`."""
        for name in _files(self.asked):
            _check_writing(self.reports.keep_writable, name)

    def judge(self, capture: Capture, name: str, out: TextIO) -> int:
        """Judge a capture that is read, and report: as text to `out`, and to the files that were asked for. Return the
        exit code: 0 if nothing is wrong, 1 if something is, 2 if there is nothing to judge or a file can't be
        written."""
        print_wrong_listeners(capture)
        parts = [*self._parts(capture, name)]
        if not parts:
            return print_error(f"{name}: contains no Kafka request, so nothing was checked")
        for each in parts:
            for line in render_text(each.blocks):
                print(line, file=out)
        broken = any(outcome.status is RuleStatus.BROKEN for part in parts for outcome in part.outcomes)
        return self._write(parts) or (NEGATIVE if broken else 0)

    def _parts(self, capture: Capture, name: str) -> Iterator[_ReportPart]:
        for _ in capture.findings.examine():
            pass
        profile = SideProfile(DiffSide(capture, name, None), {}, {})
        if not profile.exchanges:
            return
        if self.checks:
            result = check([(name, capture)], [each for each in RULES if each.code not in _words(self.ignored)])
            yield _ReportPart(checking.TITLE, [*checking.outcomes(result)], [*check_report(result)])
        if self.baseline is not None:
            file = self.asked.baseline or ""
            ignored, _ = choices(_words(self.ignored))
            outcomes = hold(profile, self.baseline, self.lines, file=file, fail_on=frozenset(), ignored=ignored)
            title = f"{PurePath(name).stem} compared with {PurePath(file).name}"
            yield _ReportPart(title, outcomes, [*outcome_blocks(title, outcomes)])
        if self.fail_on is not None:
            yield _failing(capture, name, self.fail_on)

    def _write(self, parts: Sequence[_ReportPart]) -> int:
        """Write the files that were asked for; return the exit code."""
        asked = self.asked
        outcomes = [each for part in parts for each in part.outcomes]
        code = 0
        if asked.junit:
            code |= self._written(asked.junit, junit_suites([(each.title, each.outcomes) for each in parts]) + b"\n")
        if asked.sarif:
            code |= self._written(asked.sarif, dumps(sarif(outcomes)) + b"\n")
        if asked.summary:
            text = "\n".join(line for part in parts for line in render_markdown(part.blocks))
            code |= self._written(asked.summary, f"{text}\n".encode(), appends=True)
        return code

    def _written(self, name: str, content: bytes, *, appends: bool = False) -> int:
        """Write a file; return the exit code."""
        try:
            self.reports.write(name, content, appends=appends)
        except OSError as error:
            return print_error(f"can't write {name}: {write_reason(name, error)}")
        return 0


def _files(asked: VerdictOptions) -> Iterator[str]:
    return filter(None, (asked.junit, asked.sarif, asked.summary))


def _check_writing(check: Callable[[str], object], name: str) -> None:
    """Raise `UsageError` for a file for which a check raises `OSError`."""
    try:
        check(name)
    except OSError as error:
        raise UsageError(f"can't write {name}: {write_reason(name, error)}") from None


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def _check_fail_on(asked: VerdictOptions) -> None:
    """Raise `UsageError` where `--fail-on` has what that of `diff` takes: names of a baseline's lines."""
    words = _words(asked.fail_on or "")
    if asked.baseline is not None and words and not choices(words)[1]:
        raise UsageError(
            f"--fail-on {asked.fail_on}: a filter of exchanges is expected here. To count only some lines of the "
            f"baseline, --ignore the others, or keep a capture with -w FILE for kdissect diff FILE --baseline "
            f"{asked.baseline} --fail-on {asked.fail_on}"
        )


def _check_ignored(asked: VerdictOptions) -> None:
    """Raise `UsageError` for a word of `--ignore` that is neither a rule nor a line of a baseline, if they are asked
    for."""
    rules = {each.code for each in RULES} if asked.check else set()
    for word in _words(asked.ignore or ""):
        if word not in rules and (asked.baseline is None or choices([word])[1]):
            kinds = [words for words, holds in (
                (a_rule(word), asked.check),
                ("a line of a baseline", asked.baseline is not None),
            ) if holds]  # fmt: skip
            raise UsageError(f"--ignore: {word!r} is not {' or '.join(kinds)}")


def _failing(capture: Capture, name: str, fail_on: Filter) -> _ReportPart:
    """Return what matches the filter that nothing may match."""
    starts = range(0, len(capture), _ROWS_TOGETHER)
    batches = (np.arange(start, min(start + _ROWS_TOGETHER, len(capture))) for start in starts)
    found = np.concatenate([capture.matching(fail_on, rows) for rows in batches])
    verb = "matches" if len(found) == 1 else "match"
    words = f"{len(found):,} of {counted(len(capture), 'row')} {verb} {fail_on.text}"
    shown = [*capture.at(found[:SHOWN])]
    items = [ListBlock(clean(_line(each.row))) for each in shown]
    if len(found) > SHOWN:
        items.append(ListBlock(f"and {len(found) - SHOWN:,} more"))
    status = RuleStatus.BROKEN if shown else RuleStatus.HELD
    message = f"{words}: {_line(shown[0].row)}" if shown else words
    first = shown[0].row.number if shown else None
    required = f"no exchange matches {fail_on.text}"
    outcome = RuleOutcome(FAIL_ON, status, message, name, None, first, title=required)
    return _ReportPart(FAIL_ON_TITLE, [outcome], [HeadingBlock(1, clean(f"--fail-on: {words}")), *items])


def _line(row: ExchangeRow) -> str:
    version = "" if row.version is None else f" v{row.version}"
    client = f", client {row.client_id}" if row.client_id else ""
    return f"exchange {row.number:,}: {row.api}{version}{client}" + (f": {row.info}" if row.info.strip() else "")
