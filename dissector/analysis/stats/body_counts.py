"""Count what bodies say about errors, topics and partitions: many rows at once, in columns.

Plain messages are numbered by the fields that matter (`FieldKeys`). What they say (`ExchangeContents`) is found in one
exchange of all those with equal numbers; the sizes of their records are a column. Other rows are decoded one by one.

Invariant: the counts are those of the decoded exchanges, and their keys are in the order of the rows that first have
them (a property test).
"""

from collections.abc import Iterator
from functools import partial
from typing import Final

import numpy as np

from dissector.analysis.stats.column_counts import MeasureColumns, add_by_key, expanded
from dissector.analysis.stats.counts import ApiError, Statistics, TopicPartition
from dissector.analysis.stats.exchange_contents import (
    NO_SUBJECT,
    ExchangeContents,
    contents_of,
    has_records,
    reads,
    record_sizes,
)
from dissector.bulk.body_columns import Messages
from dissector.capture_session import Capture
from dissector.core.arrays import Bool, Int64
from dissector.core.columns import ValueNumbers
from dissector.index.index_columns import IndexColumns
from dissector.protocol.codec.program import ColumnPlan
from dissector.protocol.kernel.shredding import Shredded
from dissector.protocol.schema.api_keys import ApiKey

DECODED_PER_STEP: Final = 256
MOST_CONTENTS: Final = 1 << 15
Session = tuple[tuple[str, tuple[int, ...]], ...]
"""The partitions of a fetch session, by topic."""


class BodyCounts:
    """Counts rows of a capture into `statistics`."""

    def __init__(self, capture: Capture, statistics: Statistics) -> None:
        self._capture = capture
        self._statistics = statistics
        self._requests = capture.messages.field_keys(
            partial(reads, is_request=True), has_records, _is_epoch, is_request=True
        )
        self._responses = capture.messages.field_keys(partial(reads, is_request=False), has_records, is_request=False)
        self._known: dict[tuple[int, Session | None], ExchangeContents] = {}
        """By numbers of the request and the response, and by fetch session."""
        self.has_error = np.zeros(0, np.bool_)
        """Which of the rows that were added last have an error."""

    def add(self, rows: Int64, found: IndexColumns) -> Iterator[None]:
        """Count rows, ascending, all of them exchanges; `found` are their columns. Yields between short steps."""
        sent, received = _RecordSizes(len(rows)), _RecordSizes(len(rows))
        asked = self._requests(rows, sent.add)
        answered = self._responses(rows, received.add) + 1
        answered[found.response_size < 0] = 0
        is_plain = (asked > 0) & (answered != 1)
        sent.keep(is_plain)
        received.keep(is_plain)
        pairs = np.where(is_plain, asked << 32 | answered, -1)
        continued = np.flatnonzero(is_plain & sent.continues_session)
        sessions = {at: self._session(int(rows[at])) for at in continued.tolist()}
        which, first = _groups(pairs, sessions)
        contents: list[ExchangeContents] = []
        for start in range(0, len(first), DECODED_PER_STEP):
            contents += self._contents(rows, pairs, sessions, first[start : start + DECODED_PER_STEP], sent, received)
            yield
        self._count_errors(found, contents, which)
        self._count_subjects(found, contents, which, sent, received)

    def _session(self, row: int) -> Session | None:
        partitions = self._capture.messages.fetch_session(row)
        return None if partitions is None else tuple((topic, tuple(some)) for topic, some in partitions.items())

    def _contents(
        self, rows: Int64, pairs: Int64, sessions: dict[int, Session | None], at: Int64,
        sent: "_RecordSizes", received: "_RecordSizes",
    ) -> list[ExchangeContents]:  # fmt: skip
        """What the rows at some places say."""
        keys = [(pair, sessions.get(place)) for pair, place in zip(pairs[at].tolist(), at.tolist(), strict=True)]
        contents = [self._known.get(key) for key in keys]
        new = np.array([n for n, each in enumerate(contents) if each is None], np.int64)
        new = new[np.argsort(at[new])]
        for n, exchange in zip(new.tolist(), self._capture.at(rows[at[new]]), strict=True):
            found = contents[n] = contents_of(exchange)
            if keys[n][0] < 0:
                sent.add_sizes(int(at[n]), record_sizes(exchange.request))
                received.add_sizes(int(at[n]), record_sizes(exchange.response))
                continue
            if len(self._known) == MOST_CONTENTS:
                self._known.clear()
            self._known[keys[n]] = found
        return [each for each in contents if each is not None]

    def _count_errors(self, found: IndexColumns, contents: list[ExchangeContents], which: Int64) -> None:
        """Count errors: each code of each row."""
        counts = np.array([len(each.codes) for each in contents], np.int64)
        codes = np.array([code for each in contents for code in each.codes], np.int64)
        row, at = expanded(counts, which)
        self.has_error = counts[which] > 0
        keys = ValueNumbers[ApiError]()
        errors = zip(found.api_key[row].tolist(), codes[at].tolist(), strict=True)
        numbers = [keys.of(ApiError(key, code)) for key, code in errors]
        measures = MeasureColumns.of(found).where(row)._replace(error=np.ones(len(row), np.bool_))
        add_by_key(self._statistics.errors, keys.values, np.array(numbers, np.int64), measures)

    def _count_subjects(
        self, found: IndexColumns, contents: list[ExchangeContents], which: Int64, sent: "_RecordSizes",
        received: "_RecordSizes",
    ) -> None:  # fmt: skip
        """Count topics and partitions."""
        counts = np.array([len(each.subjects) for each in contents], np.int64)
        row, at = expanded(counts, which)
        topics, partitions = ValueNumbers[str](), ValueNumbers[TopicPartition]()
        subjects = [subject for each in contents for subject in each.subjects]
        numbers = [topics.of(each) if isinstance(each, str) else partitions.of(each) for each in subjects]
        number = np.array(numbers, np.int64)[at]
        is_topic = np.array([isinstance(each, str) for each in subjects], np.bool_)[at]
        begins = np.cumsum(counts[which]) - counts[which]
        measures = (
            MeasureColumns.of(found)
            .where(row)
            ._replace(
                out=sent.sums([each.sent for each in contents], which, begins, len(row)),
                back=received.sums([each.received for each in contents], which, begins, len(row)),
                error=np.array([error for each in contents for error in each.has_error], np.bool_)[at],
            )
        )
        add_by_key(self._statistics.topics, topics.values, number[is_topic], measures.where(is_topic))
        add_by_key(self._statistics.partitions, partitions.values, number[~is_topic], measures.where(~is_topic))


class _RecordSizes:
    """The sizes of the records of some rows, of one side."""

    def __init__(self, rows: int) -> None:
        self.continues_session = np.zeros(rows, np.bool_)
        self._rows, self._places, self._sizes = [[np.zeros(0, np.int64)] for _ in range(3)]

    def add(self, messages: Messages, part: Shredded) -> None:
        """Add plain messages."""
        for number, column in enumerate(messages.program.columns):
            if _is_epoch(messages.api_key, column):
                epochs = part.column(number)
                self.continues_session[messages.at[part.first + epochs.rows[epochs.values > 0]]] = True
            elif has_records(messages.api_key, column):
                sizes, _, rows = part.column(number)
                begins = np.flatnonzero(np.diff(rows, prepend=-1))
                places = np.arange(len(rows)) - np.repeat(begins, np.diff(begins, append=len(rows)))
                some = sizes > 0
                self._rows.append(messages.at[part.first + rows[some]])
                self._places.append(places[some])
                self._sizes.append(sizes[some])

    def add_sizes(self, row: int, sizes: list[int]) -> None:
        """Add a message that was decoded."""
        self._rows.append(np.full(len(sizes), row))
        self._places.append(np.arange(len(sizes)))
        self._sizes.append(np.array(sizes, np.int64))

    def keep(self, chosen: Bool) -> None:
        """Forget what was added of other rows."""
        rows, places, sizes = (np.concatenate(each) for each in (self._rows, self._places, self._sizes))
        kept = chosen[rows]
        self._rows, self._places, self._sizes = [rows[kept]], [places[kept]], [sizes[kept]]

    def sums(self, subjects: list[tuple[tuple[int, int], ...]], which: Int64, begins: Int64, count: int) -> Int64:
        """The bytes of each subject of each row, `(count,)`. `subjects` are those of records by place, for each of the
        contents; `which` of them a row has, and where its subjects begin among those of all rows."""
        rows, places, sizes = (np.concatenate(each) for each in (self._rows, self._places, self._sizes))
        lengths = np.array([len(each) for each in subjects], np.int64)
        every = np.array([each for some in subjects for each in some], np.int64).reshape(-1, 2)
        targets = every[(np.cumsum(lengths) - lengths)[which[rows]] + places]
        found = np.zeros(count, np.int64)
        for target in targets.T:
            there = target != NO_SUBJECT
            np.add.at(found, begins[rows[there]] + target[there], sizes[there])
        return found


def _is_epoch(api_key: int, column: ColumnPlan) -> bool:
    return api_key == ApiKey.FETCH and column.path == ("body", "session_epoch")


def _groups(pairs: Int64, sessions: dict[int, Session | None]) -> tuple[Int64, Int64]:
    """Number rows by pair and session, those without a pair one by one; the first row of each number."""
    numbers = ValueNumbers[Session | None]()
    numbers.of(None)
    of_session = np.zeros(len(pairs), np.int64)
    for at, session in sessions.items():
        of_session[at] = numbers.of(session)
    _, number = np.unique(pairs, return_inverse=True)
    whole = number * len(numbers.values) + of_session
    alone = np.flatnonzero(pairs < 0)
    whole[alone] = -1 - np.arange(len(alone))
    _, first, which = np.unique(whole, return_index=True, return_inverse=True)
    return which, first
