"""`kdissect diff --save-baseline` and `--baseline`: one capture, and a text of what its client does."""

import sys
from collections.abc import Sequence
from pathlib import Path, PurePath
from typing import NamedTuple

from dissector.analysis.baseline import (
    Baseline,
    BaselineError,
    choices,
    count_checks,
    hold,
    no_line,
    observe,
    read_baseline,
    write_baseline,
)
from dissector.analysis.diff import DiffSide
from dissector.analysis.diff.side_profile import SideProfile
from dissector.analysis.outcomes import RuleStatus
from dissector.cli.errors import BAD_INPUT, NEGATIVE, UsageError, print_error
from dissector.cli.formats import RuleFormat
from dissector.cli.options import CaptureOptions, parse_filter
from dissector.cli.render.outcomes import write_outcomes
from dissector.cli.saved_files import STDOUT, save
from dissector.cli.show import read_rows
from dissector.core.process_memory import infrequent_collection
from dissector.core.text import clean, counted, os_reason
from dissector.core.written_files import ANYBODY


class BaselineOptions(NamedTuple):
    """The options of `kdissect diff` that are about a baseline."""

    save: str | None
    baseline: str | None
    fail_on: str | None
    ignore: str | None


def baseline(
    files: Sequence[str], asked: BaselineOptions, form: RuleFormat, row_filter: str | None, others: Sequence[str], *,
    options: CaptureOptions,
) -> int:  # fmt: skip
    """Write a baseline, or hold a capture to one; return the exit code: 0 if it holds, 1 if not, 2 if there is nothing
    to hold."""
    _check_usage(files, asked, others)
    fail_on, ignored = _choices(asked.fail_on, "--fail-on"), _choices(asked.ignore, "--ignore")
    rows = parse_filter(row_filter, "--a", options)
    known = None if asked.baseline is None else read_known(asked.baseline)
    with infrequent_collection(), options.open([files[0]]) as capture:
        if not read_rows(capture):
            return BAD_INPUT
        name = PurePath(capture.names[0]).stem
        profile = SideProfile(DiffSide(capture, name, rows), {}, {})
        if not profile.exchanges:
            return print_error(f"{name}: contains no Kafka request")
        if known is None:
            return _save(profile, asked.save or "")
        held_to, lines = known
        outcomes = hold(profile, held_to, lines, file=asked.baseline or "", fail_on=fail_on, ignored=ignored)
        write_outcomes(form, f"{name} compared with {PurePath(asked.baseline or '').name}", outcomes)
        return NEGATIVE if any(each.status is RuleStatus.BROKEN for each in outcomes) else 0


def read_known(path: str) -> tuple[Baseline, dict[str, int]]:
    """Read a baseline, and where each of its lines stands. Raises `UsageError`."""
    try:
        return read_baseline(Path(path).read_text("utf-8"))
    except OSError as error:
        raise UsageError(f"can't read {path}: {os_reason(error)}") from None
    except BaselineError as error:
        raise UsageError(f"{path} is not a baseline: {error}") from None
    except UnicodeDecodeError:
        raise UsageError(f"{path} is not a baseline: it is not text") from None


def _check_usage(files: Sequence[str], asked: BaselineOptions, others: Sequence[str]) -> None:
    """Raise `UsageError` for an invalid combination of options."""
    if asked.baseline is None and (asked.fail_on is not None or asked.ignore is not None):
        raise UsageError("--fail-on and --ignore need --baseline")
    if len(files) != 1:
        raise UsageError(f"a baseline describes one capture, not {len(files)}")
    if others:
        raise UsageError(f"{others[0]} needs two sides; with a baseline, use --a to choose the rows")
    if asked.save is not None and asked.baseline is not None:
        raise UsageError("use --save-baseline or --baseline, not both")


def _choices(text: str | None, option: str) -> frozenset[str]:
    """Return the rules that an option names. Raises `UsageError`."""
    words = [word.strip() for word in (text or "").split(",") if word.strip()]
    found, unknown = choices(words)
    if unknown:
        raise UsageError(f"{option}: {no_line(unknown[0])}")
    return found


def _save(profile: SideProfile, path: str) -> int:
    observed, _ = observe(profile)
    text = write_baseline(observed)
    if path == STDOUT:
        print(text, end="")
        return 0
    save([text.encode()], path, ANYBODY)
    words = f"Wrote {path}: {counted(count_checks(observed), 'check')} for {observed.software}"
    print(clean(words), file=sys.stderr)
    return 0
