"""Exchanges by row, decoded on demand. Those that are looked at one by one are kept for a while."""

import threading
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from dissector.capture_session.findings_pass import FindingsPass
from dissector.capture_session.row_space import RowSpace
from dissector.capture_session.stage_pipeline import StagePipeline
from dissector.core.arrays import Int64
from dissector.exchange.decoder import ExchangeDecoder
from dissector.exchange.model import Exchange

KEPT_EXCHANGES: Final = 256
"""Decoded exchanges that are kept: a screenful and more."""


class ExchangeCache:
    """Decodes rows, and adds the cross-message findings of each as far as they are found.

    `lock` is held while a row is decoded and completed: rows change their numbers at the end of reading. What is kept
    is not `complete`: the partitions of a fetch session take as long as there are many, and most rows are looked at for
    other things.
    """

    def __init__(
        self, pipeline: StagePipeline, rows: RowSpace, decoder: ExchangeDecoder, findings: FindingsPass,
        lock: threading.Lock,
    ) -> None:  # fmt: skip
        self._files = pipeline.files
        self._responses = pipeline.indexer.table.response
        self._rows = rows
        self._decoder = decoder
        self._findings = findings
        self._lock = lock
        self._cached = lru_cache(maxsize=KEPT_EXCHANGES)(self._decode)

    def clear(self) -> None:
        """Forget what was decoded."""
        self._cached.cache_clear()

    def exchange(self, row: int) -> Exchange:
        """One row, from the cache if nothing came to it since it was decoded."""
        with self._lock:
            return self._kept(row).complete()

    def exchange_for_now(self, row: int) -> Exchange:
        """The same, not `complete`: not to be kept."""
        with self._lock:
            return self._kept(row)

    def exchange_uncached(self, row: int) -> Exchange:
        """One row, decoded again; not kept."""
        with self._lock:
            return self._decode(row, 0, 0).complete()

    def _kept(self, row: int) -> Exchange:
        at = self._rows.index_row(row)
        response = int(self._responses.values[at]) if at >= 0 else 0
        return self._cached(row, response, self._findings.steps)

    def exchanges(self, rows: range | Int64) -> Iterator[Exchange]:
        """Rows in ascending order; none of them is kept. What is not `complete` is found while the capture is open."""
        entries, indexed = self._rows.split(rows)
        for row in entries:
            yield self._files.exchange(int(row))
        for at, exchange in zip(indexed, self._decoder.exchanges(indexed), strict=True):
            self._numbered(exchange, int(at))
            yield exchange

    def _decode(self, row: int, _response: int, _steps: int) -> Exchange:
        at = self._rows.index_row(row)
        if at < 0:
            return self._files.exchange(row)
        return self._numbered(self._decoder.exchange(at), at)

    def _numbered(self, exchange: Exchange, index_row: int) -> Exchange:
        """Add cross-message findings, and number the exchange behind the entries of files."""
        found = self._findings.of_index_row(index_row)
        if found:
            exchange.mark(found)
        if self._rows.files:
            fields = exchange.fields
            number, connection = fields.number + self._rows.entries, fields.connection + self._rows.files
            exchange.fields = fields._replace(number=number, connection=connection)
        return exchange
