"""Row fields as columns of the index, each read on first use, for a range of rows at a time.

Invariant: no Python object is made for a row; only for each distinct text or connection.
"""

from collections.abc import Callable, Collection, Sequence
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np

from dissector.core.arrays import Bool, Int64
from dissector.core.finding import Finding
from dissector.exchange.connection_facts import ConnectionFacts
from dissector.exchange.message_question import Answers, AnswersQuestions, MessageQuestion
from dissector.exchange.silence_causes import SILENCE_CAUSES, UNANSWERED_CODE
from dissector.index.exchange_table import KIND_NAMES, NO_FRAME, RowKind
from dissector.index.indexer import Indexer
from dissector.tls.session import TlsSession

NO_SEVERITY = -1


def truth(value: bool | None) -> str | None:
    """A truth value as text; None if it is not known."""
    return None if value is None else str(value).lower()


class ConnectionEnds(Protocol):
    """Looks up the ends of connections: `ExchangeDecoder`."""

    response_to: tuple[int, int] | None
    """API key and version of responses whose request is missing."""

    def ends(self, connection: int, /) -> tuple[str, str]:
        """The client's end of a connection and the server's, as `host:port`."""

    @property
    def facts(self) -> Callable[[int], ConnectionFacts]:
        """What is known of a connection besides its messages."""

    @property
    def tls_session(self) -> Callable[[int], TlsSession | None]:
        """The TLS of a connection; None where it is not encrypted."""


class Summary(Protocol):
    """The findings and errors of a row, which many rows share."""

    @property
    def codes(self) -> Collection[str]:
        """The codes of its findings."""

    @property
    def severity(self) -> int:
        """The place of its worst finding's severity in `Severity`, or `NO_SEVERITY`."""

    @property
    def errors(self) -> Collection[object]:
        """The error codes of its response; `ErrorCode.NONE` for a response without errors."""


class Summaries(Protocol):
    """Knows the findings of rows, by numbers from 0: a capture."""

    def message_summaries(self, rows: Int64, /) -> tuple[Int64, Sequence[Summary]]:
        """The summary of each row of the index: its number, and the summaries by number. 0 for an unknown one."""

    def cross_message_summaries(self, rows: Int64, /) -> tuple[Int64, Sequence[Summary]]:
        """The same of cross-message findings; 0 for none."""

    def of_index_row(self, row: int, /) -> list[Finding]:
        """The cross-message findings of a row of the index."""


class RowValues(NamedTuple):
    """A column of numbers, `(n,)`: which rows have one, and for which the index alone can't say. Of texts, `texts`
    gives the text of each number."""

    values: Int64
    present: Bool
    unclear: Bool | None = None
    texts: Callable[[int], str | None] | None = None


class RowValueSets(NamedTuple):
    """A column of sets of values: numbers, and the set of each number, by source; and which rows are not known."""

    sources: tuple[tuple[Int64, Sequence[Collection[object]]], ...]
    unclear: Bool


class IndexRows:
    """Some rows of the index: a range, or an array of numbers from 0.

    `entries` and `files` count the rows and connections before those of the index: entries of Kafka's files.
    """

    def __init__(
        self,
        indexer: Indexer,
        decoder: ConnectionEnds,
        rows: range | Int64,
        summaries: Summaries | None = None,
        start_ns: int = 0,
        entries: int = 0,
        files: int = 0,
        messages: AnswersQuestions | None = None,
    ) -> None:
        self._indexer = indexer
        self._decoder = decoder
        self._summaries = summaries
        self._numbers = rows
        self._rows = slice(rows.start, rows.stop) if isinstance(rows, range) else rows
        self._entries = entries
        self._files = files
        self._messages = messages
        self.start_ns = start_ns
        """Time of the capture's first packet."""

    def __len__(self) -> int:
        return len(self._request)

    def _of(self, name: str) -> Int64:
        values: Int64 = getattr(self._indexer.table, name).values[self._rows]
        return values

    @cached_property
    def _request(self) -> Int64:
        return self._of("request")

    @cached_property
    def _response(self) -> Int64:
        return self._of("response")

    @cached_property
    def has_request_frame(self) -> Bool:
        """Which rows have a frame from the client, of any kind of row."""
        flags: Bool = self._request != NO_FRAME
        return flags

    @cached_property
    def has_response_frame(self) -> Bool:
        """Which rows have a frame from the server, of any kind of row."""
        flags: Bool = self._response != NO_FRAME
        return flags

    @cached_property
    def is_exchange(self) -> Bool:
        """Which rows are exchanges."""
        flags: Bool = self._of("kind") == RowKind.EXCHANGE
        return flags

    @cached_property
    def has_request(self) -> Bool:
        """Which rows are exchanges with their request."""
        return self.is_exchange & self.has_request_frame

    @cached_property
    def has_response(self) -> Bool:
        """Which rows are exchanges with their response."""
        return self.is_exchange & self.has_response_frame

    @cached_property
    def is_orphan(self) -> Bool:
        """Which rows are responses without their request: API and version are inferred when they are decoded."""
        return self.is_exchange & ~self.has_request_frame

    @cached_property
    def _is_frameless(self) -> Bool:
        """Which rows stand for bytes of a connection that is not Kafka's."""
        return ~self.has_request_frame & ~self.has_response_frame

    @cached_property
    def api_keys(self) -> Int64:
        """The API keys of requests, `(n,)`; those of other rows mean nothing."""
        return self._of("api_key")

    @cached_property
    def _times(self) -> tuple[Int64, Int64]:
        return self._frames("time_ns")

    @cached_property
    def _transfers(self) -> tuple[Int64, Int64]:
        """From the first byte to the last one of both sides; 0 where there is no frame."""
        found = np.zeros((2, len(self)), np.int64)
        for transfer, side in zip(found, (self._request, self._response), strict=True):
            there = side != NO_FRAME
            transfer[there] = self._indexer.frames.transfer_ns(side[there])
        return found[0], found[1]

    @cached_property
    def _sizes(self) -> tuple[Int64, Int64]:
        return self._frames("size")

    def _frames(self, name: str) -> tuple[Int64, Int64]:
        """A column of the frame table for both sides; the first frame's value where there is no frame."""
        values = getattr(self._indexer.frames, name).values
        if not len(values):
            return np.zeros(len(self), np.int64), np.zeros(len(self), np.int64)
        return values[np.maximum(self._request, 0)], values[np.maximum(self._response, 0)]

    @property
    def _all(self) -> Bool:
        return np.ones(len(self), np.bool_)

    def number(self) -> RowValues:
        rows = np.asarray(self._numbers, np.int64)
        return RowValues(rows + 1 + self._entries, self._all)

    def kind(self) -> RowValues:
        return RowValues(self._of("kind"), self._all, texts=KIND_NAMES.__getitem__)

    def api(self) -> RowValues:
        """The API's key, which is inferred for a response without its request."""
        return RowValues(self.api_keys, self.has_request, self.is_orphan)

    def api_key(self) -> RowValues:
        """The API's key as the request has it, or as the user says what a response answers."""
        if self._decoder.response_to is None:
            return RowValues(self.api_keys, self.has_request)
        keys = np.where(self.has_request_frame, self.api_keys, self._decoder.response_to[0])
        return RowValues(keys, self.is_exchange)

    def api_version(self) -> RowValues:
        return RowValues(self._of("version"), self.has_request, self.is_orphan)

    def client_id(self) -> RowValues:
        return RowValues(self._of("client_id"), self.has_request, texts=self._indexer.client_ids.texts.__getitem__)

    def client(self) -> RowValues:
        return RowValues(self._of("connection"), self._all, texts=lambda connection: self._decoder.ends(connection)[0])

    def server(self) -> RowValues:
        return RowValues(self._of("connection"), self._all, texts=lambda connection: self._decoder.ends(connection)[1])

    def connection(self) -> RowValues:
        return RowValues(self._of("connection").astype(np.int64) + 1 + self._files, self._all)

    def texts_of_connection(self, value: Callable[[ConnectionFacts], str | None]) -> RowValues:
        """A text of the connection of each row."""
        return RowValues(self._of("connection"), self._all, texts=lambda number: value(self._decoder.facts(number)))

    def numbers_of_connection(self, value: Callable[[ConnectionFacts], int | None]) -> RowValues:
        """A number of the connection of each row."""
        distinct, inverse = np.unique(self._of("connection"), return_inverse=True)
        found = [value(self._decoder.facts(number)) for number in distinct.tolist()]
        values = np.array([number or 0 for number in found], np.int64)
        present = np.array([number is not None for number in found], np.bool_)
        return RowValues(values[inverse], present[inverse])

    def tls_version(self) -> RowValues:
        return self._of_tls(lambda session: session.version)

    def tls_cipher(self) -> RowValues:
        return self._of_tls(lambda session: session.cipher)

    def tls_sni(self) -> RowValues:
        return self._of_tls(lambda session: session.server_name)

    def tls_principal(self) -> RowValues:
        return self._of_tls(lambda session: session.principal)

    def tls_resumed(self) -> RowValues:
        return self._of_tls(lambda session: truth(session.is_resumed))

    def tls_state(self) -> RowValues:
        return self._of_tls(lambda session: session.state.value)

    def _of_tls(self, value: Callable[[TlsSession], str | None]) -> RowValues:
        def text(connection: int) -> str | None:
            session = self._decoder.tls_session(connection)
            return None if session is None else value(session)

        return RowValues(self._of("connection"), self._all, texts=text)

    def correlation_id(self) -> RowValues:
        return RowValues(self._of("correlation_id"), self.is_exchange)

    @property
    def _has_latency(self) -> Bool:
        return self.has_request & self.has_response_frame

    def latency(self) -> RowValues:
        """Nanoseconds, as in `wait` and the transfers."""
        requested, responded = self._times
        return RowValues(responded + self._transfers[1] - requested, self._has_latency)

    def request_transfer(self) -> RowValues:
        return RowValues(self._transfers[0], self.has_request)

    def wait(self) -> RowValues:
        requested, responded = self._times
        return RowValues(responded - requested - self._transfers[0], self._has_latency)

    def response_transfer(self) -> RowValues:
        return RowValues(self._transfers[1], self.has_response)

    def packet(self) -> RowValues:
        """Wireshark's number of the packet with which a row begins."""
        return RowValues(self._of("packet") + 1, self._all)

    def response_packet(self) -> RowValues:
        """Wireshark's number of the packet with the first byte of the response."""
        return RowValues(self._frames("packet")[1] + 1, self.has_response)

    def time(self) -> RowValues:
        """Nanoseconds since 1970."""
        requested, responded = self._times
        return RowValues(np.where(self.has_request_frame, requested, responded), self._all, self._is_frameless)

    def request_time(self) -> RowValues:
        """Nanoseconds since 1970."""
        return RowValues(self._times[0], self.has_request_frame, self._is_frameless)

    def response_time(self) -> RowValues:
        """Nanoseconds since 1970."""
        return RowValues(self._times[1], self.has_response_frame, self._is_frameless)

    def request(self) -> RowValues:
        return RowValues(self.api_keys, self.has_request)

    def response(self) -> RowValues:
        return RowValues(self.api_keys, self.has_response)

    def request_size(self) -> RowValues:
        """Bytes, size prefix included."""
        return RowValues(self._sizes[0], self.has_request_frame, self._is_frameless)

    def response_size(self) -> RowValues:
        """Bytes, size prefix included."""
        return RowValues(self._sizes[1], self.has_response_frame, self._is_frameless)

    @cached_property
    def _message_summaries(self) -> tuple[Int64, Sequence[Summary]]:
        return self._known_summaries.message_summaries(np.asarray(self._numbers, np.int64))

    @cached_property
    def _cross_message_summaries(self) -> tuple[Int64, Sequence[Summary]]:
        return self._known_summaries.cross_message_summaries(np.asarray(self._numbers, np.int64))

    @property
    def reads_messages(self) -> bool:
        """Whether `answers` can be asked for."""
        return self._messages is not None

    def answers(self, question: MessageQuestion, side: str, at: Int64) -> Answers:
        """The answers to a question about the messages of one side, of the rows at these places, ascending."""
        assert self._messages is not None, "these rows were taken without their messages"
        return self._messages.of(question, side, np.asarray(self._numbers, np.int64)[at])

    @property
    def _known_summaries(self) -> Summaries:
        assert self._summaries is not None, "these rows were taken without their findings"
        return self._summaries

    @property
    def _is_unexamined(self) -> Bool:
        unexamined: Bool = self._message_summaries[0] == 0
        return unexamined

    def findings(self) -> RowValueSets:
        """The codes of findings. Of rows with a cause of their silence, `unanswered` is none (`silence_causes`)."""
        numbers, values = self._message_summaries
        examined, of_examination = self._cross_message_summaries
        codes = [frozenset(each.codes) for each in values]
        says_why = np.array([not SILENCE_CAUSES.isdisjoint(each.codes) for each in of_examination], np.bool_)
        of_rows = numbers + len(codes) * says_why[examined]
        codes += [each - {UNANSWERED_CODE} for each in codes]
        sets = (of_rows, codes), (examined, [each.codes for each in of_examination])
        return RowValueSets(sets, self._is_unexamined)

    def severity(self) -> RowValues:
        """The worst severity's place in `Severity`."""
        of_message, cross_message = (
            np.array([each.severity for each in values])[numbers]
            for numbers, values in (self._message_summaries, self._cross_message_summaries)
        )
        worst = np.maximum(of_message, cross_message)
        return RowValues(worst, worst != NO_SEVERITY, self._is_unexamined)

    def errors(self) -> RowValueSets:
        """Error codes of the response."""
        numbers, values = self._message_summaries
        return RowValueSets(((numbers, [each.errors for each in values]),), self._is_unexamined)
