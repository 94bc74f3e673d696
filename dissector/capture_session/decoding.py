"""Rows of a capture, decoded on demand. Those that somebody looks at are kept for a while, others are not."""

from collections.abc import Iterator
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Final

from dissector.capture_session.indexed import Indexed
from dissector.core.arrays import Int64
from dissector.core.finding import Severity
from dissector.exchange.model import Exchange, ExchangeRow

if TYPE_CHECKING:
    from functools import _lru_cache_wrapper

KEPT_EXCHANGES: Final = 256
"""Decoded exchanges kept for who looks at the same rows again: a screenful and more."""


class Decoding(Indexed):
    """Exchanges by row, from 0."""

    @cached_property
    def _look(self) -> "_lru_cache_wrapper[Exchange]":
        return lru_cache(maxsize=KEPT_EXCHANGES)(self._exchange)

    def close(self) -> None:
        """Let go of the files. Exchanges that were decoded before stay readable."""
        self._look.cache_clear()
        super().close()

    def _finish(self, *, settled: bool) -> None:
        super()._finish(settled=settled)
        self._look.cache_clear()

    def exchange(self, number: int) -> Exchange:
        """Row `number`, from 0, decoded on demand."""
        return self._look(number, self._answered_by(number))

    def between(self, start: int, stop: int) -> Iterator[Exchange]:
        """The exchanges from row `start`, from 0, to before `stop`, once all is read; none of them is kept."""
        return self.at(range(start, stop))

    def at(self, rows: range | Int64) -> Iterator[Exchange]:
        """The exchanges of these rows, from 0 and ascending; none of them is kept."""
        stored, indexed = self._parted(rows)
        for number in stored:
            yield self._files.exchange(int(number))
        for row, exchange in zip(indexed, self._lookup.exchanges(indexed), strict=True):
            self._mark(exchange, int(row))
            if len(self._files):
                self._count_files(exchange)
            yield exchange

    def row(self, number: int) -> ExchangeRow:
        """Row `number`, from 0, for a list; its frames are decoded for the words."""
        return self.exchange(number).row

    def is_trouble(self, number: int) -> bool:
        """Whether a row has a finding that is a warning or worse."""
        return self._exchange(number).row.severity in (Severity.WARNING, Severity.ERROR)

    def _answered_by(self, number: int) -> int:
        """The frame that answers a row: what was decoded before it came is not what is there now."""
        entries = len(self._files)
        return int(self._session.table.response.values[number - entries]) if number >= entries else 0

    def _exchange(self, number: int, answered_by: int = 0) -> Exchange:
        entries = len(self._files)
        if number < entries:
            return self._files.exchange(number)
        with self._lock:
            exchange = self._mark(self._lookup.exchange(number - entries), number - entries)
        if entries:
            self._count_files(exchange)
        return exchange

    def _count_files(self, exchange: Exchange) -> None:
        """Let the row of an exchange stand behind the entries of files."""
        facts = exchange.facts
        number, connection = facts.number + len(self._files), facts.connection + self._files.count
        exchange.facts = facts._replace(number=number, connection=connection)

    def _mark(self, exchange: Exchange, _row: int) -> Exchange:
        """Add what rows around it tell about a row of the index, as far as anybody looked."""
        return exchange
