"""Detectors that look at the same rows: of all connections and APIs, or of some.

Invariant: what a proxy injected is seen only by those that ask for it.
"""

from collections.abc import Sequence

import numpy as np

from dissector.core.arrays import Bool, Int64
from dissector.findings.framework.body_reader import BodyReader
from dissector.findings.framework.examined_rows import ExaminedRows
from dissector.findings.framework.extractor import Apis, Examiner
from dissector.findings.framework.injected_rows import InjectedRows
from dissector.index.exchange_table import ExchangeTable


class ExaminerGroup:
    """Examiners of all rows, or of some connections or APIs, that read the bodies of these once."""

    def __init__(
        self, examiners: Sequence[Examiner], bodies: BodyReader, injected: InjectedRows, *,
        connections: Bool | None = None, apis: Apis = None,
    ) -> None:  # fmt: skip
        self._examiners = examiners
        self._injected = injected
        self.bodies = bodies
        self._connections = connections
        """Which connections are examined; None for all of them."""
        self._apis = apis

    def rows(self, table: ExchangeTable, rows: Int64) -> Int64:
        """Return those of these rows that are examined."""
        if self._connections is not None:
            rows = rows[self._connections[table.connection.values[rows]]]
        return rows if self._apis is None else rows[np.isin(table.api_key.values[rows], sorted(self._apis))]

    def examine(self, rows: ExaminedRows, ended: ExaminedRows) -> None:
        """Examine rows; `ended` are those whose connection's end is known."""
        untouched = self._injected.untouched(rows)
        untouched_ended = untouched if ended is rows else self._injected.untouched(ended)
        for each in self._examiners:
            if not each.only_unanswered:
                each.examine_rows(rows if each.sees_injected else untouched)
        for each in self._examiners:
            if each.only_unanswered:
                each.examine_rows(untouched_ended)
        self.bodies.examine(untouched.with_request)
