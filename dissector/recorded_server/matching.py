"""Which recorded exchange answers a request.

The next one in which the very same was asked; else the next one of those that are about most of what the request is
about, and about little else, in the client's version if there is one. In recorded order; when all were answered with,
the last one without an error again.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from dissector.recorded_server.entities import Entities
from dissector.recorded_server.exchanges import RecordedExchange

MOST_OTHERS: Final = 1_000
"""Other exchanges in which an entity is looked for."""


class Match(NamedTuple):
    """What answers a request: the exchange that fits best, then one for each other set of entities."""

    exchanges: list[RecordedExchange]
    is_same: bool
    """Whether the very same was asked for."""
    is_repeated: bool
    """Whether it was answered with before."""


@dataclass(slots=True)
class _Alike:
    """Exchanges with a response, about the same entities in the same version, in recorded order."""

    entities: Entities
    version: int
    exchanges: list[RecordedExchange] = field(default_factory=list)
    at: int = 0
    """How many are known to be used."""

    @property
    def last(self) -> RecordedExchange:
        return next((each for each in reversed(self.exchanges) if not each.has_error), self.exchanges[-1])


class ApiMatching:
    """The recorded exchanges of one API."""

    def __init__(self, exchanges: Iterable[RecordedExchange]) -> None:
        self._alike: dict[tuple[Entities, int], _Alike] = {}
        self._same: dict[tuple[int, bytes], list[RecordedExchange]] = {}
        self._used: set[int] = set()
        for each in exchanges:
            key = each.entities, each.version
            if each.response is not None:
                self._alike.setdefault(key, _Alike(*key)).exchanges.append(each)
            self._same.setdefault((each.version, each.body), []).append(each)

    def restart(self) -> None:
        """Answer from the beginning again."""
        self._used.clear()
        for each in self._alike.values():
            each.at = 0

    def has(self, version: int, body: bytes) -> bool:
        """Return whether the very same was asked for."""
        return (version, body) in self._same

    def match(self, version: int, entities: Entities, body: bytes) -> Match:
        """Return what answers a request."""
        ranked = sorted(self._alike.values(), key=lambda each: _fit(each, version, entities), reverse=True)
        others = [each.last for each in ranked[1:MOST_OTHERS]]
        same = next((each for each in self._same.get((version, body), ()) if each.number not in self._used), None)
        if same is not None:
            self._used.add(same.number)
            return Match([same, *others], is_same=True, is_repeated=False)
        if not ranked:
            return Match([], is_same=False, is_repeated=False)
        best = ranked[0]
        while best.at < len(best.exchanges):
            found = best.exchanges[best.at]
            best.at += 1
            if found.number not in self._used:
                self._used.add(found.number)
                return Match([found, *others], is_same=False, is_repeated=False)
        last = best.last
        return Match([last, *others], is_same=(last.version, last.body) == (version, body), is_repeated=True)


def _fit(alike: _Alike, version: int, entities: Entities) -> tuple[int, int, bool, int]:
    common = len(alike.entities & entities)
    return common, common - len(alike.entities), alike.version == version, -abs(alike.version - version)
