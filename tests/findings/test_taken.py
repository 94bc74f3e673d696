"""What is told of a row after somebody took it, with what was found of it until then."""

import pickle

import numpy as np

from dissector.findings.detectors.closed_in_flight import ClosedInFlight
from dissector.findings.framework.decoded_exchange import Place
from dissector.findings.framework.open_findings import Case, Found

SLOW = ClosedInFlight.explanation


def place_of(row: int) -> Place:
    return row * 10, 7


def rows(*some: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.array(some, np.int64)


def words(found: Found) -> list[tuple[Place, str | None, str]]:
    changes = found.changes.take()
    return [(place, before.message if before else None, now.message) for place, before, now in changes]


def told(found: Found, row: int, message: str) -> Case:
    return found.tell(SLOW, row, message)


def test_new_words_are_told_once_beside_those_that_were_taken() -> None:
    found = Found()
    case, staying = told(found, 1, "one"), told(found, 2, "another")
    case.retell("two")
    found.keep(rows(2), rows(), place_of)
    case.retell("three")
    case.retell("four")
    staying.retell("is taken as it is")
    assert words(found) == [((10, 7), "two", "four")]
    assert words(found) == []
    case.retell("five")
    case.retell("four")
    assert words(found) == [], "they are as they were"


def test_what_is_new_of_a_row_that_is_remembered_is_told_with_its_place() -> None:
    found = Found()
    found.keep(rows(), rows(1), place_of)
    found.keep(rows(), rows(1), lambda row: (0, 0))
    case = told(found, 1, "one")
    case.retell("two")
    assert words(found) == [((10, 7), None, "two")]
    assert found.of(1) == [], "the row is gone"


def test_it_goes_on_where_it_is_unpickled() -> None:
    found = Found()
    case = told(found, 1, "one")
    found.keep(rows(), rows(), place_of)
    found, case = pickle.loads(pickle.dumps((found, case)))
    case.retell("two")
    assert words(found) == [((10, 7), "one", "two")]


def test_rows_that_stay_keep_what_was_found() -> None:
    found = Found()
    case = told(found, 3, "one")
    found.keep(rows(3), rows(3), place_of)
    case.retell("two")
    assert [finding.message for finding in found.of(3)] == ["two"]
    assert words(found) == []
