"""Observations for cross-connection findings as rows, and the rows of the findings that they give.

A partition yields observations besides its rows of tables. Those of all partitions, sorted by scope, give findings.
"""

import pickle
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from dissector.core.finding import Finding
from dissector.findings.framework.aggregation import Observation, aggregate
from dissector.findings.framework.open_findings import Revision
from dissector.pipeline.origins import Origin, Origins
from dissector.pipeline.table_rows import Cells

OBSERVATIONS: Final = "observations"
"""In place of a table's name: the row is an observation."""
UPDATES: Final = "updates"
"""In place of a table's name: the row is an update of a row of an earlier micro-batch."""
FINDING_KEY: Final = ("packet", "start", "code", "path")
"""Identifies a finding of a capture, together with its message."""
BY: Final = ("extractor", "scope")
ORDER: Final = (*BY, "packet", "start", "nth")


def row_of(observation: Observation) -> Cells:
    """Return an observation as a row of `table_schemas.OBSERVATIONS`; packets are numbered over all files."""
    return {
        "day": None, "capture": None, "extractor": observation.extractor, "scope": repr(observation.scope),
        "packet": observation.packet, "start": observation.start, "nth": observation.nth,
        "pickled": pickle.dumps((observation.scope, observation.value)),
    }  # fmt: skip


def findings_of(
    rows: Iterable[Cells], origins: list[Origin],
    aggregation: Callable[[Iterable[Observation]], Iterable[tuple[Observation, Finding]]] = aggregate,
) -> Iterator[Cells]:  # fmt: skip
    """Yield findings of observations as rows of `table_schemas.FOUND`. The observations are in `ORDER`, those of one
    detector and scope together. They are all, or those of one micro-batch if `aggregation` keeps state."""
    origins_by_packet = Origins(origins)
    for observation, finding in aggregation(_observations(rows)):
        origin, packet = origins_by_packet.of(observation.packet)
        yield {
            "day": origin.day, "capture": origin.capture, "packet": packet, "start": observation.start,
            "code": finding.code, "severity": finding.severity.value, "path": finding.path, "message": finding.message,
        }  # fmt: skip


def updates_of(updates: Iterable[Revision], origins: list[Origin]) -> Iterator[Cells]:
    """Yield findings about rows that are written already, as rows of `table_schemas.UPDATES`."""
    origins_by_packet = Origins(origins)
    for (at, start), before, finding in updates:
        origin, packet = origins_by_packet.of(at)
        yield {
            "day": origin.day, "capture": origin.capture, "packet": packet, "start": start, "code": finding.code,
            "severity": finding.severity.value, "path": finding.path, "message": finding.message,
            "before": None if before is None else before.message,
        }  # fmt: skip


def apply_updates(pending: list[Cells], updates: Iterable[Cells]) -> list[Cells]:
    """Update the messages of `pending` findings, whose exchanges come later. Return the updates of other findings."""
    by_key = {_finding_key(each, each["message"]): each for each in pending}
    others = []
    for update in updates:
        finding = by_key.get(_finding_key(update, update["before"]))
        if finding is None:
            others.append(update)
        else:
            finding["message"] = update["message"]
    return others


def _finding_key(cells: Cells, message: str | None) -> tuple[Any, ...]:
    return (cells["capture"], *(cells[name] for name in FINDING_KEY), message)


def _observations(rows: Iterable[Cells]) -> Iterator[Observation]:
    last: tuple[Any, ...] = ()
    for cells in rows:
        order = tuple(cells[name] for name in ORDER)
        assert last <= order, "observations are not in order"
        last = order
        scope, value = pickle.loads(cells["pickled"])
        yield Observation(cells["extractor"], scope, cells["packet"], cells["start"], cells["nth"], value)
