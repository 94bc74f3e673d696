"""Build all timelines of a capture that has been read, in one pass with steps, so that a screen can draw, and stop.

Only exchanges of relevant APIs are decoded; Produce requests only of client ids that take part in transactions.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np

from dissector.analysis.group_pass import GroupPass
from dissector.analysis.timelines.group_timelines import FIND_COORDINATOR, GroupTimelines
from dissector.analysis.timelines.timeline import Timeline
from dissector.analysis.timelines.transaction_timelines import TransactionTimelines
from dissector.capture_session import Capture
from dissector.core.arrays import Int64
from dissector.protocol.schema.loader import api_named

ROWS_PER_STEP: Final = 1 << 16
"""Rows of the index read together."""
EXCHANGES_PER_STEP: Final = 128
"""Exchanges decoded in one step."""
_TRANSACTIONAL: Final = ("AddPartitionsToTxn", "AddOffsetsToTxn", "TxnOffsetCommit", "EndTxn")


class TimelineProgress(NamedTuple):
    """Decoded exchanges of all that are to be decoded."""

    done: int
    total: int


class TimelinePass:
    """Builds the timelines of a capture."""

    def __init__(self, capture: Capture) -> None:
        self._capture = capture
        self._groups = GroupTimelines()
        self._transactions = TransactionTimelines()
        self._histories = GroupPass(capture)

    @property
    def groups(self) -> list[Timeline]:
        """Timelines of groups, in the order of their first events; without those of coordinator lookups alone."""
        return [timeline for timeline in self._groups.timelines.values() if not timeline.is_only(FIND_COORDINATOR)]

    @property
    def transactions(self) -> list[Timeline]:
        """Timelines of transactional ids, in the order of their first events."""
        return list(self._transactions.timelines.values())

    def steps(self) -> Iterator[TimelineProgress]:
        """Read the capture; the timelines are complete after the last step."""
        rows = self._rows()
        for _ in self._histories.steps() if len(rows) else ():
            yield TimelineProgress(0, len(rows))
        self._groups.divided = self._histories.divided
        for start in range(0, len(rows), EXCHANGES_PER_STEP):
            for exchange in self._capture.at(rows[start : start + EXCHANGES_PER_STEP]):
                self._groups.add(exchange)
                self._transactions.add(exchange)
            yield TimelineProgress(min(start + EXCHANGES_PER_STEP, len(rows)), len(rows))
        self._groups.explain(self._histories.histories)

    def _rows(self) -> Int64:
        """Return the relevant rows, ascending."""
        relevant = _keys(*(self._groups.apis | self._transactions.apis) - {"Produce"})
        transactional, produce = _keys(*_TRANSACTIONAL), _keys("Produce")
        rows, produced, ids = [_NONE], [_NONE], [_NONE]
        clients = [_NONE]
        for start in range(0, len(self._capture), ROWS_PER_STEP):
            some = np.arange(start, min(start + ROWS_PER_STEP, len(self._capture)))
            found = self._capture.index.numbers(some)
            asks = found.is_exchange & (found.request_size >= 0)
            rows.append(some[asks & np.isin(found.api_key, relevant)])
            ids.append(np.unique(found.client_id[asks & np.isin(found.api_key, transactional)]))
            produces = asks & np.isin(found.api_key, produce)
            produced.append(some[produces])
            clients.append(found.client_id[produces])
        ours = np.isin(np.concatenate(clients), np.concatenate(ids))
        return np.sort(np.concatenate((*rows, np.concatenate(produced)[ours])))


_NONE: Final = np.zeros(0, np.int64)


def _keys(*names: str) -> Int64:
    return np.array([known.key for name in names if (known := api_named(name)) is not None], np.int64)
