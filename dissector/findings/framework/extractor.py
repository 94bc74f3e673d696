"""Extractors examine rows of connections and emit observations, which aggregators fold into findings.

Invariants:
  * an extractor's observations on a connection do not depend on other connections, so that each connection can be
    examined in any process;
  * observations are plain values without numbers of rows or connections: they can be sent, and sorted by position.
"""

from collections.abc import Hashable, Set
from typing import Any, ClassVar, Final, Protocol

import numpy as np

from dissector.core.arrays import Bool
from dissector.core.columns import unique
from dissector.findings.framework.context import FindingContext
from dissector.findings.framework.decoded_exchange import DecodedExchange, RowPosition
from dissector.findings.framework.examined_rows import ExaminedRows
from dissector.findings.framework.fetched_partitions import FetchedPartitions
from dissector.findings.framework.produce_batches import ProduceBatches
from dissector.findings.framework.recurrence import MAX_KEYS
from dissector.protocol.schema.api_keys import ApiKey

Scope = tuple[str | int, ...]
"""The subject of findings. Observations of different scopes are independent."""
Apis = frozenset[int] | None
"""APIs; None for rows of all kinds."""
NO_API: Final = frozenset[int]()
ONE_PER_SCOPE: Final[Hashable] = None
"""The key of a finding that is reported once for a scope."""


class Examiner:
    """Examines each row once, in the order of the index as far as rows are complete."""

    apis: ClassVar[frozenset[int]] = frozenset()
    """The APIs whose decoded exchanges it examines."""
    examines_batches: ClassVar[bool] = False
    """Whether it examines the batches of Produce requests."""
    examines_fetches: ClassVar[bool] = False
    """Whether it examines the partitions of Fetch exchanges."""
    any_error: ClassVar[bool] = False
    """Whether it also examines exchanges of any API whose response has an error or was throttled."""
    only_unanswered: ClassVar[bool] = False
    """Whether it needs only requests without a response, and how their connections ended."""
    sees_injected: ClassVar[bool] = False
    """Whether it gets the rows that a proxy interfered with (`injected_rows`)."""

    @property
    def examined_apis(self) -> frozenset[int]:
        """The APIs whose bodies it examines, errors apart."""
        batches = frozenset((ApiKey.PRODUCE,)) if self.examines_batches else NO_API
        fetches = frozenset((ApiKey.FETCH,)) if self.examines_fetches else NO_API
        return self.apis | batches | fetches

    @property
    def examines_any_row(self) -> bool:
        """Whether it may examine rows of any API."""
        return self.any_error or type(self).examine_rows is not Examiner.examine_rows

    def examine_rows(self, rows: ExaminedRows) -> None:
        """Examine the next rows of the index."""

    def examine_batches(self, batches: ProduceBatches) -> None:
        """Examine the batches of the next Produce requests; called after `examine_rows` of their rows, and before
        `examine_exchange`."""

    def examine_fetches(self, fetched: FetchedPartitions) -> None:
        """Examine the partitions of the next Fetch exchanges; called when `examine_batches` would be."""

    def needed(self, rows: ExaminedRows, is_clean: Bool) -> Bool:
        """Return which of these next exchanges of `apis` it examines; the clean ones surely have no error. It may get
        others as well. Exchanges with errors always come."""
        return np.ones(len(is_clean), np.bool_)

    def examine_exchange(self, exchange: DecodedExchange) -> None:
        """Examine the next exchange of `apis`, or with an error; called after `examine_rows` of its row."""

    def retain(self, connections: Set[int]) -> None:
        """Get ready for a checkpoint: no row of another connection than these follows."""


class ObservationSink(Protocol):
    """Takes observations."""

    def add(self, extractor: "type[Extractor]", scope: Scope, row: int, position: RowPosition, value: Any) -> None:
        """Take an observation. Those of a scope come in the order of rows."""


class Extractor(Examiner):
    """Emits observations for aggregators."""

    max_scopes: ClassVar[int] = MAX_KEYS
    """Maximum scopes with aggregators at a time, if observations are aggregated as they come."""

    def __init__(self, context: FindingContext, sink: ObservationSink) -> None:
        self.context = context
        self._add = sink.add

    def needed_apis(self, rows: ExaminedRows, is_clean: Bool) -> Apis:
        """Return the APIs whose rows it needs for all that it may observe about these rows; those that are clean have
        no error and were not throttled. Observations of an error are of a scope of that API."""
        of_rows = frozenset(unique(rows.api_key).tolist())
        of_errors = frozenset(unique(rows.api_key[~is_clean]).tolist()) if self.any_error else NO_API
        examined = self.examined_apis
        return of_errors | examined if of_rows & examined else of_errors

    def observe(self, scope: Scope, row: int, position: RowPosition, value: Hashable) -> None:
        """Emit an observation."""
        self._add(type(self), scope, row, position, value)
