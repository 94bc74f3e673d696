"""Observations for cross-connection findings as rows, and the rows of the findings made of them.

A partition yields observations beside its rows of tables. Those of all partitions, sorted by scope, give findings.
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
"""Stands in place of a table's name, with an observation."""
UPDATES: Final = "updates"
"""Likewise, with an update of a row of an earlier micro-batch."""
FINDING_KEY: Final = ("packet", "start", "code", "path")
"""Identifies a finding of a capture, together with its message."""
BY: Final = ("noter", "scope")
ORDER: Final = (*BY, "packet", "start", "nth")


def row_of(noted: Observation) -> Cells:
    """Return an observation as a row of `table_schemas.OBSERVATIONS`; packets are numbered over all files."""
    return {
        "day": None, "capture": None, "noter": noted.extractor, "scope": repr(noted.scope), "packet": noted.packet,
        "start": noted.start, "nth": noted.nth, "note": pickle.dumps((noted.scope, noted.value)),
    }  # fmt: skip


def findings_of(
    notes: Iterable[Cells], origins: list[Origin],
    make: Callable[[Iterable[Observation]], Iterable[tuple[Observation, Finding]]] = aggregate,
) -> Iterator[Cells]:  # fmt: skip
    """Yield findings of observations as rows of `table_schemas.FOUND`. The observations are in `ORDER`, those of one
    detector and scope together. They are all, or those of one micro-batch if `make` keeps state between these."""
    places = Origins(origins)
    for noted, finding in make(_noted(notes)):
        origin, packet = places.of(noted.packet)
        yield {
            "day": origin.day, "capture": origin.capture, "packet": packet, "start": noted.start,
            "code": finding.code, "severity": finding.severity.value, "path": finding.path, "message": finding.message,
        }  # fmt: skip


def updates_of(changes: Iterable[Revision], origins: list[Origin]) -> Iterator[Cells]:
    """Yield findings about rows that are written already, as rows of `table_schemas.UPDATES`."""
    places = Origins(origins)
    for (at, start), before, finding in changes:
        origin, packet = places.of(at)
        yield {
            "day": origin.day, "capture": origin.capture, "packet": packet, "start": start, "code": finding.code,
            "severity": finding.severity.value, "path": finding.path, "message": finding.message,
            "before": None if before is None else before.message,
        }  # fmt: skip


def apply_updates(waiting: list[Cells], changes: Iterable[Cells]) -> list[Cells]:
    """Change the messages of findings that wait for their exchanges. Return the updates of other findings."""
    by_key = {_finding_key(each, each["message"]): each for each in waiting}
    left = []
    for change in changes:
        of = by_key.get(_finding_key(change, change["before"]))
        if of is None:
            left.append(change)
        else:
            of["message"] = change["message"]
    return left


def _finding_key(cells: Cells, words: str | None) -> tuple[Any, ...]:
    return (cells["capture"], *(cells[name] for name in FINDING_KEY), words)


def _noted(notes: Iterable[Cells]) -> Iterator[Observation]:
    last: tuple[Any, ...] = ()
    for cells in notes:
        order = tuple(cells[name] for name in ORDER)
        assert last <= order, "observations are not in order"
        last = order
        scope, note = pickle.loads(cells["note"])
        yield Observation(cells["noter"], scope, cells["packet"], cells["start"], cells["nth"], note)
