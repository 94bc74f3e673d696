"""The info column of many rows at once. Messages with equal values in the fields that it shows are decoded once.

The kernel gives each message a key of those fields (`FieldKeys`). What a pair of a request and a response says
(`InfoWords`) is computed from the first row that has it; numbers of records and the partitions of fetch sessions differ
from row to row and are added to that.

Invariant: a text is that of `Exchange.row.info` (a property test); None where a row needs a careful look.
"""

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np

from dissector.bulk.body_columns import BodyColumns, Messages
from dissector.bulk.field_keys import FieldKeys
from dissector.bulk.unanswered_requests import REASONS, UnansweredRequests
from dissector.core.arrays import Int64
from dissector.core.finding import Finding
from dissector.exchange.decoder import ExchangeDecoder
from dissector.exchange.finding_words import marked, with_words
from dissector.exchange.info_column import (
    MAX_TOPICS,
    PARTITION_ARRAYS,
    READS_AS,
    REASON,
    REASON_ARRAY,
    SUBJECT_ARRAYS,
    SUBJECTS,
    TOPIC_ARRAYS,
    InfoWords,
    fetch_session_words,
    info_text,
    info_words,
    records_words,
)
from dissector.exchange.metadata_fetches import has_damaged_metadata_log
from dissector.exchange.model import Exchange
from dissector.index.indexer import Indexer
from dissector.protocol.codec.program import ColumnPlan, Part, Program
from dissector.protocol.kernel.shredding import Shredded, numbered_rows
from dissector.protocol.records.counting import codec_names, count_at
from dissector.protocol.schema.api_keys import ApiKey
from dissector.protocol.schema.field_names import ERROR_CODES, PARTITION_NUMBERS, TOPIC_FIELDS

MOST_TEXTS: Final = 1 << 15
_RESPONSES: Final = REASONS
"""The first number that stands for a response: those before it are reasons why there is none."""
_RECORDS: Final = "records"
_EPOCH: Final = "session_epoch"
_FORGOTTEN: Final = "forgotten_topics_data"


class PairWords(NamedTuple):
    """What a request and its response say."""

    words: InfoWords
    names_topics: bool
    """Whether the request names topics: then those of its fetch session are not shown."""
    findings: list[Finding]
    """Of the row, without those that only several messages show."""


class InfoTexts:
    """The info column of one capture."""

    def __init__(
        self, indexer: Indexer, bodies: BodyColumns, decoder: ExchangeDecoder, is_ended: Callable[[int], bool]
    ) -> None:
        """Of `bodies` those are read that are plain, or plain for words."""
        self._indexer = indexer
        self._decoder = decoder
        self._lone = UnansweredRequests(indexer, is_ended)
        self._requests = FieldKeys(bodies, _in_request, _counted, is_request=True)
        self._responses = FieldKeys(bodies, _in_response, _counted, is_request=False)
        self._pairs: dict[int, PairWords | None] = {}
        self._texts: dict[tuple[int, int, int, str], str] = {}
        self._generation = -1
        """Of the index when `_texts` were made: more names of topics may be known since."""

    def texts(self, rows: Int64, findings: Mapping[int, list[Finding]]) -> list[str | None]:
        """The texts of rows, ascending, with these cross-message findings of some, by place; None where a row needs a
        careful look."""
        asked_records = _Records(len(rows))
        asked = self._requests.numbers(rows, asked_records.add)
        answered_records = _Records(len(rows))
        answered = self._responses.numbers(rows, answered_records.add) + _RESPONSES
        answered[answered == _RESPONSES] = -1
        missing = np.flatnonzero(self._lone.lack_response(rows) & (asked > 0))
        answered[missing] = self._lone.reasons(rows[missing])
        pairs = np.where((asked > 0) & (answered >= 0), asked << 32 | answered, -1)
        self._decode_pairs(rows, pairs)
        counts, codecs = _shown_records(asked_records, answered_records)
        if self._generation != self._indexer.generation or len(self._texts) > MOST_TEXTS:
            self._generation = self._indexer.generation
            self._texts.clear()
        found = np.empty(len(rows), object)
        which, first = numbered_rows(pairs, counts, codecs)
        texts = np.empty(len(first), object)
        texts[:] = [
            self._text(*each)
            for each in zip(pairs[first].tolist(), counts[first].tolist(), codecs[first].tolist(), strict=True)
        ]
        found[:] = texts[which]
        for at in np.flatnonzero(asked_records.continues_session & (pairs >= 0)).tolist():
            pair = int(pairs[at])
            words = self._pairs[pair]
            if words is not None and not words.names_topics and found[at] is not None:
                is_changed = bool(asked_records.forgets_topics[at])
                session = fetch_session_words(
                    *self._decoder.first_of_fetch_session(int(rows[at]), MAX_TOPICS, names_topics=is_changed)
                )
                found[at] = self._text(pair, int(counts[at]), int(codecs[at]), session)
        for at, marks in findings.items():
            words = self._pairs.get(int(pairs[at]))
            if words is not None and found[at] is not None:
                found[at] = _with_marks(found[at], tuple(words.findings), tuple(marks))
        return list(found.tolist())

    def _text(self, pair: int, count: int, codecs: int, session: str = "") -> str | None:
        """The text of a row; None where it needs a careful look."""
        words = self._pairs.get(pair)
        if words is None:
            return None
        key = pair, count, codecs, session
        text = self._texts.get(key)
        if text is None:
            records = records_words(count, codecs >> 8, codec_names(codecs & 0xFF))
            names = self._indexer.conversation_state.topic_names
            text = info_text(words.words, records, names, session)
            text = self._texts[key] = text or words.words.otherwise
        return text

    def _decode_pairs(self, rows: Int64, pairs: Int64) -> None:
        """Decode the first row of each pair that is not known."""
        _, first = numbered_rows(pairs)
        first = first[pairs[first] >= 0]
        at = first[[pair not in self._pairs for pair in pairs[first].tolist()]]
        if len(self._pairs) + len(at) > MOST_TEXTS:
            self._pairs.clear()
            at = first
        for pair, exchange in zip(pairs[at].tolist(), self._decoder.exchanges(rows[at]), strict=True):
            self._pairs[pair] = _pair_words(exchange)


@lru_cache(maxsize=4096)
def _with_marks(text: str, findings: tuple[Finding, ...], marks: tuple[Finding, ...]) -> str:
    """The text of a row with findings of the examination. `findings` are its others."""
    return with_words(marked(text, marks), [*findings, *marks])


def _shown_records(asked: "_Records", answered: "_Records") -> tuple[Int64, Int64]:
    """How many records each row shows, those of its request or else of its response; and a bit for each of their
    codecs, with 256 where there are bytes of records at all."""
    counts = np.where(asked.has_bytes, asked.counts, answered.counts)
    codecs = np.where(asked.has_bytes, asked.codecs, answered.codecs).astype(np.int64)
    return counts, codecs | (asked.has_bytes | answered.has_bytes).astype(np.int64) << 8


class _Records:
    """What of records, and of fetch sessions, the messages of some rows have."""

    def __init__(self, rows: int) -> None:
        self.counts = np.zeros(rows, np.int64)
        self.codecs = np.zeros(rows, np.uint8)
        self.has_bytes = np.zeros(rows, np.bool_)
        self.continues_session = np.zeros(rows, np.bool_)
        self.forgets_topics = np.zeros(rows, np.bool_)
        """Whether the fetch session loses partitions."""

    def add(self, messages: Messages, part: Shredded) -> None:
        """Add messages."""
        for number, name in _counted_columns(messages.api_key, messages.program):
            values, positions, in_row = part.column(number)
            if name != _RECORDS:
                marked_rows = self.continues_session if name == _EPOCH else self.forgets_topics
                marked_rows[messages.at[part.first + in_row[values > 0]]] = True
                continue
            some = values > 0
            of = part.first + in_row[some].astype(np.int64)
            addresses, sizes = messages.frames.addresses[of] + positions[some].astype(np.uint64), values[some]
            found = count_at(addresses, sizes)
            at = messages.at[of]
            np.add.at(self.counts, at, found.records)
            np.bitwise_or.at(self.codecs, at, found.codecs)
            self.has_bytes[at] = True


@lru_cache(maxsize=1024)
def _counted_columns(api_key: int, program: Program) -> list[tuple[int, str]]:
    """The columns that are counted, and their names."""
    columns = enumerate(program.columns)
    return [(number, column.name) for number, column in columns if _counted(api_key, column)]


def _counted(_api_key: int, column: ColumnPlan) -> bool:
    """Whether a column has records, the epoch of a fetch session, or how many topics it forgets."""
    if column.path in (("body", _EPOCH), ("body", _FORGOTTEN)):
        return column.part in (Part.VALUE, Part.COUNT)
    return column.part is Part.VALUE and column.type == _RECORDS and column.name == _RECORDS


def _in_request(_api_key: int, column: ColumnPlan) -> bool:
    return _is_shown(column)


def _in_response(_api_key: int, column: ColumnPlan) -> bool:
    is_error = column.name in ERROR_CODES and column.path[0] == "body"
    return is_error or _is_shown(column)


def _is_shown(column: ColumnPlan) -> bool:
    """Whether the subjects or topics of a message depend on a column."""
    if column.path[0] != "body" or len(column.path) == 1 or column.part is Part.UNKNOWN_TAGS:
        return False
    _, top, *inner = column.path
    if top in SUBJECTS or top == REASON:
        return not inner
    if top == REASON_ARRAY:
        return inner in ([], [REASON])
    if top in SUBJECT_ARRAYS:
        return not inner or inner == ["group_id"]
    if top not in TOPIC_ARRAYS:
        return False
    if len(inner) < 2:
        return not inner or inner[0] in TOPIC_FIELDS or inner[0] in PARTITION_ARRAYS
    return len(inner) == 2 and inner[0] in PARTITION_ARRAYS and inner[1] in PARTITION_NUMBERS


def _pair_words(exchange: Exchange) -> PairWords | None:
    """What the messages of an exchange say; None if they need a careful look."""
    request, response = exchange.request, exchange.response
    if request is None or any(message is not None and message.masked_size for message in (request, response)):
        return None
    if any(each.code == READS_AS for each in exchange.row_findings):
        return None
    if exchange.api_key == ApiKey.FETCH and has_damaged_metadata_log(request.body.get("topics")):
        return None  # its records are masked on some connections, and are not searched for secrets here
    words = info_words(request, response, exchange.row_findings)
    return PairWords(words, bool(request.body.get("topics")), exchange.row_findings)
