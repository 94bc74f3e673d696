"""The JSON lines of many rows at once: `to_json.json_line` without an `Exchange` for each row.

The kernel writes both messages from their bytes; what the row has besides comes from columns of the index.

Invariant: a line is that of `to_json` (a property test); empty where a row has to be decoded, as the kernel leaves a
message to Python, or has a finding of its own that is not about its error codes or the lack of a response.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import cache, lru_cache
from typing import Final, NamedTuple

import numpy as np

from dissector.bulk.body_columns import BodyColumns
from dissector.bulk.cell_lines import CellColumn, cell_lines
from dissector.bulk.error_findings import ErrorFindings
from dissector.bulk.json_bodies import JsonBodies, TextPart, are_whole
from dissector.bulk.unanswered_requests import UnansweredRequests
from dissector.core.arrays import Int64
from dissector.core.finding import Finding
from dissector.core.json_text import dumps
from dissector.core.store import Store
from dissector.exchange.decoder import ExchangeDecoder
from dissector.exchange.listing import EMPTY, NUMBER, TEXT, Cells, Listing
from dissector.exchange.row_field import Value
from dissector.exchange.row_fields import row_fields
from dissector.exchange.silence_causes import without_repetition
from dissector.exchange.to_json import finding_object, tls_object
from dissector.index.indexer import Indexer

_BETWEEN: Final = np.frombuffer(b'},"response":', np.uint8)
"""Behind a request without its last brace, in front of a response."""
_BEFORE_REQUEST: Final = b'"request":'
_NO_FINDINGS: Final = b',"findings":[]}\n'
_NULL: Final = b"null"


class JsonText(NamedTuple):
    """The lines of rows, as one text in pieces, which can be read once."""

    pieces: Iterator[memoryview]
    ends: Int64
    """By row: where its line ends, `(n,)`. A row that needs a careful look has an empty one."""

    @property
    def careful(self) -> Int64:
        """The rows that need a careful look, by their places."""
        return np.flatnonzero(np.diff(self.ends, prepend=0) == 0)

    def parts(self) -> Iterator[memoryview | None]:
        """The text, with None in the place of each row that needs a careful look."""
        places = self.ends[self.careful].tolist()
        places.reverse()
        end = 0
        for piece in self.pieces:
            start, end = end, end + len(piece)
            at = start
            while places and (places[-1] < end or end == start == places[-1]):
                if places[-1] > at:
                    yield piece[at - start : places[-1] - start]
                    at = places[-1]
                places.pop()
                yield None
            if at < end:
                yield piece[at - start :]
        for _ in places:
            yield None


class JsonLines:
    """The lines of one capture."""

    def __init__(
        self, indexer: Indexer, store: Store, decoder: ExchangeDecoder, is_ended: Callable[[int], bool]
    ) -> None:
        self._indexer = indexer
        self._decoder = decoder
        self._lone = UnansweredRequests(indexer, is_ended)
        columns = BodyColumns(indexer, store, show_secrets=decoder.shows_secrets)
        self._bodies = JsonBodies(indexer, columns, decoder)
        self._bodies.make_programs()
        self._listing = Listing(indexer, decoder)
        self._error_findings = ErrorFindings(indexer, decoder)

    def steps(self, rows: Int64) -> Iterator[Int64]:
        """Rows of the index in parts of which the lines are in memory at once."""
        return self._bodies.steps(rows)

    def lines(
        self, rows: Int64, first_number: int, first_connection: int, marks: Mapping[int, list[Finding]]
    ) -> Iterator[JsonText]:
        """Yield the lines of rows of the index, ascending, of one step, some at a time; with these cross-message
        findings of some, by place. The first row of the index and its first connection have these numbers, from 0, in
        the capture."""
        requests, responses = self._bodies.written(rows)
        lack_response = self._lone.lack_response(rows)
        is_there = are_whole(requests, responses, lack_response)
        lone = np.flatnonzero(is_there & lack_response)
        findings = self._findings(rows, np.where(is_there, responses.errors, 0), lone, marks)
        is_there[[place for place, text in findings.items() if text is None]] = False
        at = np.flatnonzero(is_there)
        begin = 0
        for some, request in self._bodies.requests(rows, requests, at):
            end = int(at[some.stop]) if some.stop < len(at) else len(rows)
            others = {place: text for place, text in findings.items() if begin <= place < end and is_there[place]}
            of = at[some]
            pieces, sizes = self._bodies.pieces([
                self._heads(rows[of], first_number, first_connection), *request, TextPart.constant(_BETWEEN, len(of)),
                self._bodies.responses(responses, of),
                TextPart.some(of, dict.fromkeys(of[lack_response[of]].tolist(), _NULL)),
                TextPart.some(of, {place: text or b"" for place, text in others.items()}, _NO_FINDINGS),
            ])  # fmt: skip
            ends = np.zeros(end - begin, np.int64)
            ends[of - begin] = sizes
            yield JsonText(pieces, np.cumsum(ends))
            begin = end

    def _heads(self, rows: Int64, first_number: int, first_connection: int) -> TextPart:
        """What of lines is in front of their messages."""
        head = _head()
        added = {"number": first_number, "connection": first_connection}
        columns = [
            _column(before, cells, added.get(name, 0))
            for before, name, cells in zip(head.before, head.names, self._listing.cells(head.names, rows), strict=True)
        ]
        return TextPart.lines(cell_lines([*columns, self._tls(rows)], _BEFORE_REQUEST))

    def _tls(self, rows: Int64) -> CellColumn:
        """The member of each line that has the TLS of its connection, empty for one that is not encrypted."""
        connections, which = np.unique(self._indexer.table.connection.values[rows], return_inverse=True)
        objects = [tls_object(self._decoder.tls_session(each)) for each in connections.tolist()]
        members = [dumps(each)[1:-1] + b"," if each else b"" for each in objects]
        return CellColumn(b",", which, np.full(len(rows), TEXT, np.uint8), members)

    def _findings(
        self, rows: Int64, errors: Int64, lone: Int64, marks: Mapping[int, list[Finding]]
    ) -> dict[int, bytes | None]:
        """What of lines is behind their messages, by place, for those that have findings: the one that the error codes
        of a response make, or that `lone` requests have, then those that only several messages show. None where there
        are others."""
        found: dict[int, bytes | None] = {at: _findings_text(tuple(marked)) for at, marked in marks.items()}
        for at in np.flatnonzero(errors).tolist():
            error = self._error_findings.of(int(rows[at]), int(errors[at]))
            found[at] = None if error is None else _findings_text((error, *marks.get(at, ())))
        for at, finding in zip(lone.tolist(), self._lone.findings(rows[lone]), strict=True):
            marked = marks.get(at, [])
            found[at] = _findings_text((*without_repetition([finding], marked), *marked))
        return found


@lru_cache(maxsize=4096)
def _findings_text(findings: tuple[Finding, ...]) -> bytes:
    return b"".join((b',"findings":', dumps(list(map(finding_object, findings))), b"}\n"))


def _column(before: bytes, cells: Cells, added: int) -> CellColumn:
    """The values of a row field as JSON."""
    values, is_empty = cells.values + np.where(cells.kinds == NUMBER, added, 0), cells.kinds == EMPTY
    values[is_empty] = len(cells.texts)
    return CellColumn(before, values, np.where(is_empty, TEXT, cells.kinds), [*map(_quoted, cells.texts), _NULL])


@lru_cache(maxsize=4096)
def _quoted(value: Value) -> bytes:
    return dumps(value)


class _Head:
    """What of a line is in front of its messages."""

    def __init__(self) -> None:
        fields = [field for field in row_fields() if field.json_key]
        self.names = tuple(field.name for field in fields)
        keys = [f',"{field.json_key}":'.encode() for field in fields]
        self.before = (b"{" + keys[0][1:], *keys[1:])
        """What is in front of each value."""


@cache
def _head() -> _Head:
    return _Head()
