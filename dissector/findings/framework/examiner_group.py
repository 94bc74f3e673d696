"""Examiners that examine the same rows, and read the bodies of these once for all of them."""

from collections.abc import Sequence

import numpy as np

from dissector.core.arrays import Bool, Int64
from dissector.findings.framework.body_reader import BodyReader
from dissector.findings.framework.examined_rows import ExaminedRows
from dissector.findings.framework.extractor import Apis, Examiner
from dissector.index.exchange_table import ExchangeTable


class ExaminerGroup:
    """Examiners of all rows, or of some connections or APIs."""

    def __init__(
        self, examiners: Sequence[Examiner], bodies: BodyReader, *, connections: Bool | None = None,
        apis: Apis = None,
    ) -> None:  # fmt: skip
        self._examiners = examiners
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
        for each in self._examiners:
            if not each.only_unanswered:
                each.examine_rows(rows)
        for each in self._examiners:
            if each.only_unanswered:
                each.examine_rows(ended)
        self.bodies.examine(rows.with_request)
