"""Aggregates observations into findings: at once, or collected and aggregated with those of other partitions.

Invariant: the findings are the same. If a capture is read in partitions, the observations of all are sorted by
extractor and scope, then by packet, start and nth; `aggregate` then gives the findings of the complete capture.
"""

from collections.abc import Collection, Iterable, Iterator
from itertools import groupby
from typing import Any, Final, NamedTuple

from dissector.core.finding import Finding, Severity
from dissector.findings.explanation import Explanation
from dissector.findings.framework.decoded_exchange import RowPosition
from dissector.findings.framework.detector import Aggregator
from dissector.findings.framework.extractor import Extractor, Scope
from dissector.findings.framework.open_findings import FindingSink, OpenFinding, Revision, Revisions, open_finding
from dissector.findings.framework.recurrence import BoundedStates
from dissector.findings.registry import DETECTORS


def _by_extractor() -> dict[type[Extractor], list[type[Aggregator[Any]]]]:
    found: dict[type[Extractor], list[type[Aggregator[Any]]]] = {}
    for detector in DETECTORS:
        if issubclass(detector, Aggregator):
            found.setdefault(detector.extractor, []).append(detector)
    return found


_AGGREGATORS: Final = _by_extractor()
EXTRACTORS: Final = tuple(_AGGREGATORS)
_BY_NAME: Final = {extractor.__name__: extractor for extractor in EXTRACTORS}


def finds(extractor: type[Extractor], codes: Collection[str]) -> bool:
    """Whether an extractor's observations become findings with one of some codes."""
    return any(each.explanation.code in codes for each in _AGGREGATORS[extractor])


class Observation(NamedTuple):
    """An observation that is kept for later aggregation."""

    extractor: str
    scope: Scope
    packet: int
    """With `start`, the position of its row (`RowPosition`)."""
    start: int
    nth: int
    """Number of observations of the partition before it, as one row may give more than one."""
    value: Any


class ImmediateAggregation:
    """Aggregates observations as they come."""

    def __init__(self, sink: FindingSink) -> None:
        self._sink = sink
        self._aggregators: dict[type[Extractor], BoundedStates[Scope, list[Aggregator[Any]]]] = {
            extractor: BoundedStates(list, extractor.max_scopes) for extractor in EXTRACTORS
        }

    def add(self, extractor: type[Extractor], scope: Scope, row: int, position: RowPosition, value: Any) -> None:
        """Pass an observation to the aggregators of its scope."""
        aggregators = self._aggregators[extractor].of(scope)
        if not aggregators:
            aggregators += _aggregators(extractor, self._sink, scope)
        for aggregator in aggregators:
            aggregator.add(row, value)


class ObservationLog:
    """Collects observations until they are taken."""

    def __init__(self) -> None:
        self._observations: list[Observation] = []
        self._count = 0

    def add(self, extractor: type[Extractor], scope: Scope, row: int, position: RowPosition, value: Any) -> None:
        """Keep an observation."""
        self._observations.append(Observation(extractor.__name__, scope, *position, self._count, value))
        self._count += 1

    def take(self) -> list[Observation]:
        """Return the observations since the last call."""
        observations, self._observations = self._observations, []
        return observations


def aggregate(observations: Iterable[Observation]) -> Iterator[tuple[Observation, Finding]]:
    """Yield the findings of sorted observations of any number of partitions, each with the observation of the row that
    it is about. Memory holds the findings of one scope."""
    for (extractor, scope), of_scope in groupby(observations, key=lambda each: (each.extractor, each.scope)):
        reported = _ReportedFindings()
        aggregators = _aggregators(_BY_NAME[extractor], reported, scope)
        for observation in of_scope:
            reported.current = observation
            for aggregator in aggregators:
                aggregator.add(0, observation.value)
        yield from ((observation, each.finding) for observation, each in reported.findings)


class IncrementalAggregation:
    """Aggregates observations of one micro-batch after the other; it can be pickled in between. Its memory is bounded
    as in `ImmediateAggregation`."""

    def __init__(self) -> None:
        self._reported = _ReportedFindings()
        self._revisions = Revisions()
        self._aggregation = ImmediateAggregation(self._reported)

    def aggregate(self, observations: Iterable[Observation]) -> list[tuple[Observation, Finding]]:
        """Return the findings of the next micro-batch; observations and findings are as in `aggregate`."""
        for observation in observations:
            self._reported.current = observation
            position = observation.packet, observation.start
            extractor = _BY_NAME[observation.extractor]
            self._aggregation.add(extractor, observation.scope, 0, position, observation.value)
        new, self._reported.findings = self._reported.findings, []
        for observation, finding in new:
            finding.track((observation.packet, observation.start), self._revisions)
        return [(observation, each.finding) for observation, each in new]

    def take_revisions(self) -> list[Revision]:
        """Return findings of earlier micro-batches whose message changed since the last call."""
        return self._revisions.take()


def _aggregators(extractor: type[Extractor], sink: FindingSink, scope: Scope) -> list[Aggregator[Any]]:
    return [aggregator(sink, scope) for aggregator in _AGGREGATORS[extractor]]


class _ReportedFindings:
    """Findings with the observations at which they were reported."""

    current: Observation

    def __init__(self) -> None:
        self.findings: list[tuple[Observation, OpenFinding]] = []

    def report(
        self, explanation: Explanation, row: int, message: str, path: str, severity: Severity | None
    ) -> OpenFinding:
        """Report a finding about the row of the current observation."""
        finding = open_finding(explanation, message, path, severity)
        self.findings.append((self.current, finding))
        return finding
