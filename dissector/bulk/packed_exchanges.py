"""Exchanges for tables, many at once: both messages as JSON, with bytes of records or their heads.

Invariant: what is given of a row is what its `Exchange` has (a property test). A row that needs a careful look is left
out: one with a finding of its own that is not about its error codes or the lack of a response, or with a message that
the kernel leaves to Python.
"""

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

import numpy as np

from dissector.bulk.error_findings import ErrorFindings
from dissector.bulk.held_messages import HeldMessages
from dissector.bulk.json_bodies import JsonBodies, TextPart, are_whole
from dissector.bulk.unanswered_requests import UnansweredRequests
from dissector.core.arrays import Int64
from dissector.core.finding import Finding
from dissector.exchange.decoder import ExchangeDecoder
from dissector.index.indexer import Indexer
from dissector.protocol.kernel.json_messages import RecordsForm

_END: Final = np.frombuffer(b"}", np.uint8)


class Texts(NamedTuple):
    """The JSON of some messages: one behind the other, and the size of each, `(n,)`."""

    data: memoryview
    sizes: Int64


class PackedBodies(NamedTuple):
    """Rows that need no careful look: their places among those that were asked for, `(n,)`, and what they have."""

    at: Int64
    requests: Texts
    responses: Texts
    """Empty where there is none."""
    lone: list[tuple[int, Finding]]
    """Of each one without a response: its place among the others, and the finding about that."""
    errors: list[tuple[int, int, Finding]]
    """Of each one with an error: its place among the others, the error code, and the finding about that."""


class PackedExchanges:
    """The exchanges of one capture; `kept` says whether messages have the bytes of their records."""

    def __init__(
        self, indexer: Indexer, messages: HeldMessages, decoder: ExchangeDecoder, is_ended: Callable[[int], bool], *,
        kept: bool,
    ) -> None:  # fmt: skip
        self._messages = messages
        self._lone = UnansweredRequests(indexer, is_ended)
        self._bodies = JsonBodies(indexer, messages, decoder, RecordsForm.PACKED if kept else RecordsForm.HEADS)
        self._error_findings = ErrorFindings(indexer, decoder)

    def steps(self, rows: Int64) -> Iterator[Int64]:
        """Rows of the index in parts whose bodies are in memory at once."""
        return self._bodies.steps(rows)

    def bodies(self, rows: Int64) -> Iterator[tuple[Int64, PackedBodies]]:
        """Yield rows of one step, ascending, and their messages: all together, unless the partitions of their fetch
        sessions, which few bytes stand for, are too many. The messages are held until the next step."""
        self._messages.hold(rows)
        requests, responses = self._bodies.written(rows)
        lack_response = self._lone.lack_response(rows)
        is_whole = are_whole(requests, responses, lack_response)
        found: dict[int, Finding] = {}
        for place in np.flatnonzero(is_whole & (responses.errors != 0)).tolist():
            finding = self._error_findings.of(int(rows[place]), int(responses.errors[place]))
            if finding is None:
                is_whole[place] = False
            else:
                found[place] = finding
        at = np.flatnonzero(is_whole)
        begin = 0
        for some, made in self._bodies.requests(rows, requests, at, copied=True):
            stop = int(at[some.stop]) if some.stop < len(at) else len(rows)
            of = at[some]
            request, request_sizes = self._bodies.joined([*made, TextPart.constant(_END, len(of))])
            response, response_sizes = self._bodies.joined([self._bodies.responses(responses, of)])
            codes = responses.codes
            errors = [
                (int(np.searchsorted(of, place)), int(codes[place]), each)
                for place, each in found.items()
                if begin <= place < stop
            ]
            places = np.flatnonzero(lack_response[of])
            lone = list(zip(places.tolist(), self._lone.findings(rows[of[places]]), strict=True))
            texts = Texts(request, request_sizes), Texts(response, response_sizes)
            yield rows[begin:stop], PackedBodies(of - begin, *texts, lone, errors)
            begin = stop
