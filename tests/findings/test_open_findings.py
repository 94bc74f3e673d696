"""Revisions of findings whose row was taken already."""

import numpy as np

from dissector.core.object_graph import from_nodes, to_nodes
from dissector.findings.detectors.closed_in_flight import ClosedInFlight
from dissector.findings.framework.decoded_exchange import RowPosition
from dissector.findings.framework.open_findings import FindingStore, OpenFinding

SLOW = ClosedInFlight.explanation


def place_of(row: int) -> RowPosition:
    return row * 10, 7


def rows(*some: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.array(some, np.int64)


def words(found: FindingStore) -> list[tuple[RowPosition, str | None, str]]:
    changes = found.revisions.take()
    return [(place, before.message if before else None, now.message) for place, before, now in changes]


def reported(found: FindingStore, row: int, message: str) -> OpenFinding:
    return found.report(SLOW, row, message)


def test_an_update_of_a_taken_finding_is_one_revision() -> None:
    found = FindingStore()
    open_finding, staying = reported(found, 1, "one"), reported(found, 2, "another")
    open_finding.update("two")
    found.keep(rows(2), rows(), place_of)
    open_finding.update("three")
    open_finding.update("four")
    staying.update("is taken as it is")
    assert words(found) == [((10, 7), "two", "four")]
    assert words(found) == []
    open_finding.update("five")
    open_finding.update("four")
    assert words(found) == [], "they are as they were"


def test_a_revision_names_the_row_that_it_updates() -> None:
    found = FindingStore()
    found.keep(rows(), rows(1), place_of)
    found.keep(rows(), rows(1), lambda row: (0, 0))
    open_finding = reported(found, 1, "one")
    open_finding.update("two")
    assert words(found) == [((10, 7), None, "two")]
    assert found.of(1) == [], "the row is gone"


def test_it_goes_on_where_it_is_restored() -> None:
    found = FindingStore()
    open_finding = reported(found, 1, "one")
    found.keep(rows(), rows(), place_of)
    found, open_finding = from_nodes(to_nodes((found, open_finding)))
    open_finding.update("two")
    assert words(found) == [((10, 7), "one", "two")]


def test_rows_that_stay_keep_what_was_found() -> None:
    found = FindingStore()
    open_finding = reported(found, 3, "one")
    found.keep(rows(3), rows(3), place_of)
    open_finding.update("two")
    assert [finding.message for finding in found.of(3)] == ["two"]
    assert words(found) == []
