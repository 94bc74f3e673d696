"""Row numbers and connection numbers of a capture, and how they map to those of the index.

Rows of a capture count from 0: first the entries of Kafka's own files, in the order of the files, then the rows of the
index. Connections of a capture count from 1: first Kafka's own files, one each, then the TCP connections. The index
counts both from 0 and knows nothing of files.
"""

import numpy as np

from dissector.core.arrays import Bool, Int64
from dissector.index.exchange_table import ExchangeTable
from dissector.storage import KafkaFiles


class RowSpace:
    """Both kinds of numbers, as far as the files are read."""

    def __init__(self, files: KafkaFiles, table: ExchangeTable) -> None:
        self._files = files
        self._table = table

    def __len__(self) -> int:
        return len(self._files) + len(self._table)

    @property
    def entries(self) -> int:
        """How many entries of files come before the first row of the index."""
        return len(self._files)

    @property
    def files(self) -> int:
        """How many files come before the first TCP connection."""
        return self._files.count

    def is_entry(self, rows: Int64) -> Bool:
        """Which rows are entries of files, `(n,)`."""
        are: Bool = rows < self.entries
        return are

    def index_row(self, row: int) -> int:
        """The row of the index; negative for an entry."""
        return row - self.entries

    def index_rows(self, rows: Int64) -> Int64:
        """The rows of the index among these, in their order."""
        return rows[rows >= self.entries] - self.entries

    def capture_rows(self, index_rows: Int64) -> Int64:
        """Rows of the index, as the capture numbers them."""
        return index_rows + self.entries

    def split(self, rows: range | Int64) -> tuple[range | Int64, range | Int64]:
        """The entries among rows; and the others, as rows of the index."""
        entries = self.entries
        if isinstance(rows, range):
            indexed = range(max(0, rows.start - entries), max(0, rows.stop - entries))
            return range(rows.start, min(rows.stop, entries)), indexed
        return rows[rows < entries], self.index_rows(rows)

    def index_connection(self, connection: int) -> int:
        """The TCP connection of the index; negative for a file."""
        return connection - 1 - self.files

    def index_connections(self, connections: Int64) -> Int64:
        """The same of many."""
        return connections - 1 - self.files

    def connection_of(self, row: int) -> int:
        """The connection of a row, as the capture numbers them."""
        at = self.index_row(row)
        if at < 0:
            return self._files.file_of(row)
        return int(self._table.connection.values[at]) + 1 + self.files

    def after_sort(self, rows: Int64) -> Int64:
        """The numbers that rows have since `Capture.read` sorted them, of rows as they were numbered before."""
        moved = self._table.rows_after_sort(np.maximum(rows - self.entries, 0)) + self.entries
        return np.where(self.is_entry(rows), rows, moved)
