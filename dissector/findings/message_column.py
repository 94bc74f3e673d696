"""The findings that rows have as soon as they are decoded, as a column: two bytes a row stand for their codes, the
gravest severity, the errors. What the examination finds is in `framework.open_findings`.

Of rows that are equal in every error code, and that need no careful look, one is decoded. A row with compressed records
that do not open needs one: it says why they are masked.

Invariants:
  * the column has what decoding the row gives: a property test;
  * 0 is for rows that were not looked at yet: whoever needs one of them decodes it. It stays with rows to which
    something may be added;
  * one thread writes at a time; a forked process has a column of its own, as a mapped one is shared with the parent.
"""

import os
import threading
from collections.abc import Iterable, Iterator
from functools import reduce
from typing import Final

import numpy as np

from dissector.bulk.body_columns import BodyColumns, Messages
from dissector.bulk.decompressed_sections import SectionFilter
from dissector.bulk.field_keys import FieldKeys, no_column
from dissector.core.arrays import Int64
from dissector.core.columns import Column, ValueNumbers
from dissector.core.finding import Finding
from dissector.core.store import Store
from dissector.exchange.decoder import ExchangeDecoder
from dissector.exchange.message_subjects import ERROR
from dissector.exchange.model import ExchangeMessage
from dissector.findings.summary import NO_FINDINGS, UNKNOWN, FindingKind, FindingSummary
from dissector.index.exchange_table import NO_FRAME, Flag, RowKind
from dissector.index.indexer import Indexer
from dissector.protocol.codec.program import ColumnPlan
from dissector.protocol.kernel.shredding import Shredded
from dissector.protocol.schema.field_names import ERROR_CODES

TOGETHER: Final = 1 << 13
"""Rows whose messages are read together."""
STEP: Final = 64
"""Rows that are decoded between two reports of progress."""
SUMMARIES: Final = 1 << 16
PAIRS: Final = 1 << 18
"""Of a request and its response, each as far as findings depend on it."""
NOT_EXPECTED, MISSING, RESPONSES = 0, 1, 2
"""In place of a response: none is sent, none was captured. From `RESPONSES` on, numbers stand for responses."""
NO_PAIR: Final = -1
_RECORDS: Final = "records"


class MessageFindingColumn:
    """Of one capture, which may still grow."""

    def __init__(self, index: Indexer, store: Store, decoder: ExchangeDecoder) -> None:
        self._index = index
        self._decoder = decoder
        bodies = BodyColumns(index, store, show_secrets=decoder.shows_secrets)
        self._requests = FieldKeys(bodies, no_column, values=_has_records, is_request=True)
        self._responses = FieldKeys(bodies, _is_error, values=_has_records, is_request=False)
        self._unopened = None if decoder.shows_secrets else SectionFilter(lambda plain: plain is None)
        self._pairs: dict[int, int] = {}
        """Number of the summary, by the numbers of the request and the response."""
        self._numbers = Column(np.uint16)
        self._summaries: ValueNumbers[FindingSummary] = ValueNumbers()
        self._summaries.of(UNKNOWN)
        self._summaries.of(NO_FINDINGS)
        self._process = os.getpid()
        self._writing = threading.Lock()

    @property
    def is_of_this_process(self) -> bool:
        """Whether it may be written to: a process that was forked makes one of its own."""
        return self._process == os.getpid()

    @property
    def summaries(self) -> list[FindingSummary]:
        """What each number stands for."""
        return self._summaries.values

    def of(self, rows: Int64) -> Int64:
        """The numbers of rows, `(n,)`; 0 where they were not looked at."""
        return self._numbers.at(rows)

    def fill(self, rows: Int64, *, final: bool) -> Iterator[int]:
        """Look at those of these rows that were not looked at yet, step by step: how many of the rows are done. Rows to
        which something may be added are left out, unless the capture is `final`."""
        for first in range(0, len(rows), TOGETHER):
            with self._writing:
                self._numbers.grow(len(self._index.table))
                some = self._pending(rows[first : first + TOGETHER], final=final)
                pairs = self._pairs_of(some)
            yield first
            different, at = np.unique(pairs, return_index=True)
            is_new = [pair != NO_PAIR and pair not in self._pairs for pair in different.tolist()]
            for _ in self._decode(some[np.sort(at[is_new])], final=final):
                yield first
            with self._writing:
                self._learn(different[is_new], some[at[is_new]])
                known = np.array([self._pairs.get(pair, 0) for pair in different.tolist()], np.uint16)
                self._numbers.values[some] = known[np.searchsorted(different, pairs)]
            for _ in self._decode(some[self.of(some) == 0], final=final):
                yield first

    def _pending(self, rows: Int64, *, final: bool) -> Int64:
        rows = rows[self.of(rows) == 0]
        if final:
            return rows
        table = self._index.table
        orphans = (table.kind.values[rows] == RowKind.EXCHANGE) & (table.request.values[rows] == NO_FRAME)
        complete: Int64 = rows[self._index.is_complete(rows) & ~orphans]
        return complete

    def _pairs_of(self, rows: Int64) -> Int64:
        """Numbers for what findings depend on in rows, `(n,)`; `NO_PAIR` for those that must be decoded."""
        table = self._index.table
        asked = self._messages(self._requests, rows)
        answered = self._messages(self._responses, rows) + RESPONSES
        missing = table.response.values[rows] == NO_FRAME
        is_expected = (table.flags.values[rows[missing]] & Flag.NO_RESPONSE_EXPECTED) == 0
        answered[missing] = np.where(is_expected, MISSING, NOT_EXPECTED)
        pairs: Int64 = np.where((asked > 0) & (answered != RESPONSES), asked << 32 | answered, NO_PAIR)
        return pairs

    def _messages(self, keys: FieldKeys, rows: Int64) -> Int64:
        """Numbers for what findings depend on in messages, `(n,)`; 0 for those that must be decoded."""
        is_unopened = np.zeros(len(rows), np.bool_)

        def visit(messages: Messages, part: Shredded) -> None:
            for number, column in messages.program.values:
                if column.type == _RECORDS and self._unopened is not None:
                    found = part.column(number)
                    some = found.values > 0
                    of = part.first + found.rows[some].astype(np.int64)
                    addresses = messages.frames.addresses[of] + found.positions[some].astype(np.uint64)
                    is_unopened[messages.at[of[self._unopened.of(addresses, found.values[some])]]] = True

        numbers = keys.numbers(rows, visit)
        numbers[is_unopened] = 0
        return numbers

    def _learn(self, pairs: Int64, rows: Int64) -> None:
        """Remember what rows that were decoded have, by their pairs."""
        if len(self._pairs) + len(pairs) > PAIRS:
            self._pairs.clear()
        self._pairs.update(zip(pairs.tolist(), self.of(rows).tolist(), strict=True))

    def _decode(self, rows: Int64, *, final: bool) -> Iterator[None]:
        """Decode rows, step by step."""
        for first in range(0, len(rows), STEP):
            with self._writing:
                some = rows[first : first + STEP]
                for row, exchange in zip(some.tolist(), self._decoder.exchanges(some), strict=True):
                    if final or exchange.response is None or _is_whole(exchange.response):
                        self._numbers.values[row] = self._summary(exchange.findings, ERROR.of(exchange))
            yield

    def _summary(self, findings: list[Finding], errors: Iterable[object] = ()) -> int:
        """The number for what a row has; 0 where there are too many different ones."""
        kinds = tuple(sorted(FindingKind(each.code, each.severity) for each in findings))
        summary = reduce(FindingSummary.with_finding, findings, FindingSummary(errors=frozenset(errors), kinds=kinds))
        return self._summaries.of(summary) if len(self.summaries) < SUMMARIES else 0


def _is_error(_api_key: int, column: ColumnPlan) -> bool:
    """Whether a column of a response has error codes."""
    return column.path[0] == "body" and column.name in ERROR_CODES


def _has_records(_api_key: int, column: ColumnPlan) -> bool:
    return column.type == _RECORDS


def _is_whole(message: ExchangeMessage) -> bool:
    return message.size == message.whole == len(message.data)
