"""Exchanges for tables, many at once: both messages as JSON, with bytes in place of records, and the records.

Invariant: what is given of a row is what its `Exchange` has (a property test). A row that needs a careful look is left
out: one without a response, with an error code, or with a message that the kernel leaves to Python.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np

from dissector.core.arrays import Int64
from dissector.core.store import Store
from dissector.exchange.decoder import ExchangeDecoder
from dissector.exchange.json_bodies import JsonBodies, TextPart, are_whole
from dissector.exchange.record_columns import CarriedColumns, RecordsOfRows
from dissector.index.indexer import Indexer

_END: Final = np.frombuffer(b"}", np.uint8)


class Texts(NamedTuple):
    """The JSON of some messages: one behind the other, and the size of each, `(n,)`."""

    data: bytes
    sizes: Int64


class WholeExchanges:
    """The exchanges of one capture."""

    def __init__(self, indexer: Indexer, store: Store, decoder: ExchangeDecoder) -> None:
        self._indexer = indexer
        self._bodies = JsonBodies(indexer, store, decoder, packs_records=True)
        self._records = RecordsOfRows(self._bodies.columns)

    def steps(self, rows: Int64) -> Iterator[Int64]:
        """Rows of the index in parts whose bodies are in memory at once."""
        return self._bodies.steps(rows)

    def bodies(self, rows: Int64) -> tuple[Int64, Texts, Texts]:
        """The places of those rows of the index, ascending, of one step, that need no careful look; and their requests
        and responses."""
        requests, responses = self._bodies.written(rows)
        at = np.flatnonzero(are_whole(requests, responses) & (responses.errors == 0))
        end = TextPart.constant(_END, len(at))
        request = self._bodies.joined([*self._bodies.requests(rows, requests, at), end])
        return at, Texts(*request), Texts(*self._bodies.joined([self._bodies.responses(responses, at)]))

    def records(self, rows: Int64) -> Iterator[CarriedColumns]:
        """The records of rows of the index, ascending: valid until the next."""
        return self._records.of(rows, self._indexer.conversation_state.topic_names)
