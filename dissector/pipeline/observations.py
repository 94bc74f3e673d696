"""Observations for cross-connection findings as rows, and the rows of the findings that they give.

A partition yields observations besides its rows of tables. Those of all partitions, sorted by scope, give findings.
"""

import pickle
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from dissector.core.finding import Finding
from dissector.findings.framework.aggregation import Observation, aggregate
from dissector.findings.framework.open_findings import Revision
from dissector.pipeline.origins import FileOrigins, Origins, Place, Source, Sources
from dissector.tables.rows import Cells
from dissector.tables.schemas import OBSERVATIONS

BY: Final = ("extractor", "scope")
ORDER: Final = (*BY, "packet", "start", "nth")


def row_of(observation: Observation, sources: Sources) -> tuple[str, Cells]:
    """Return an observation as a row of `OBSERVATIONS`; packets are numbered over all files."""
    file, file_packet = sources.of(observation.packet) or (None, None)
    return OBSERVATIONS.name, {
        "file": file, "file_packet": file_packet,
        "extractor": observation.extractor, "scope": repr(observation.scope), "packet": observation.packet,
        "start": observation.start, "nth": observation.nth,
        "pickled": pickle.dumps((observation.scope, observation.value)),
    }  # fmt: skip


def findings_of(
    rows: Iterable[Cells], origins: FileOrigins,
    aggregation: Callable[[Iterable[Observation]], Iterable[tuple[Observation, Finding]]] = aggregate,
) -> Iterator[tuple[str, Cells]]:  # fmt: skip
    """Yield findings of observations as rows of `findings`. The observations are in `ORDER`, those of one detector and
    scope together. They are all, or those of one micro-batch if `aggregation` keeps state."""
    by_packet, sources = Origins(origins, Sources()), dict[int, Source]()
    for observation, finding in aggregation(_observations(rows, sources)):
        place = by_packet.place(observation.packet, sources.get(observation.packet))
        yield _row_of(place, observation.start, finding)


def revisions_of(revisions: Iterable[Revision], origins: FileOrigins) -> Iterator[tuple[str, Cells]]:
    """Yield findings about rows that are written already, as rows of `findings`."""
    by_packet = Origins(origins, Sources())
    for (at, start), before, finding in revisions:
        name, cells = _row_of(by_packet.of(at), start, finding)
        yield name, cells | {"replaces": None if before is None else before.message}


def _row_of(place: Place, start: int, finding: Finding) -> tuple[str, Cells]:
    return "findings", place.keys | {"start": start, "nth": None, "replaces": None} | finding_cells(finding)


def finding_cells(finding: Finding) -> Cells:
    """Return what a row of `findings` says of a finding."""
    return {
        "code": finding.code, "severity": finding.severity.value, "path": finding.path, "message": finding.message
    }  # fmt: skip


def _observations(rows: Iterable[Cells], sources: dict[int, Source]) -> Iterator[Observation]:
    """Yield the observations in rows, and add their sources."""
    last: tuple[Any, ...] = ()
    for cells in rows:
        order = tuple(cells[name] for name in ORDER)
        assert last <= order, "observations are not in order"
        last = order
        if cells["file"] is not None:
            sources[cells["packet"]] = cells["file"], cells["file_packet"]
        scope, value = pickle.loads(cells["pickled"])
        yield Observation(cells["extractor"], scope, cells["packet"], cells["start"], cells["nth"], value)
