"""Requests on which a connection was closed: one cause for each connection, and one finding for each cause.

A cause is a `CloseCause`: when it applies, what it says, and the contradictions for which it is withheld
(`contradictions`). Of those that apply and that nothing contradicts a connection has the first, in the order of
`detectors/close_causes.py`. So one close has one finding, and a client that reconnects a thousand times has one with a
count.
"""

from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar, Final, NamedTuple

import numpy as np

from dissector.core.arrays import Bool
from dissector.core.batches import NEVER
from dissector.core.columns import tuples, unique
from dissector.core.times import SECOND
from dissector.findings.framework.connection_end import ConnectionEnd
from dissector.findings.framework.context import FindingContext
from dissector.findings.framework.contradictions import Contradiction
from dissector.findings.framework.detector import Aggregator
from dissector.findings.framework.examined_rows import ExaminedRows
from dissector.findings.framework.extractor import NO_API, Apis, Extractor, ObservationSink
from dissector.findings.framework.recurrence import BoundedStates
from dissector.protocol.schema.api_groups import HARMLESS_IN_FLIGHT, WAITING
from dissector.protocol.schema.api_keys import ApiKey

PATIENCE_NS: Final = 5 * SECOND
"""A client that waited so long for what brokers answer at once gave up."""
PATIENCE_AT_START_NS: Final = 2 * SECOND
"""The same for ApiVersions, the first request of a connection."""
NO_CAUSE: Final = ""
"""Nothing is said of the connection here: another detector does."""


class ClosedRequest(NamedTuple):
    """A request without a response on a connection that was closed."""

    code: str
    """Of the cause."""
    kind: str
    """Closes of one kind are one finding."""
    words: str
    more: str
    """What is added at the end of the message."""
    path: str
    is_first: bool
    """Whether it is the connection's first request without a response."""
    connection: int
    """Its first packet."""
    request_ns: int
    closed_ns: int


class CloseExtractor(Extractor):
    """Observes the causes of closed connections, by client and server."""

    only_unanswered: ClassVar = True

    def __init__(self, context: FindingContext, sink: ObservationSink) -> None:
        super().__init__(context, sink)
        self._causes: BoundedStates[int, list[_Stated]] = BoundedStates(list)
        """By connection: its cause."""
        self._left_out: BoundedStates[int, list[int]] = BoundedStates(list)
        """By connection: its first request without a response, of those that a client may stop with."""

    def needed_apis(self, rows: ExaminedRows, _is_clean: Bool) -> Apis:
        """All, if one of these rows has no response: a finding counts the connections of a client."""
        return None if len(rows.unanswered.row) else NO_API

    def examine_rows(self, rows: ExaminedRows) -> None:
        """Observe the first request without a response of each connection; of some causes all of them."""
        some = rows.unanswered
        fitting = self.context.surely_fit(some.row)
        closed = {each: self.context.closed(each) for each in unique(some.connection).tolist()}
        self.context.look_at(np.array([each for each, end in closed.items() if end[0] != NEVER], np.int64))
        columns = some.row, some.connection, some.packet, some.request_start, some.api_key, some.request_ns, fitting
        for row, connection, packet, start, key, request_ns, fits in tuples(*columns):
            closed_ns, by_client = closed[connection]
            if closed_ns == NEVER:
                continue
            known = self._causes.of(connection)
            is_first = not known
            if by_client and not _gave_up(key, closed_ns - request_ns) and not self._is_left_out(connection, row):
                continue
            if is_first:
                known.append(_stated(ConnectionEnd(self.context, connection, row, fits=fits)))
            code, kind, words, more, path, counts_requests = known[0]
            if code == NO_CAUSE or not (is_first or counts_requests):
                continue
            scope = self.context.client(connection), self.context.server(connection)
            first_packet = self.context.first_packet(connection)
            observed = ClosedRequest(code, kind, words, more, path, is_first, first_packet, request_ns, closed_ns)
            self.observe(scope, row, (packet, start), observed)

    def _is_left_out(self, connection: int, row: int) -> bool:
        """Whether the broker surely answered requests behind the first one of a connection that it did not answer."""
        looked_at = self._left_out.of(connection)
        if looked_at:
            return False
        looked_at.append(row)
        end = ConnectionEnd(self.context, connection, row)
        return end.is_left_out and not end.has_gaps


class _Stated(NamedTuple):
    """What is said of a connection."""

    code: str
    kind: str
    words: str
    more: str
    path: str
    counts_requests: bool


def _gave_up(key: int, waited_ns: int) -> bool:
    """Whether a client that closes its connection gave up on a request, rather than stopped with it in flight."""
    patience_ns = PATIENCE_AT_START_NS if key == ApiKey.API_VERSIONS else PATIENCE_NS
    return key not in HARMLESS_IN_FLIGHT or (key not in WAITING and waited_ns >= patience_ns)


def _stated(end: ConnectionEnd) -> _Stated:
    found = cause_of(end)
    if found is None:
        return _Stated(NO_CAUSE, "", "", "", "", False)
    return _Stated(
        found.explanation.code, found.kind(end), found.words(end), found.more(end), found.path(end),
        found.counts_requests,
    )  # fmt: skip


class CloseCause(Aggregator[ClosedRequest]):
    """Why a connection was closed on a request. Findings count the connections of a client to a server."""

    extractor: ClassVar = CloseExtractor
    contradictions: ClassVar[Sequence[Contradiction]]
    """What must not be true."""
    counts_requests: ClassVar[bool] = False
    """Whether every request without a response is observed, and not only the first one of a connection."""

    @classmethod
    @abstractmethod
    def applies(cls, end: ConnectionEnd) -> bool:
        """Whether the connection looks as if this were the cause."""

    @classmethod
    @abstractmethod
    def words(cls, end: ConnectionEnd) -> str:
        """Return the message, which says "may" where another cause fits as well."""

    @classmethod
    def more(cls, _end: ConnectionEnd) -> str:
        """Return what is added at the end of the message."""
        return ""

    @classmethod
    def kind(cls, end: ConnectionEnd) -> str:
        """Return what closes have in common that are one finding."""
        return end.name

    @classmethod
    def path(cls, _end: ConnectionEnd) -> str:
        """Return the field that the finding is about."""
        return "request"

    def add(self, row: int, observed: ClosedRequest) -> None:
        """Report one finding for each kind, and count its connections."""
        if observed.code == self.explanation.code:
            words = observed.words + observed.more
            self.report_repeated(observed.kind, row, observed.request_ns, words, observed.path, "connections")


CAUSES: Final[list[type[CloseCause]]] = []
"""In the order in which they are tried."""


def in_this_order(*causes: type[CloseCause]) -> tuple[type[CloseCause], ...]:
    """Have causes tried in this order, and return them."""
    CAUSES[:] = causes
    return causes


def cause_of(end: ConnectionEnd) -> type[CloseCause] | None:
    """Return the first cause that applies and that nothing contradicts."""
    for found in CAUSES:
        if found.applies(end) and not any(contradicts(end) for contradicts in found.contradictions):
            return found
    return None
