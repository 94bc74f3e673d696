"""Rules for faults of `kdissect proxy`: from options, and what became of them, at the end."""

import sys
from collections.abc import Callable, Sequence
from typing import Final

from dissector.capture.fault_counts import FaultCount
from dissector.capture.live import Recording
from dissector.cli.errors import UsageError
from dissector.core.text import clean, counted, shortened
from dissector.proxy_server.faults import FaultError, FaultFileError, read_file, read_rule

NEVER_FIRED: Final = 1
"""The exit code with --strict if a rule never fired."""


def fault_rules(rules: Sequence[str], path: str, *, strict: bool) -> tuple[tuple[str, str], ...]:
    """Return the names and texts of the rules of options, those of the command line first. Raises `UsageError`."""
    if strict and not (rules or path):
        raise UsageError("--strict needs --fault or --faults: it checks that all rules fired")
    found = []
    for rule in rules:
        try:
            found.append(("", str(read_rule(rule))))
        except FaultError as error:
            raise UsageError(f"--fault {clean(shortened(rule))}: {error}") from None
    try:
        found += [(each.name, str(each)) for each in (read_file(path) if path else ())]
    except FaultFileError as error:
        raise UsageError(f"--faults {error}") from None
    return tuple(found)


def report_faults(*, strict: bool) -> Callable[[Sequence[Recording]], int]:
    """Return what lists, on stderr, what became of the rules of all runs, and returns the exit code."""

    def report(recordings: Sequence[Recording]) -> int:
        totals = total([each.faults for each in recordings if each.faults])
        for each in totals:
            print(line(each), file=sys.stderr)
        return NEVER_FIRED if strict and any(not each.fired for each in totals) else 0

    return report


def total(runs: Sequence[Sequence[FaultCount]]) -> list[FaultCount]:
    """Return the counts of each rule over several runs. All have the rules of the options; others were added to one."""
    found: dict[tuple[str, str], FaultCount] = {}
    for each in (count for run in runs for count in run):
        before = found.get((each.name, each.rule), each._replace(asked=0, matched=0, fired=0, unable=0))
        found[each.name, each.rule] = each._replace(
            asked=before.asked + each.asked, matched=before.matched + each.matched,
            fired=before.fired + each.fired, unable=before.unable + each.unable,
        )  # fmt: skip
    return [*found.values()]


def line(count: FaultCount) -> str:
    """Return one line about a rule."""
    fired = f"fired {counted(count.fired, 'time')}" if count.fired else "never fired"
    words = f"fault {count.name} {fired}, {count.matched:,} matched of {count.asked:,} asked"
    if count.unable:
        words += f", {count.unable:,} where it could do nothing"
    return clean(f"{words}: {count.rule}")
