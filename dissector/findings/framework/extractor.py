"""What a finder is that several connections tell something together: one half notes, the other makes findings of notes.

A `Noter` sees the exchanges of its connections and notes what matters of them under a scope: a client, a group, a
producer. A `Maker` gets all notes of one scope in the order of the capture, and nothing else.

Invariants:
  * what a noter notes of a connection does not depend on others: so connections can be read apart, by whomever;
  * notes are plain values without rows or numbers of connections: they can be sent, and sorted by where they stand.
"""

from collections.abc import Hashable
from typing import Any, ClassVar, Final, Generic, Protocol, TypeVar

from dissector.findings.framework.decoded_exchange import Place
from dissector.findings.framework.detector import Around, Finder, OverBodies, OverRows
from dissector.findings.framework.open_findings import Telling
from dissector.findings.framework.recurrence import KEYS

Scope = tuple[str | int, ...]
"""What findings are about: those of different scopes have nothing to do with each other."""
Note = TypeVar("Note")
ONE: Final[Hashable] = None
"""The key of what is told once for a scope."""


class Sink(Protocol):
    """Where notes go."""

    def take(self, noter: "type[Noter]", scope: Scope, row: int, place: Place, note: Any) -> None:
        """One note. Of a scope they come in the order of rows."""


class Noter:
    """Notes what makers need."""

    scopes: ClassVar[int] = KEYS
    """How many are remembered where the notes of all are taken as they come."""

    def __init__(self, around: Around, sink: Sink) -> None:
        self.around = around
        self._take = sink.take

    def note(self, scope: Scope, row: int, place: Place, note: Hashable) -> None:
        """Something matters."""
        self._take(type(self), scope, row, place, note)


class RowNoter(Noter, OverRows):
    """Notes by the index alone."""


class BodyNoter(Noter, OverBodies):
    """Notes by what messages say."""


class Maker(Finder, Generic[Note]):
    """Makes findings of the notes of one scope."""

    noter: ClassVar[type[Noter]]

    def __init__(self, found: Telling, scope: Scope) -> None:
        super().__init__(found)
        self.scope = scope

    def make(self, row: int, note: Note) -> None:
        """The next note, of that row."""
        raise NotImplementedError
