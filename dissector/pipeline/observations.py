"""Observations for cross-connection findings as rows, and the rows of the findings that they give.

A partition yields observations besides its rows of tables. Those of all partitions, sorted by scope, give findings.
Only observations that go from one process to another become rows.
"""

import json
import sys
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from dissector.core.finding import Finding
from dissector.exchange.to_json import finding_object
from dissector.findings.framework.aggregation import EXTRACTORS, Observation, aggregate
from dissector.findings.framework.open_findings import Revision
from dissector.pipeline.origins import FileOrigins, Origins, Place, Source, Sources
from dissector.tables.arrow_types import arrow_schema
from dissector.tables.data_files import DataFile
from dissector.tables.file_systems import opened
from dissector.tables.row_batches import Cells, TableRow
from dissector.tables.schemas import OBSERVATIONS

BY: Final = ("extractor", "scope")
ORDER: Final = (*BY, "packet", "start", "nth")
MOST_HERE: Final = 50_000
"""Observations that the driver sorts and aggregates itself: some ten megabytes. A job of Spark's takes a second."""
_VALUES: Final[dict[str, Callable[..., Any]]] = {
    name: each
    for extractor in EXTRACTORS
    for name, each in vars(sys.modules[extractor.__module__]).items()
    if isinstance(each, type) and issubclass(each, tuple)
}
"""Classes of observed values, by name."""


Observed = Callable[[Iterable[Observation], Sources], Iterable[TableRow]]
"""Takes observations of a partition. Returns the rows that they become: none if it keeps them."""
_Aggregation = Callable[[Iterable[Observation]], Iterable[tuple[Observation, Finding]]]
_ENCODED: Final = json.JSONEncoder(default=lambda number: number.item()).encode


def rows_of(observations: Iterable[Observation], sources: Sources) -> Iterator[TableRow]:
    """Yield observations as rows of `OBSERVATIONS`."""
    return (row_of(each, sources) for each in observations)


class KeptObservations:
    """Observations of a partition that has all packets. They become no rows: to write JSON and to read it again took a
    tenth of an ingest."""

    def __init__(self) -> None:
        self._scopes: dict[tuple[str, str], int] = {}
        """Numbers of scopes, by what they are sorted by: `BY`."""
        self._of_scopes: list[tuple[str, Any]] = []
        """Extractors and scopes, by number."""
        self._numbers = array("q")
        """Four of each observation: that of its scope, and what it is sorted by then. As columns, observations take a
        third of the memory: there are two of each connection or more."""
        self._values: list[Any] = []
        self._sources: dict[int, Source] = {}

    def keep(self, observations: Iterable[Observation], sources: Sources) -> Iterable[TableRow]:
        """Keep observations: an `Observed`."""
        for each in observations:
            source = sources.of(each.packet)
            if source is not None:
                self._sources[each.packet] = source
            number = self._scopes.setdefault((each.extractor, repr(each.scope)), len(self._of_scopes))
            if number == len(self._of_scopes):
                self._of_scopes.append((each.extractor, each.scope))
            self._numbers.extend((number, each.packet, each.start, each.nth))
            self._values.append(each.value)
        return ()

    def findings(self, origins: FileOrigins) -> Iterator[TableRow]:
        """Yield the findings of all observations, as `findings_of`."""
        yield from _findings(self._in_order(), self._sources, origins, aggregate)

    def _in_order(self) -> Iterator[Observation]:
        ranks = np.empty(len(self._scopes), np.int64)
        ranks[[self._scopes[key] for key in sorted(self._scopes)]] = np.arange(len(ranks))
        scope, *rest = np.array(self._numbers, np.int64).reshape(-1, 4).T
        for at in np.lexsort((*reversed(rest), ranks[scope])).tolist():
            number, packet, start, nth = self._numbers[4 * at : 4 * at + 4]
            yield Observation(*self._of_scopes[number], packet, start, nth, self._values[at])


def row_of(observation: Observation, sources: Sources) -> tuple[str, Cells]:
    """Return an observation as a row of `OBSERVATIONS`; packets are numbered over all files."""
    file, file_packet = sources.of(observation.packet) or (None, None)
    return OBSERVATIONS.name, {
        "file": file, "file_packet": file_packet,
        "extractor": observation.extractor, "scope": repr(observation.scope), "packet": observation.packet,
        "start": observation.start, "nth": observation.nth,
        "value": _to_json(observation),
    }  # fmt: skip


def observation_of(cells: Cells) -> Observation:
    """Return the observation of a row."""
    scope, name, value = json.loads(cells["value"])
    value = _VALUES[name](*_tuples(value))
    return Observation(cells["extractor"], _tuples(scope), cells["packet"], cells["start"], cells["nth"], value)


def observation_files(files: Iterable[DataFile]) -> list[DataFile]:
    """Return the files with observations."""
    return [each for each in files if each.table == OBSERVATIONS.name]


def read_observations(uris: Sequence[str]) -> pa.Table:
    """Return the observations in files, a table without rows for no files."""
    schema = arrow_schema(OBSERVATIONS)
    return pa.concat_tables([schema.empty_table(), *(_read(uri, schema) for uri in uris)])


def _read(uri: str, schema: pa.Schema) -> pa.Table:
    files, path = opened(uri)
    with pq.ParquetFile(path, filesystem=files) as file:
        return file.read(schema.names).select(schema.names).cast(schema)


def in_order(observations: pa.Table) -> Iterator[Cells]:
    """Yield the rows of a table of observations in `ORDER`."""
    for batch in observations.sort_by([(name, "ascending") for name in ORDER]).to_batches():
        yield from batch.to_pylist()


def findings_of(
    rows: Iterable[Cells], origins: FileOrigins, aggregation: _Aggregation = aggregate
) -> Iterator[tuple[str, Cells]]:
    """Yield findings of observations as rows of `findings`. The observations are in `ORDER`, those of one detector and
    scope together. They are all, or those of one micro-batch if `aggregation` keeps state."""
    sources = dict[int, Source]()
    yield from _findings(_observations(rows, sources), sources, origins, aggregation)


def _findings(
    observations: Iterable[Observation], sources: dict[int, Source], origins: FileOrigins, aggregation: _Aggregation
) -> Iterator[tuple[str, Cells]]:
    by_packet = Origins(origins, Sources())
    for observation, finding in aggregation(observations):
        place = by_packet.place(observation.packet, sources.get(observation.packet))
        yield _row_of(place, observation.start, finding)


def revisions_of(revisions: Iterable[Revision], origins: FileOrigins) -> Iterator[tuple[str, Cells]]:
    """Yield findings about rows that are written already, as rows of `findings`."""
    by_packet = Origins(origins, Sources())
    for (at, start), before, finding in revisions:
        name, cells = _row_of(by_packet.of(at), start, finding)
        yield name, cells | {"replaces": None if before is None else before.message}


def _row_of(place: Place, start: int, finding: Finding) -> tuple[str, Cells]:
    return "findings", place.keys | {"start": start, "nth": None, "replaces": None} | finding_object(finding)


def _observations(rows: Iterable[Cells], sources: dict[int, Source]) -> Iterator[Observation]:
    """Yield the observations in rows, and add their sources."""
    last: tuple[Any, ...] = ()
    for cells in rows:
        order = tuple(cells[name] for name in ORDER)
        assert last <= order, "observations are not in order"
        last = order
        if cells["file"] is not None:
            sources[cells["packet"]] = cells["file"], cells["file_packet"]
        yield observation_of(cells)


def _to_json(observation: Observation) -> str:
    """Return scope and value of an observation, whose tuples become arrays. Names from the wire may have any bytes."""
    value = observation.value
    return _ENCODED((observation.scope, type(value).__name__, value))


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value
