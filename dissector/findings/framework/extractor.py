"""Extractors: they see the rows of connections and emit observations, which aggregators make findings of.

Invariants:
  * what an extractor observes on a connection does not depend on other connections: so these can be examined apart, in
    any process;
  * observations are plain values without numbers of rows or connections: they can be sent, and sorted by position.
"""

from collections.abc import Hashable
from typing import Any, ClassVar, Final, Protocol

from dissector.findings.framework.context import FindingContext
from dissector.findings.framework.decoded_exchange import DecodedExchange, RowPosition
from dissector.findings.framework.examined_rows import ExaminedRows
from dissector.findings.framework.recurrence import MAX_KEYS

Scope = tuple[str | int, ...]
"""What findings are about. Observations of different scopes have nothing to do with each other."""
ONE_PER_SCOPE: Final[Hashable] = None
"""The key of what is reported once for a scope."""


class Examiner:
    """Sees each row once, in the order of the index as far as rows are complete."""

    apis: ClassVar[frozenset[int]] = frozenset()
    """The APIs whose exchanges it sees decoded."""
    any_error: ClassVar[bool] = False
    """Whether it also sees the exchanges of any API whose response has an error or was throttled."""
    only_unanswered: ClassVar[bool] = False
    """Whether it needs nothing but requests without a response, and how their connections ended."""

    def examine_rows(self, rows: ExaminedRows) -> None:
        """Examine the next rows of the index."""

    def examine_exchange(self, exchange: DecodedExchange) -> None:
        """Examine the next exchange that is of `apis`, or has an error; after `examine_rows` of its row."""


class ObservationSink(Protocol):
    """Takes observations."""

    def add(self, extractor: "type[Extractor]", scope: Scope, row: int, position: RowPosition, value: Any) -> None:
        """Take one observation. Those of a scope come in the order of rows."""


class Extractor(Examiner):
    """Observes what aggregators need."""

    max_scopes: ClassVar[int] = MAX_KEYS
    """How many scopes are remembered where observations of all are aggregated as they come."""

    def __init__(self, context: FindingContext, sink: ObservationSink) -> None:
        self.context = context
        self._add = sink.add

    def observe(self, scope: Scope, row: int, position: RowPosition, value: Hashable) -> None:
        """Emit an observation."""
        self._add(type(self), scope, row, position, value)
