"""The topics and groups of many exchanges, as row fields have them.

Messages are numbered by the fields that name topics and groups. Of exchanges whose requests and whose responses have
equal numbers one is decoded; what only the fetch session of an exchange has is added.

Invariants:
  * what is found is what decoding the row gives (held on recordings), but of a fetch session the first
    `MOST_OF_SESSION` topics alone: the time that a row takes does not grow with a session;
  * what is kept is bounded.
"""

from functools import cache, partial
from typing import Final, NamedTuple

import numpy as np

from dissector.bulk.body_columns import BodyColumns, Messages
from dissector.bulk.field_keys import FieldKeys
from dissector.bulk.message_answers import FEW, ROWS_PER_MESSAGE, decides
from dissector.core.arrays import Bool, Int64
from dissector.core.columns import ValueNumbers
from dissector.core.grouping import by_distinct
from dissector.exchange.decoder import ExchangeDecoder
from dissector.exchange.field_paths import Path
from dissector.exchange.message_subjects import GROUP, TOPIC
from dissector.exchange.model import Exchange, FirstFetched
from dissector.exchange.row_fields import topic_names
from dissector.index.exchange_table import NO_FRAME
from dissector.index.indexer import Indexer
from dissector.protocol.codec.program import ColumnPlan
from dissector.protocol.kernel.shredding import Shredded
from dissector.protocol.schema.api_keys import ApiKey
from dissector.protocol.schema.loader import api

MOST_OF_SESSION: Final = 1_000
MOST_KNOWN: Final = 1 << 15
MOST_NAMES: Final = 1 << 18
"""Topics and groups that are kept: some 25 MB."""
UNREAD: Final = -1
"""The number of a row that has to be decoded."""
REQUEST, RESPONSE = 0, 1
_EPOCH: Final = ("body", "session_epoch")
_UNPLAIN, _NAMES_NONE = 0, 1
"""In place of the number of a message: it has to be decoded; there is none, or it has no field for a topic or a group.
From the next one on, numbers stand for messages."""


class Subjects(NamedTuple):
    """Names, each once."""

    topics: tuple[str, ...]
    groups: tuple[str, ...]

    def with_session(self, fetched: FirstFetched | None) -> "Subjects":
        """The same with the topics of a fetch session."""
        return self if fetched is None else self._replace(topics=tuple(dict.fromkeys((*self.topics, *fetched[0]))))


class SubjectsOfRows(NamedTuple):
    """The number of each row, `(n,)`, or `UNREAD`; and what numbers stand for."""

    numbers: Int64
    subjects: list[Subjects]


def subjects_of(exchange: Exchange) -> Subjects:
    """Return the subjects of a decoded row."""
    fetched = exchange.first_fetched(MOST_OF_SESSION) if exchange.has_session else None
    return _in_messages(exchange).with_session(fetched)


def _in_messages(exchange: Exchange) -> Subjects:
    groups = dict.fromkeys(str(group) for group in GROUP.in_messages(exchange) if group)
    return Subjects(tuple(topic_names(exchange, TOPIC.in_messages(exchange))), tuple(groups))


class SubjectColumns:
    """Of one capture, which may still grow. One thread at a time asks."""

    def __init__(self, indexer: Indexer, bodies: BodyColumns, decoder: ExchangeDecoder) -> None:
        self._table = indexer.table
        self._names = indexer.conversation_state.topic_names
        self._names_then = -1
        """How many there were when what is known was found."""
        self._decoder = decoder
        self._keys = (
            FieldKeys(bodies, partial(_names_subject, REQUEST), nonzero=_is_epoch, is_request=True),
            FieldKeys(bodies, partial(_names_subject, RESPONSE), is_request=False),
        )
        self._known: dict[int, Subjects] = {}
        """By numbers of the request and the response."""
        self._room = MOST_NAMES

    def of(self, rows: Int64) -> SubjectsOfRows:
        """The subjects of rows of the index, ascending: all of them exchanges with a request, or left unread. Where
        many are new, some are left unread, too."""
        self._decoder.update_conversation_state()
        if len(self._names) != self._names_then:
            self._names_then = len(self._names)
            self._forget()
        continues = np.zeros(len(rows), np.bool_)
        asked = self._side(REQUEST, rows, continues)
        answered = self._side(RESPONSE, rows, continues)
        pairs = np.where((asked != _UNPLAIN) & (answered != _UNPLAIN), asked << 32 | answered, UNREAD)
        different, first, which, counts = np.unique(pairs, return_index=True, return_inverse=True, return_counts=True)
        self._learn(different, rows[first], counts, max(FEW, len(rows) // ROWS_PER_MESSAGE))
        found = ValueNumbers[Subjects]()
        known = [self._known.get(pair) for pair in different.tolist()]
        numbers = np.array([UNREAD if each is None else found.of(each) for each in known], np.int64)[which]
        for at in np.flatnonzero(continues & (numbers != UNREAD)).tolist():
            subjects = found.values[numbers[at]]
            fetched = self._decoder.first_of_fetch_session(
                int(rows[at]), MOST_OF_SESSION, names_topics=bool(subjects.topics)
            )
            numbers[at] = found.of(subjects.with_session(fetched))
        return SubjectsOfRows(numbers, found.values)

    def _side(self, side: int, rows: Int64, continues: Bool) -> Int64:
        """Numbers of the messages of one side; sets those of rows that continue a session."""
        table = self._table
        has_some = by_distinct(table.api_key.values[rows], lambda key: bool(_paths(side, key)), np.bool_)
        at = np.flatnonzero(has_some & ((table.request, table.response)[side].values[rows] != NO_FRAME))

        def visit(messages: Messages, part: Shredded) -> None:
            for number, column in enumerate(messages.program.columns):
                if side == REQUEST and _is_epoch(messages.api_key, column):
                    epochs = part.column(number)
                    continues[at[messages.at[part.first + epochs.rows[epochs.values > 0]]]] = True

        found = self._keys[side].numbers(rows[at], visit)
        numbers = np.full(len(rows), _NAMES_NONE)
        numbers[at] = np.where(found > 0, found + _NAMES_NONE, _UNPLAIN)
        return numbers

    def _learn(self, pairs: Int64, rows: Int64, counts: Int64, most: int) -> None:
        """Decode a row of each pair that is not known; of too many those that most rows have."""
        is_new = [pair != UNREAD and pair not in self._known for pair in pairs.tolist()]
        new = np.flatnonzero(is_new)
        new = new[np.argsort(-counts[new], kind="stable")[:most]]
        new = new[np.argsort(rows[new])]
        for pair, exchange in zip(pairs[new].tolist(), self._decoder.exchanges(rows[new]), strict=True):
            subjects = _in_messages(exchange)
            self._room -= len(subjects.topics) + len(subjects.groups)
            if len(self._known) >= MOST_KNOWN or self._room < 0:
                self._forget()
            self._known[pair] = subjects

    def _forget(self) -> None:
        self._known.clear()
        self._room = MOST_NAMES


@cache
def _paths(side: int, api_key: int) -> frozenset[Path]:
    """The fields of an API's messages on which topics and groups depend."""
    known = api(api_key)
    body = "" if known is None else (known.request, known.response)[side]
    return frozenset((*TOPIC.reads(body), *GROUP.reads(body)))


def _names_subject(side: int, api_key: int, column: ColumnPlan) -> bool:
    return decides(column, _paths(side, api_key))


def _is_epoch(api_key: int, column: ColumnPlan) -> bool:
    return api_key == ApiKey.FETCH and column.path == _EPOCH
