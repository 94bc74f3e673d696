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

from dissector.analysis.stats.column_counts import MeasureColumns, add_by_key, counts_by_key
from dissector.analysis.stats.counts import ApiError, Statistics
from dissector.analysis.stats.exchange_contents import (
    NO_SUBJECT,
    ExchangeContents,
    Subject,
    contents_of,
    has_records,
    reads,
    record_sizes,
)
from dissector.analysis.stats.session_counts import IN_MESSAGE, SharedMerges, SubjectCounts, session_subjects_of
from dissector.bulk.body_columns import Messages
from dissector.capture_session import Capture
from dissector.core.arrays import Bool, Int64
from dissector.core.columns import ValueNumbers
from dissector.core.grouping import begins, cuts, expanded, owners
from dissector.index.index_columns import IndexColumns
from dissector.protocol.codec.program import ColumnPlan
from dissector.protocol.kernel.shredding import Shredded
from dissector.protocol.schema.api_keys import ApiKey

DECODED_PER_STEP: Final = 256
MOST_CONTENTS: Final = 1 << 15
MOST_SUBJECTS: Final = 1 << 18
"""Topics and partitions that are kept in what is known, and that are counted at once: some 25 MB."""


class BodyCounts:
    """Counts rows of a capture into `statistics`."""

    def __init__(self, capture: Capture, statistics: Statistics) -> None:
        self._capture = capture
        self._statistics = statistics
        self._requests = capture.messages.field_keys(
            partial(reads, is_request=True), has_records, _is_epoch, is_request=True
        )
        self._responses = capture.messages.field_keys(partial(reads, is_request=False), has_records, is_request=False)
        self._known: dict[int, ExchangeContents] = {}
        """By numbers of the request and the response."""
        self._known_subjects = 0
        """How many topics and partitions these mention."""
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
        which, first = _groups(pairs)
        contents: list[ExchangeContents] = []
        for start in range(0, len(first), DECODED_PER_STEP):
            contents += self._contents(rows, pairs, first[start : start + DECODED_PER_STEP], sent, received)
            yield
        self._count_errors(found, contents, which)
        self._count_subjects(rows, pairs, found, contents, which, sent, received)

    def _contents(
        self, rows: Int64, pairs: Int64, at: Int64, sent: "_RecordSizes", received: "_RecordSizes"
    ) -> list[ExchangeContents]:
        """What the rows at some places say."""
        keys = pairs[at].tolist()
        contents = [self._known.get(key) for key in keys]
        new = np.array([n for n, each in enumerate(contents) if each is None], np.int64)
        new = new[np.argsort(at[new])]
        for n, exchange in zip(new.tolist(), self._capture.at(rows[at[new]]), strict=True):
            found = contents[n] = contents_of(exchange)
            if keys[n] < 0:
                sent.add_sizes(int(at[n]), record_sizes(exchange.request))
                received.add_sizes(int(at[n]), record_sizes(exchange.response))
                continue
            self._known_subjects += len(found.subjects)
            if len(self._known) >= MOST_CONTENTS or self._known_subjects > MOST_SUBJECTS:
                self._known.clear()
                self._known_subjects = len(found.subjects)
            self._known[keys[n]] = found
        return [each for each in contents if each is not None]

    def _count_errors(self, found: IndexColumns, contents: list[ExchangeContents], which: Int64) -> None:
        """Count errors: each code of each row."""
        counts = np.array([len(each.codes) for each in contents], np.int64)
        codes = np.array([code for each in contents for code in each.codes], np.int64)
        row, at = owners(counts[which]), expanded(begins(counts)[which], counts[which])
        self.has_error = counts[which] > 0
        keys = ValueNumbers[ApiError]()
        errors = zip(found.api_key[row].tolist(), codes[at].tolist(), strict=True)
        numbers = [keys.of(ApiError(key, code)) for key, code in errors]
        measures = MeasureColumns.of(found).where(row)._replace(error=np.ones(len(row), np.bool_))
        add_by_key(self._statistics.errors, keys.values, np.array(numbers, np.int64), measures)

    def _count_subjects(
        self, rows: Int64, pairs: Int64, found: IndexColumns, contents: list[ExchangeContents], which: Int64,
        sent: "_RecordSizes", received: "_RecordSizes",
    ) -> None:  # fmt: skip
        """Count topics and partitions: those that messages mention, and those of fetch sessions."""
        measures = MeasureColumns.of(found)
        alone = np.array([each.continues_session for each in contents], np.bool_)[which] & (pairs < 0)
        continues = sent.continues_session | alone
        sessions = session_subjects_of(
            self._capture, rows, np.flatnonzero(continues), found.connection, measures,
            lambda place: (int(which[place]), contents[which[place]].subjects),
        )  # fmt: skip
        counts = np.array([len(each.subjects) for each in contents], np.int64)
        counted = sessions.counts
        first = 0
        for part in np.split(which, cuts(counts[which], MOST_SUBJECTS)):
            counted += self._mentioned(first, part, measures, contents, sessions.is_mentioned, sent, received)
            first += len(part)
        merged = SharedMerges()
        for _, subject, found_counts in sorted(counted, key=lambda each: each.order):
            if isinstance(subject, str):
                self._statistics.topics.add(subject, found_counts, merged)
            else:
                self._statistics.partitions.add(subject, found_counts, merged)

    def _mentioned(
        self, first: int, which: Int64, measures: MeasureColumns, contents: list[ExchangeContents],
        in_session: dict[int, Bool], sent: "_RecordSizes", received: "_RecordSizes",
    ) -> Iterator[SubjectCounts]:  # fmt: skip
        """Count what the messages of some rows mention, the first of which has the place `first`, and which of the
        contents each has. What the session of a row has, too, is counted with that, but for bytes and errors."""
        used, which = np.unique(which, return_inverse=True)
        contents = [contents[each] for each in used.tolist()]
        counts = np.array([len(each.subjects) for each in contents], np.int64)
        row, at = owners(counts[which]), expanded(begins(counts)[which], counts[which])
        numbers = ValueNumbers[Subject]()
        number = np.array([numbers.of(subject) for each in contents for subject in each.subjects], np.int64)[at]
        starts = begins(counts[which])
        counted = np.ones(len(row), np.bool_)
        for place, is_in in in_session.items():
            if first <= place < first + len(which):
                begin = int(starts[place - first])
                counted[begin : begin + len(is_in)] = ~is_in
        mentions = measures.where(row + first)._replace(
            counted=counted,
            out=sent.sums([each.sent for each in contents], which, starts, len(row), first),
            back=received.sums([each.received for each in contents], which, starts, len(row), first),
            error=np.array([error for each in contents for error in each.has_error], np.bool_)[at],
        )
        for place, subject, subject_counts in counts_by_key(numbers.values, number, mentions):
            yield SubjectCounts((first + int(row[place]), IN_MESSAGE, place, 0, 0), subject, subject_counts)


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
                places = np.arange(len(rows)) - np.searchsorted(rows, rows)
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
        self.continues_session &= chosen
        rows, places, sizes = (np.concatenate(each) for each in (self._rows, self._places, self._sizes))
        kept = chosen[rows]
        self._rows, self._places, self._sizes = [rows[kept]], [places[kept]], [sizes[kept]]

    def sums(
        self, subjects: list[tuple[tuple[int, int], ...]], which: Int64, starts: Int64, count: int, first: int
    ) -> Int64:
        """The bytes of each subject of some rows from `first` on, `(count,)`. `subjects` are those of records by place,
        for each of the contents; `which` of them a row has, and where its subjects begin among those of all rows."""
        rows, places, sizes = (np.concatenate(each) for each in (self._rows, self._places, self._sizes))
        some = (rows >= first) & (rows < first + len(which))
        rows, places, sizes = rows[some] - first, places[some], sizes[some]
        lengths = np.array([len(each) for each in subjects], np.int64)
        every = np.array([each for some in subjects for each in some], np.int64).reshape(-1, 2)
        targets = every[begins(lengths)[which[rows]] + places]
        found = np.zeros(count, np.int64)
        for target in targets.T:
            there = target != NO_SUBJECT
            np.add.at(found, starts[rows[there]] + target[there], sizes[there])
        return found


def _is_epoch(api_key: int, column: ColumnPlan) -> bool:
    return api_key == ApiKey.FETCH and column.path == ("body", "session_epoch")


def _groups(pairs: Int64) -> tuple[Int64, Int64]:
    """Number rows by pair, those without a pair one by one; the first row of each number."""
    alone = np.flatnonzero(pairs < 0)
    whole = pairs.copy()
    whole[alone] = -1 - np.arange(len(alone))
    _, first, which = np.unique(whole, return_index=True, return_inverse=True)
    return which, first
