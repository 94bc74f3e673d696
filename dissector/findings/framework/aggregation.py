"""Notes on their way from noters to makers: at once, or kept, sent and brought together with those of others.

Invariant: it makes no difference which. Whoever reads a capture in parts keeps the notes of each, sorts those of all by
noter and scope, and then by packet, start and nth, and has `made` find what reading the whole finds.
"""

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any, Final, NamedTuple

from dissector.core.finding import Finding, Severity
from dissector.findings.explanation import Explanation
from dissector.findings.framework.decoded_exchange import Place
from dissector.findings.framework.extractor import Maker, Noter, Scope
from dissector.findings.framework.open_findings import Anew, Case, Changes, Telling, case_of
from dissector.findings.framework.recurrence import Recent
from dissector.findings.registry import FINDERS


def _by_noter() -> dict[type[Noter], list[type[Maker[Any]]]]:
    found: dict[type[Noter], list[type[Maker[Any]]]] = {}
    for finder in FINDERS:
        if issubclass(finder, Maker):
            found.setdefault(finder.noter, []).append(finder)
    return found


_MAKERS: Final = _by_noter()
NOTERS: Final = tuple(_MAKERS)
_BY_NAME: Final = {noter.__name__: noter for noter in NOTERS}


class Noted(NamedTuple):
    """A note that is kept."""

    noter: str
    scope: Scope
    packet: int
    """Where the row stands that it is about: see `seen.Place`."""
    start: int
    nth: int
    """Notes of the part before it: of one row there may be several."""
    note: Any


class AtOnce:
    """Findings are made of notes as they come."""

    def __init__(self, found: Telling) -> None:
        self._found = found
        self._makers: dict[type[Noter], Recent[Scope, list[Maker[Any]]]] = {
            noter: Recent(list, noter.scopes) for noter in NOTERS
        }

    def take(self, noter: type[Noter], scope: Scope, row: int, place: Place, note: Any) -> None:
        """Have the makers of the scope look at it."""
        makers = self._makers[noter].of(scope)
        if not makers:
            makers += _makers(noter, self._found, scope)
        for maker in makers:
            maker.make(row, note)


class Notes:
    """Notes are kept until somebody takes them."""

    def __init__(self) -> None:
        self._notes: list[Noted] = []
        self._count = 0

    def take(self, noter: type[Noter], scope: Scope, row: int, place: Place, note: Any) -> None:
        """Keep it."""
        self._notes.append(Noted(noter.__name__, scope, *place, self._count, note))
        self._count += 1

    def taken(self) -> list[Noted]:
        """Those that are kept, which they are no more."""
        notes, self._notes = self._notes, []
        return notes


def made(notes: Iterable[Noted]) -> Iterator[tuple[Noted, Finding]]:
    """What notes of any number of parts tell, and the note of the row that each finding is about. They are
    sorted; no more than the findings of one scope are held."""
    for (noter, scope), some in groupby(notes, key=lambda noted: (noted.noter, noted.scope)):
        cases = _Cases()
        makers = _makers(_BY_NAME[noter], cases, scope)
        for noted in some:
            cases.of = noted
            for maker in makers:
                maker.make(0, noted.note)
        yield from ((of, case.finding) for of, case in cases.told)


class Making:
    """Findings are made of notes that come in portions, and from one to the next it can be pickled. What is remembered
    is bounded, as it is where they are made at once."""

    def __init__(self) -> None:
        self._cases = _Cases()
        self._changes = Changes()
        self._makers = AtOnce(self._cases)

    def made(self, notes: Iterable[Noted]) -> list[tuple[Noted, Finding]]:
        """As `made`, of the next portion, which is sorted the same way."""
        for noted in notes:
            self._cases.of = noted
            self._makers.take(_BY_NAME[noted.noter], noted.scope, 0, (noted.packet, noted.start), noted.note)
        told, self._cases.told = self._cases.told, []
        for of, case in told:
            case.taken((of.packet, of.start), self._changes)
        return [(of, case.finding) for of, case in told]

    def told_anew(self) -> list[Anew]:
        """What was found in portions before and has other words since."""
        return self._changes.take()


def _makers(noter: type[Noter], found: Telling, scope: Scope) -> list[Maker[Any]]:
    return [maker(found, scope) for maker in _MAKERS[noter]]


class _Cases:
    """What is told about notes."""

    of: Noted

    def __init__(self) -> None:
        self.told: list[tuple[Noted, Case]] = []

    def tell(self, explanation: Explanation, row: int, message: str, path: str, severity: Severity | None) -> Case:
        """About the note that is looked at."""
        case = case_of(explanation, message, path, severity)
        self.told.append((self.of, case))
        return case
