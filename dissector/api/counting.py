"""Counts of exchanges by what they have in common."""

from collections.abc import Callable
from typing import Any

from dissector.analysis.stats.breakdowns import BREAKDOWNS, group_object
from dissector.analysis.stats.row_field_counts import RowFieldPass, groups
from dissector.analysis.stats.statistics_pass import StatisticsPass
from dissector.capture_session import Capture
from dissector.core.arrays import Int64
from dissector.core.suggestions import did_you_mean
from dissector.exchange.row_fields import ROW_FIELDS


def counted_by(capture: Capture, by: str, rows: Int64 | None, examine: Callable[[], None]) -> list[dict[str, Any]]:
    """Return the groups of some rows, or of all. Raises `ValueError` for an unknown name."""
    if not isinstance(by, str):
        raise TypeError(f"a field is named by text, such as 'api', not {by!r}")
    field = ROW_FIELDS.get(by)
    known = next((each for each in (by, *(field.names if field is not None else ())) if each in BREAKDOWNS), None)
    if known is not None:
        counting = StatisticsPass(capture, rows)
        for _ in counting.steps():
            pass
        return [group_object(known, group) for group in BREAKDOWNS[known](counting.statistics)]
    if field is None:
        names = dict.fromkeys((*BREAKDOWNS, *ROW_FIELDS))
        raise ValueError(f"unknown field {by!r}" + (did_you_mean(by, names) or f": there are {', '.join(names)}"))
    if field.reads_findings:
        examine()
    by_field = RowFieldPass(capture, field, rows)
    for _ in by_field.steps():
        pass
    return [group_object(field.name, group) for group in groups(field, by_field.counts)]
