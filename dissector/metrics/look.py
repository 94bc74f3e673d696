"""What is counted of the rows of one look: by columns where these tell it, row by row where a message needs a careful
look.

Invariant: what is found is what the decoded exchanges of these rows say (a test on all recordings).
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np

from dissector.bulk.subject_columns import UNREAD, Subjects, subjects_of
from dissector.capture_session import Capture
from dissector.capture_session.many_messages import ManyMessages
from dissector.core.arrays import Bool, Int64
from dissector.core.columns import ValueNumbers, distinct, tuples
from dissector.core.grouping import by_distinct
from dissector.exchange.message_subjects import ERROR
from dissector.exchange.model import Exchange
from dissector.exchange.row_fields import EXCHANGE, error_names
from dissector.exchange.silence_causes import without_repetition
from dissector.findings.summary import FindingKind, FindingSummary
from dissector.index.exchange_table import KIND_NAMES
from dissector.index.index_columns import IndexColumns
from dissector.protocol.schema.loader import api_name

_VERSIONS: Final = 1 << 16
_LEAST_VERSION: Final = -(1 << 15)
"""A version is an INT16."""


class MeasuredApi(NamedTuple):
    """An API in a version, as labels have them: both inferred where the request is missing."""

    api: str
    version: str


class MeasuredEnds(NamedTuple):
    """The ends of a connection."""

    software: str
    """Name and version of the client's software, as it said (KIP-511)."""
    server: str


class Measured(NamedTuple):
    """What tells exchanges apart."""

    kind: MeasuredApi
    client_id: str
    ends: MeasuredEnds
    subjects: Subjects
    errors: tuple[str, ...]
    """The names of the errors of its response."""


class Look(NamedTuple):
    """Rows of a look: how many there are of each kind, their findings, and their exchanges by what tells them apart."""

    kinds: Counter[str]
    findings: Counter[FindingKind]
    measured: list[Measured]
    """Each once, in the order of the rows that first have it."""
    which: Int64
    """Of each exchange the place of that, `(n,)`."""
    exchanges: IndexColumns
    """The same exchanges, `(n,)` each."""


Paced = Callable[[Iterator[Exchange]], Iterator[Exchange]]


class Looking:
    """Looks at rows of one capture, on one thread."""

    def __init__(self, capture: Capture) -> None:
        self._capture = capture
        self._messages = capture.messages.apart()

    def at(self, rows: Int64, paced: Paced) -> Look:
        """Look at rows, ascending, that were examined. Those that have to be decoded are taken from what `paced`
        returns of them."""
        capture = self._capture
        index = capture.index.numbers(rows)
        found = _RowsOfLook(len(rows))
        is_read = found.read_findings(capture, rows)
        at = np.flatnonzero(is_read & index.is_exchange & (index.api_key >= 0))
        is_read[at] = found.read_exchanges(self._messages, rows, index, at)
        is_read[index.is_exchange & (index.api_key < 0)] = False
        found.count(capture, rows, index.kind, np.flatnonzero(is_read))
        left = np.flatnonzero(~is_read)
        for place, exchange in zip(left.tolist(), paced(capture.at(rows[left])), strict=True):
            found.add(place, exchange)
        exchanges = np.flatnonzero(index.is_exchange)
        measured, which = found.measured(capture, index.where(exchanges), exchanges)
        return Look(found.kinds, found.findings, measured, which, index.where(exchanges))


class _RowsOfLook:
    """What is found of the rows of a look."""

    def __init__(self, count: int) -> None:
        self.kinds = Counter[str]()
        self.findings = Counter[FindingKind]()
        self._summaries: Sequence[FindingSummary] = ()
        self._summary, self._marked, self._api, self._subject, self._error = np.zeros((5, count), np.int64)
        """Of each row, or of each that is an exchange, the number of what it has; of findings of the examination 0 for
        none."""
        self._apis = ValueNumbers[MeasuredApi]()
        self._subjects = ValueNumbers[Subjects]()
        self._errors = ValueNumbers[tuple[str, ...]]()

    def read_findings(self, capture: Capture, rows: Int64) -> Bool:
        """Look up what was found in rows when they were examined; return which ones are known, `(n,)`."""
        at = np.flatnonzero(~capture.rows.is_entry(rows))
        indexed = capture.rows.index_rows(rows)
        self._summary[at], self._summaries = capture.findings.message_summaries(indexed)
        self._marked[at], _ = capture.findings.cross_message_summaries(indexed)
        return self._summary > 0

    def read_exchanges(self, messages: ManyMessages, rows: Int64, index: IndexColumns, at: Int64) -> Bool:
        """Read what exchanges at these places are about, which have a request; return which ones are read."""
        found = messages.subjects(rows[at])
        kinds = index.api_key[at] * _VERSIONS + index.version[at] - _LEAST_VERSION
        self._api[at] = by_distinct(kinds, lambda kind: self._apis.of(_api_version(kind)), np.int64)
        self._error[at] = by_distinct(self._summary[at], lambda number: self._errors_of(number), np.int64)
        numbers = np.array([self._subjects.of(each) for each in found.subjects] + [UNREAD], np.int64)
        self._subject[at] = numbers[found.numbers]
        is_read: Bool = found.numbers != UNREAD
        return is_read

    def _errors_of(self, summary: int) -> int:
        return self._errors.of(tuple(sorted(error_names(self._summaries[summary].errors))))

    def count(self, capture: Capture, rows: Int64, kinds: Int64, at: Int64) -> None:
        """Count the kinds and the findings of rows at these places, which are known."""
        for kind, count in Counter(kinds[at].tolist()).items():
            self.kinds[KIND_NAMES[kind]] += count
        is_marked = self._marked[at] > 0
        for number, count in Counter(self._summary[at[~is_marked]].tolist()).items():
            for each in self._summaries[number].kinds:
                self.findings[each] += count
        for place in at[is_marked].tolist():
            marks = capture.findings.of_index_row(capture.rows.index_row(int(rows[place])))
            of_row = without_repetition(self._summaries[self._summary[place]].kinds, marks)
            self.findings.update((*of_row, *(FindingKind(each.code, each.severity) for each in marks)))

    def add(self, place: int, exchange: Exchange) -> None:
        """Add a row that was decoded."""
        self.kinds[exchange.fields.kind] += 1
        self.findings.update(FindingKind(each.code, each.severity) for each in exchange.findings)
        if exchange.fields.kind == EXCHANGE:
            version = exchange.fields.version
            self._api[place] = self._apis.of(MeasuredApi(exchange.fields.api, "" if version is None else str(version)))
            self._subject[place] = self._subjects.of(subjects_of(exchange))
            self._error[place] = self._errors.of(tuple(sorted(error_names(ERROR.of(exchange)))))

    def measured(self, capture: Capture, index: IndexColumns, at: Int64) -> tuple[list[Measured], Int64]:
        """What tells exchanges at these places apart, and which of them has what; `index` is theirs."""
        if not len(at):
            return [], at
        ends = ValueNumbers[MeasuredEnds]()
        end = by_distinct(index.connection, lambda connection: ends.of(_ends(capture, connection)), np.int64)
        columns = self._api[at], index.client_id, end, self._subject[at], self._error[at]
        first, which = distinct(np.stack(columns, axis=1).view(np.uint64))
        found = [
            Measured(
                self._apis.values[api], capture.index.client_id(client_id) or "", ends.values[of_ends],
                self._subjects.values[subject], self._errors.values[error],
            )
            for api, client_id, of_ends, subject, error in tuples(*(column[first] for column in columns))
        ]  # fmt: skip
        return found, which


def _api_version(kind: int) -> MeasuredApi:
    key, version = divmod(kind, _VERSIONS)
    return MeasuredApi(api_name(key), str(version + _LEAST_VERSION))


def _ends(capture: Capture, connection: int) -> MeasuredEnds:
    software = " ".join(filter(None, capture.connections.software(connection)))
    return MeasuredEnds(software or "unknown", capture.connections.ends(connection)[1])
