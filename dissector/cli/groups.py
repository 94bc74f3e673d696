"""`kdissect groups`: why each group rebalances. The verdict first, then each generation or epoch."""

from collections.abc import Iterator, Sequence

import numpy as np

from dissector.analysis.group_pass import GroupPass
from dissector.capture_session import Capture
from dissector.cli.errors import NEGATIVE, print_error
from dissector.cli.formats import StatsFormat
from dissector.cli.options import CaptureOptions, no_match_message, parse_filter
from dissector.cli.render.pages import DIM, NAME, NOTE, TITLE, Line, print_lines, wrapped, write_out
from dissector.cli.render.progress import examine_with_progress, step_with_progress
from dissector.cli.show import read_rows
from dissector.cli.wrong_listeners import print_wrong_listeners
from dissector.core.json_text import dumps
from dissector.core.process_memory import infrequent_collection
from dissector.core.text import counted, rough_duration, seconds
from dissector.groups.history import GroupHistory
from dissector.groups.rebalance import Rebalance
from dissector.groups.report import ReportLine, as_object, heading, lines, rest, title, why
from dissector.groups.verdict import verdict


def groups(files: Sequence[str], form: StatsFormat, filter: str | None, *, options: CaptureOptions) -> int:
    """Print the groups; return the exit code: 0, or 1 if there is none."""
    row_filter = parse_filter(filter, options=options)
    with infrequent_collection(), options.open(files) as capture:
        if not read_rows(capture):
            return NEGATIVE
        print_wrong_listeners(capture)
        reading = GroupPass(capture)
        step_with_progress(reading.steps(), "reading groups")
        found = list(reading.histories.values())
        if row_filter is not None:
            if row_filter.reads_findings:
                examine_with_progress(capture)
            chosen = [each.rows for each in capture.select(row_filter)]
            if not any(map(len, chosen)):
                print_error(no_match_message(row_filter, len(capture)))
                return NEGATIVE
            about = reading.of_rows(np.concatenate(chosen))
            found = [each for each in found if each.group in about]
        found = [each for each in found if each.rebalances or each.members or each.tally.refusals]
        if not found:
            print_error(f"{', '.join(capture.names)}: no group in {counted(len(capture), 'row')}")
            return NEGATIVE
        if form is StatsFormat.JSON:
            code = write_out(dumps(as_object(each)) + b"\n" for each in found)
        else:
            code = print_lines(_report(found, capture))
        if reading.left_out:
            print_error(f"{counted(reading.left_out, 'exchange')} in further groups left out")
        return code


def _report(found: Sequence[GroupHistory], capture: Capture) -> Iterator[Line]:
    for at, history in enumerate(found):
        if at:
            yield []
        yield [(history.name, NAME), (f"  {heading(history)}", DIM)]
        yield from wrapped(verdict(history).sentence, 2)
        for each in history.rebalances:
            yield from _generation(each, capture)
        after = list(rest(history))
        if after:
            yield [("  after that", TITLE)]
            yield from _lines(after, capture)


def _generation(rebalance: Rebalance, capture: Capture) -> Iterator[Line]:
    """The time, the row and how long it took; then why, and who did what."""
    when = seconds(rebalance.start_ns - capture.start_ns)
    took = rough_duration(rebalance.done_ns - rebalance.start_ns)
    yield [(f"  {title(rebalance)}", TITLE), (f"  {when}  #{rebalance.row + 1}, took {took}", DIM)]
    is_sure = rebalance.cause is None or rebalance.cause.sure
    yield from ([(text, NOTE if not is_sure else style) for text, style in line] for line in wrapped(why(rebalance), 4))
    yield from _lines(list(lines(rebalance)), capture)


def _lines(found: Sequence[ReportLine], capture: Capture) -> Iterator[Line]:
    for each in found:
        when = seconds(each.time_ns - capture.start_ns) if each.time_ns else ""
        where = f"  #{each.row + 1}" if each.row is not None else ""
        yield [(f"    {when:>12}  ", DIM), (each.words, ""), (where, DIM)]
