"""The findings that the error codes of a response make, found once for equal ones."""

from typing import Final

from dissector.core.finding import Finding
from dissector.exchange.decoder import ExchangeDecoder
from dissector.exchange.finding_words import ERROR_RESPONSE
from dissector.index.indexer import Indexer

MOST: Final = 1 << 12


class ErrorFindings:
    """Findings of one capture, by API, version, and error codes."""

    def __init__(self, indexer: Indexer, decoder: ExchangeDecoder) -> None:
        self._table = indexer.table
        self._decoder = decoder
        self._found: dict[tuple[int, int, int], Finding | None] = {}

    def of(self, row: int, errors: int) -> Finding | None:
        """Return the only finding of a row of the index whose messages were written by the kernel; None where it has
        others. `errors` is what the kernel says of its error codes: `json_bodies.WrittenSide.errors`."""
        key = int(self._table.api_key.values[row]), int(self._table.version.values[row]), errors
        if key not in self._found:
            if len(self._found) >= MOST:
                self._found.clear()
            findings = self._decoder.exchange(row).findings
            self._found[key] = findings[0] if [each.code for each in findings] == [ERROR_RESPONSE] else None
        return self._found[key]
