"""Notes of what several connections tell together, as rows, and the rows of findings that are made of them.

A part gives notes beside its rows of tables; who has those of all parts, scope by scope and in order, gets findings.
"""

import pickle
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from dissector.core.finding import Finding
from dissector.findings.found import Anew
from dissector.findings.notes import Noted, made
from dissector.pipeline.cells import Cells
from dissector.pipeline.origins import Origin, Origins

NOTES: Final = "notes"
"""What stands where a table's name does with a note."""
ANEW: Final = "anew"
"""The same of what is told of rows of portions before."""
SAID: Final = ("packet", "start", "code", "path")
"""What a finding of a capture is found by, with its words."""
BY: Final = ("noter", "scope")
ORDER: Final = (*BY, "packet", "start", "nth")


def row_of(noted: Noted) -> Cells:
    """A note, as `tables.NOTES` has it: the packet is that of the capture of all files."""
    return {
        "day": None, "capture": None, "noter": noted.noter, "scope": repr(noted.scope), "packet": noted.packet,
        "start": noted.start, "nth": noted.nth, "note": pickle.dumps((noted.scope, noted.note)),
    }  # fmt: skip


def findings_of(
    notes: Iterable[Cells], origins: list[Origin],
    make: Callable[[Iterable[Noted]], Iterable[tuple[Noted, Finding]]] = made,
) -> Iterator[Cells]:  # fmt: skip
    """What notes tell, as `tables.FOUND` has it. They stand in `ORDER`, all of one noter and scope together. They are
    all that there are, or a portion for who can `make` findings of portions."""
    places = Origins(origins)
    for noted, finding in make(_noted(notes)):
        origin, packet = places.of(noted.packet)
        yield {
            "day": origin.day, "capture": origin.capture, "packet": packet, "start": noted.start,
            "code": finding.code, "severity": finding.severity.value, "path": finding.path, "message": finding.message,
        }  # fmt: skip


def anew_of(changes: Iterable[Anew], origins: list[Origin]) -> Iterator[Cells]:
    """What is told of rows that were taken, as `tables.ANEW` has it."""
    places = Origins(origins)
    for (at, start), before, finding in changes:
        origin, packet = places.of(at)
        yield {
            "day": origin.day, "capture": origin.capture, "packet": packet, "start": start, "code": finding.code,
            "severity": finding.severity.value, "path": finding.path, "message": finding.message,
            "before": None if before is None else before.message,
        }  # fmt: skip


def retell(waiting: list[Cells], changes: Iterable[Cells]) -> list[Cells]:
    """Give findings that wait for their exchanges their new words; changes that are about none of them."""
    by_key = {_said(each, each["message"]): each for each in waiting}
    left = []
    for change in changes:
        of = by_key.get(_said(change, change["before"]))
        if of is None:
            left.append(change)
        else:
            of["message"] = change["message"]
    return left


def _said(cells: Cells, words: str | None) -> tuple[Any, ...]:
    return (cells["capture"], *(cells[name] for name in SAID), words)


def _noted(notes: Iterable[Cells]) -> Iterator[Noted]:
    last: tuple[Any, ...] = ()
    for cells in notes:
        order = tuple(cells[name] for name in ORDER)
        assert last <= order, "notes are not in order"
        last = order
        scope, note = pickle.loads(cells["note"])
        yield Noted(cells["noter"], scope, cells["packet"], cells["start"], cells["nth"], note)
