"""Rows of a capture as columns. No frame is decoded, except for responses whose API has to be inferred."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

import numpy as np

from dissector.capture_session.findings_pass import FindingsPass
from dissector.capture_session.many_messages import ManyMessages
from dissector.capture_session.row_space import RowSpace
from dissector.capture_session.stage_pipeline import StagePipeline
from dissector.core.arrays import Bool, Int64
from dissector.core.process_memory import trim
from dissector.exchange.decoder import ExchangeDecoder
from dissector.exchange.listing import Cells, Listing
from dissector.exchange.row_field import Value
from dissector.exchange.row_fields import ROW_FIELDS
from dissector.index.exchange_table import NO_FRAME, RowKind
from dissector.index.index_columns import ENTRY, IndexColumns, index_columns

if TYPE_CHECKING:  # imported on use: a command needs few of them
    from dissector.exchange.index_rows import IndexRows


class ExchangeIndex:
    """Columns of rows. Rows are numbered as `RowSpace` says; those given in arrays are ascending."""

    def __init__(
        self, pipeline: StagePipeline, rows: RowSpace, decoder: ExchangeDecoder, findings: FindingsPass,
        messages: ManyMessages,
    ) -> None:  # fmt: skip
        self._pipeline = pipeline
        self._files = pipeline.files
        self._indexer = pipeline.indexer
        self._rows = rows
        self._decoder = decoder
        self._findings = findings
        self._messages = messages
        self._listing = Listing(pipeline.indexer, decoder)

    def is_complete(self, rows: Int64) -> Bool:
        """Which rows get nothing added any more, `(n,)`: they can be shown before reading ends."""
        complete = self._rows.is_entry(rows)
        complete[~complete] = self._indexer.is_complete(self._rows.index_rows(rows))
        return complete

    def columns(self, names: Sequence[str], rows: range | Int64) -> list[list[Value]]:
        """Values of row fields, a list for each name."""
        entries, indexed = self._rows.split(rows)
        exchanges = [self._files.exchange(int(row)) for row in entries]
        fields = [ROW_FIELDS[name] for name in names]
        columns: list[list[Value]] = [[field.from_exchange(exchange) for exchange in exchanges] for field in fields]
        if len(indexed):
            found = self._listing.columns(names, indexed)
            added = {"number": self._rows.entries, "connection": self._rows.files}
            for field, column, more in zip(fields, columns, found, strict=True):
                add = added.get(field.name, 0)
                column += [cast(int, value) + add for value in more] if add else more
        return columns

    def cells(self, names: Sequence[str], rows: range | Int64) -> list[Cells] | None:
        """The same without a Python object for each row; None where entries of files are among the rows."""
        return None if self._rows.entries else self._listing.cells(names, rows)

    def numbers(self, rows: Int64) -> IndexColumns:
        """What the index has of rows, as numbers. The size of an entry is in the column of requests."""
        trim()
        is_entry = self._rows.is_entry(rows)
        indexed = index_columns(self._indexer.table, self._indexer.frames, self._rows.index_rows(rows))
        indexed = indexed._replace(connection=indexed.connection + self._rows.files)
        if not is_entry.any():
            return indexed
        columns = []
        for name, column in zip(IndexColumns._fields, indexed, strict=True):
            none = -1 if name in ("api_key", "version", "response_size") else ENTRY if name == "kind" else 0
            whole = np.full(len(rows), none)
            whole[~is_entry] = column
            columns.append(whole)
        merged = IndexColumns(*columns)
        merged.request_size[is_entry] = self._files.sizes()[rows[is_entry]]
        merged.connection[is_entry] = [self._files.file_of(row) for row in rows[is_entry].tolist()]
        return merged

    def kinds(self) -> Int64:
        """The kinds of all rows, as in `numbers`, without the other columns."""
        return np.append(np.full(self._rows.entries, ENTRY), self._indexer.table.kind.values)

    def field_columns(self, rows: range | Int64, *, reads_messages: bool = False) -> "tuple[int, IndexRows]":
        """How many of these rows, which come first, are entries of files; and the others, as filters read them."""
        from dissector.exchange.index_rows import IndexRows

        entries, indexed = self._rows.split(rows)
        columns = IndexRows(
            self._indexer, self._decoder, indexed, self._findings, self._pipeline.start_ns, self._rows.entries,
            self._rows.files, self._messages.answers if reads_messages else None,
        )  # fmt: skip
        return len(entries), columns

    def apis(self, start: int, stop: int) -> set[int]:
        """The API keys of these rows, without decoding one; -1 where there is no request, or it is no exchange."""
        rows = self._rows.index_rows(np.arange(start, stop))
        table = self._indexer.table
        found = table.api_key.values[rows]
        has_key = (table.request.values[rows] != NO_FRAME) & (table.kind.values[rows] == RowKind.EXCHANGE)
        others = {-1} if not has_key.all() or len(rows) < stop - start else set[int]()
        return others.union(found[has_key].tolist())  # `np.unique` would import masked arrays

    def client_id(self, number: int) -> str | None:
        """The client id of that number in `IndexColumns`."""
        return self._indexer.client_ids.texts[number]

    def sizes(self, rows: Int64) -> Int64:
        """Bytes of each of some rows, ascending: of its two frames, or of its entry."""
        entries = self._rows.entries
        of_files = int(np.searchsorted(rows, entries))
        frames = self._decoder.costs(rows[of_files:] - entries)
        return np.concatenate((self._files.sizes()[rows[:of_files]], frames))
