"""The message findings of rows as a column: two bytes a row stand for their codes, the gravest severity, the errors.

A row whose frames have templates (`exchange.frame_templates`) is not decoded. A template's key holds every field that a
rule for message findings reads (`exchange.message_findings`), and every error code. So a rule may depend on any number.
Messages that may be masked, by their values or by the connection that they are on, have no template.

Invariants:
  * the column has what decoding the row gives: a property test;
  * 0 is for rows that were not looked at yet: whoever needs one of them decodes it. It stays with rows to which
    something may be added;
  * one thread writes at a time; a forked process has a column of its own, as a mapped one is shared with the parent.
"""

import os
import re
import threading
from collections.abc import Iterable, Iterator
from functools import partial, reduce
from typing import Final, NamedTuple, TypeVar

import numpy as np

from dissector.core.arrays import Bool, Int64
from dissector.core.columns import Column, ValueNumbers
from dissector.core.finding import Finding
from dissector.core.store import Store
from dissector.exchange import message_rules
from dissector.exchange.decoder import ExchangeDecoder
from dissector.exchange.frame_templates import FrameMasks, FrameTemplates, has_fixed_layout, value_spans
from dissector.exchange.message_findings import REQUEST, RESPONSE, FieldRead, field_reads
from dissector.exchange.message_subjects import ERROR
from dissector.exchange.model import Exchange, ExchangeMessage
from dissector.findings.summary import NO_FINDINGS, FindingSummary
from dissector.index.exchange_table import NO_FRAME, Flag, RowKind
from dissector.index.indexer import Indexer
from dissector.index.message_headers import SHORT_CLIENT_ID
from dissector.protocol.embedded.secrets import is_unclean, may_hold_secrets, names_metadata_log
from dissector.protocol.masking import UNREAD, is_sound
from dissector.protocol.message import trace
from dissector.protocol.records.batch import MASK
from dissector.protocol.schema.api_keys import ApiKey

TOGETHER: Final = 4_096
"""Rows whose bytes are compared together."""
STEP: Final = 64
"""Rows that are decoded between two reports of progress."""
SUMMARIES: Final = 1 << 16
PAIRS: Final = 1 << 18
"""Of a request and its response, each as far as findings depend on it."""
UNKNOWN: Final = FindingSummary(frozenset(("",)))
"""What 0 stands for: no row has that."""
NOT_EXPECTED, MISSING, RESPONSES = 1, 2, 2
"""In place of a response: none is sent, none was captured. Above these, numbers stand for responses."""
LONGEST_WHOLE_ID: Final = SHORT_CLIENT_ID // 4
"""Characters of a client id that was surely not cut, and is the one of the request."""
_INDEX: Final = re.compile(r"\[\d+\]")
Number = TypeVar("Number", int, Int64)
ERROR_FIELDS: Final = field_reads(message_rules.ERROR_FIELDS)


class Contents(NamedTuple):
    """All of a message on which findings of its exchange depend."""

    api_key: int
    version: int
    is_empty: bool
    """Whether its body could not be read."""
    codes: tuple[str, ...]
    """Of the findings of the message itself."""
    fields: str
    """The values of the fields that rules read."""


class MessageFindingColumn:
    """Of one capture, which may still grow."""

    def __init__(self, index: Indexer, store: Store, decoder: ExchangeDecoder) -> None:
        self._index = index
        self._store = store
        self._decoder = decoder
        self._requests = FrameTemplates[Contents]()
        self._responses = FrameTemplates[Contents]()
        self._pairs: dict[int, int] = {}
        """Number of the summary, by the contents of the request and those of the response."""
        self._numbers = Column(np.uint16)
        self._summaries: ValueNumbers[FindingSummary] = ValueNumbers()
        self._summaries.of(UNKNOWN)
        self._summaries.of(NO_FINDINGS)
        self._is_plain_client = Column(np.bool_)
        """Of each client id whether it is text, and all of it is known: a request with another may be masked."""
        self._process = os.getpid()
        self._writing = threading.Lock()

    @property
    def is_of_this_process(self) -> bool:
        """Whether it may be written to: a process that was forked makes one of its own."""
        return self._process == os.getpid()

    @property
    def summaries(self) -> list[FindingSummary]:
        """What each number stands for."""
        return self._summaries.values

    def of(self, rows: Int64) -> Int64:
        """The numbers of rows, `(n,)`; 0 where they were not looked at."""
        numbers = self._numbers.values
        found = np.zeros(len(rows), np.int64)
        there = rows < len(numbers)
        found[there] = numbers[rows[there]]
        return found

    def fill(self, rows: Int64, *, final: bool) -> Iterator[int]:
        """Look at those of these rows that were not looked at yet, step by step: how many of the rows are done. Rows to
        which something may be added are left out, unless the capture is `final`."""
        for first in range(0, len(rows), TOGETHER):
            with self._writing:
                self._numbers.grow(len(self._index.table))
                some = self._pending(rows[first : first + TOGETHER], final=final)
                numbers = self._by_templates(some)
                self._numbers.values[some] = numbers
            yield first
            rest = some[numbers == 0]
            for at in range(0, len(rest), STEP):
                with self._writing:
                    self._decode(rest[at : at + STEP], final=final)
                yield first

    def _pending(self, rows: Int64, *, final: bool) -> Int64:
        rows = rows[self.of(rows) == 0]
        if final:
            return rows
        table = self._index.table
        orphans = (table.kind.values[rows] == RowKind.EXCHANGE) & (table.request.values[rows] == NO_FRAME)
        complete: Int64 = rows[self._index.is_complete(rows) & ~orphans]
        return complete

    def _by_templates(self, rows: Int64) -> Int64:
        """The numbers of rows whose frames have templates; 0 for the rest."""
        table = self._index.table
        request, response = table.request.values[rows], table.response.values[rows]
        is_exchange = (table.kind.values[rows] == RowKind.EXCHANGE) & (request != NO_FRAME)
        which = np.flatnonzero(is_exchange & self._are_plain_clients(table.client_id.values[rows]))
        asked = self._contents_of(self._requests, rows[which], request[which])
        which, asked = which[asked > 0], asked[asked > 0]
        answered = np.where(table.flags.values[rows[which]] & Flag.NO_RESPONSE_EXPECTED, NOT_EXPECTED, MISSING)
        there = response[which] != NO_FRAME
        found = self._contents_of(self._responses, rows[which[there]], response[which[there]])
        answered[there] = np.where(found > 0, found + RESPONSES, 0)
        pairs, inverse = np.unique(_pair(asked, answered), return_inverse=True)
        numbers = np.zeros(len(rows), np.int64)
        if len(pairs):
            numbers[which] = np.array([self._pairs.get(pair, 0) for pair in pairs.tolist()])[inverse]
        return numbers

    def _are_plain_clients(self, client_ids: Int64) -> Bool:
        """Which client ids are plain, by their numbers."""
        known, texts = self._is_plain_client, self._index.client_ids.texts
        known.extend(np.array([_is_plain_client(text) for text in texts[len(known) :]], np.bool_))
        plain: Bool = known.values[client_ids] != 0
        return plain

    def _contents_of(self, templates: FrameTemplates[Contents], rows: Int64, frames: Int64) -> Int64:
        """The contents of frames, by number from 1; 0 where no template has them."""
        table, columns = self._index.table, self._index.frames
        key, version = table.api_key.values[rows].astype(np.int64), table.version.values[rows].astype(np.int64)
        address, size = columns.contiguous(frames), columns.size.values[frames].astype(np.int64)
        found = templates.find_all(self._store, key, version, address, size)
        fetches = np.flatnonzero((found > 0) & (key == ApiKey.FETCH))
        found[fetches[_name_metadata_log(self._store, address[fetches], size[fetches])]] = 0
        return found

    def _decode(self, rows: Int64, *, final: bool) -> None:
        for row, exchange in zip(rows.tolist(), self._decoder.exchanges(rows), strict=True):
            if final or exchange.response is None or _is_whole(exchange.response):
                number = self._summary(exchange.findings, ERROR.of(exchange))
                self._numbers.values[row] = number
                if number:
                    self._learn(row, exchange, number)

    def _learn(self, row: int, exchange: Exchange, number: int) -> None:
        """Whatever has the same contents has the same summary."""
        request, response, table = exchange.request, exchange.response, self._index.table
        if request is None or exchange.api_key is None or request.findings:
            return
        version = int(table.version.values[row])
        asked = self._learn_frame(self._requests, REQUEST, exchange.api_key, version, request)
        if response is not None:
            answered = self._learn_frame(self._responses, RESPONSE, exchange.api_key, version, response) + RESPONSES
        else:
            is_expected = not table.flags.values[row] & Flag.NO_RESPONSE_EXPECTED
            answered = MISSING if is_expected else NOT_EXPECTED
        if asked and answered != RESPONSES and len(self._pairs) < PAIRS:
            self._pairs[_pair(asked, answered)] = number

    def _learn_frame(
        self, templates: FrameTemplates[Contents], side: str, api_key: int, version: int, message: ExchangeMessage
    ) -> int:
        """The number of a message's contents; 0 where no template has them."""
        if not _is_public(message) or not has_fixed_layout(api_key, version, message.layout):
            return 0
        reads = reads_of(api_key, side)
        contents = Contents(
            api_key, version, not message.body, tuple(finding.code for finding in message.findings),
            repr([read.values(message) for read in reads]),
        )  # fmt: skip
        masks = partial(field_masks, message, reads, is_request=side == REQUEST)
        return templates.learn(api_key, version, message.data, contents, masks)

    def _summary(self, findings: list[Finding], errors: Iterable[object] = ()) -> int:
        """The number for what a row has; 0 where there are too many different ones."""
        summary = reduce(FindingSummary.with_finding, findings, FindingSummary(errors=frozenset(errors)))
        return self._summaries.of(summary) if len(self.summaries) < SUMMARIES else 0


def reads_of(api_key: int, side: str) -> tuple[FieldRead, ...]:
    """The fields of a side on which findings and errors of an API depend."""
    errors = ERROR_FIELDS if side == RESPONSE else ()
    return tuple(dict.fromkeys((*errors, *message_rules.MESSAGE_RULES.reads(api_key, side))))


def field_masks(message: ExchangeMessage, reads: tuple[FieldRead, ...], *, is_request: bool) -> FrameMasks:
    """What rules read is the key; all other values may differ."""
    masks = FrameMasks(message.data, is_request=is_request)
    for node, start, end in value_spans(trace(message.data, message.layout).tree):
        path = _INDEX.sub("", node.path).split(".")
        if any(read.covers(path) for read in reads):
            masks.distinguish(start, end)
        else:
            masks.ignore(start, end)
    return masks


def _pair(request: Number, response: Number) -> Number:
    return request << 32 | response


def _is_whole(message: ExchangeMessage) -> bool:
    return message.size == message.whole == len(message.data)


def _is_plain_client(text: str | None) -> bool:
    return text is None or not (is_unclean(text) or MASK.decode() in text or len(text) >= LONGEST_WHOLE_ID)


def _is_public(message: ExchangeMessage) -> bool:
    """Whether a message would be shown as it is on any connection."""
    if not _is_whole(message) or message.masked or not is_sound(message.header):
        return False
    is_read = UNREAD.isdisjoint(finding.code for finding in message.findings)
    return is_read and not may_hold_secrets(message.layout.body, message.data, message.context)


def _name_metadata_log(store: Store, address: Int64, size: Int64) -> Bool:
    """Which of these frames, each in one piece, may name the metadata log."""
    named = np.zeros(len(address), np.bool_)
    for each in np.unique(size).tolist():
        some = np.flatnonzero(size == each)
        frames = store.gather(address[some], each)
        if names_metadata_log(frames.tobytes()):
            named[some] = [names_metadata_log(frame.tobytes()) for frame in frames]
    return named
