"""Fetches that may wait longer than is good: than their client has patience, or with other requests behind them."""

from typing import ClassVar, Final, NamedTuple

import numpy as np

from dissector.core.arrays import Bool
from dissector.core.batches import NEVER
from dissector.core.columns import is_in, tuples
from dissector.core.finding import Severity
from dissector.core.text import duration
from dissector.core.times import MILLISECOND, SECOND
from dissector.findings.explanation import Explanation
from dissector.findings.framework.closed_requests import PATIENCE_NS
from dissector.findings.framework.context import FindingContext
from dissector.findings.framework.detector import Aggregator, ConnectionDetector
from dissector.findings.framework.examined_rows import ExaminedRows
from dissector.findings.framework.extractor import NO_API, ONE_PER_SCOPE, Apis, Extractor, Scope
from dissector.findings.framework.open_findings import FindingSink
from dissector.findings.framework.recurrence import BoundedStates
from dissector.protocol.schema.api_groups import WAITING
from dissector.protocol.schema.api_keys import ApiKey
from dissector.protocol.schema.loader import api_name

ALIKE: Final = 0.05
"""A timeout cuts waits to the same length, but for this part of it; a client that stops does so at any time."""
_WAITING: Final = np.array(sorted(WAITING), np.int64)
LONG_NS: Final = 10 * SECOND
"""Below, that a request waited behind another one is nothing: some clients let all Fetches wait for five seconds."""
TOGETHER_NS: Final = 50 * MILLISECOND
"""Responses that were ready come so soon after the one that they waited for."""


class CutWait(NamedTuple):
    """A Fetch whose connection the client closed before it had to be answered."""

    closed_ns: int
    waited_ns: int
    allowed_ns: int


class CutWaits(Extractor):
    """Observes them, by client and server."""

    only_unanswered: ClassVar = True

    def needed_apis(self, rows: ExaminedRows, _is_clean: Bool) -> Apis:
        """Fetch, if one of these rows is one without a response."""
        return frozenset((ApiKey.FETCH,)) if (rows.unanswered.api_key == ApiKey.FETCH).any() else NO_API

    def examine_rows(self, rows: ExaminedRows) -> None:
        """Look at the Fetches that waited for long."""
        some = rows.unanswered
        some = some.where(some.api_key == ApiKey.FETCH)
        ends = [self.context.closed(connection) for connection in some.connection.tolist()]
        closed_ns = np.array([end_ns if by_client else NEVER for end_ns, by_client in ends], np.int64)
        waited_ns = closed_ns - some.request_ns
        is_cut = (closed_ns != NEVER) & (waited_ns >= PATIENCE_NS)
        some, closed_ns, waited_ns = some.where(is_cut), closed_ns[is_cut], waited_ns[is_cut]
        columns = some.row, some.connection, some.packet, some.request_start, closed_ns, waited_ns
        asked = self.context.request_numbers(some.row, "max_wait_ms")
        for (row, connection, packet, start, end_ns, cut_ns), allowed in zip(tuples(*columns), asked, strict=True):
            if isinstance(allowed, int) and cut_ns < allowed * MILLISECOND:
                scope = self.context.client(connection), self.context.server(connection)
                self.observe(scope, row, (packet, start), CutWait(end_ns, cut_ns, allowed * MILLISECOND))


class ImpatientClient(Aggregator[CutWait]):
    """Finds clients that give up on Fetches before the broker has to answer."""

    extractor: ClassVar = CutWaits
    explanation: ClassVar = Explanation(
        "wait-cut-short",
        "Client gives up before a Fetch must be answered",
        Severity.ERROR,
        "A client closed connections with a Fetch in flight, always the same time after the Fetch, although "
        "max_wait_ms allows the broker to wait longer.",
        "The client's request timeout is below the time that it lets the broker wait for records. Where there are "
        "none, each Fetch ends in a disconnect and a new connection.",
        "Set fetch.max.wait.ms (fetch.wait.max.ms in librdkafka, maxWaitTimeInMs in kafkajs) well below "
        "request.timeout.ms (socket.timeout.ms, requestTimeout).",
    )

    def __init__(self, found: FindingSink, scope: Scope) -> None:
        super().__init__(found, scope)
        self._waited_ns = 0

    def add(self, row: int, observed: CutWait) -> None:
        """Report one finding for each client, from the second wait of a length on."""
        is_alike = abs(observed.waited_ns - self._waited_ns) <= ALIKE * observed.waited_ns
        self._waited_ns = observed.waited_ns
        if is_alike:
            words = (
                f"the client closes the connection {duration(observed.waited_ns)} after a Fetch, again and again, and "
                f"max_wait_ms lets the broker wait {duration(observed.allowed_ns)}: set it below the client's request "
                "timeout"
            )
            self.report_repeated(
                ONE_PER_SCOPE, row, observed.closed_ns, words, "request.body.max_wait_ms", "connections"
            )


class _Wait(NamedTuple):
    """The last long exchange of a connection whose response may wait on purpose."""

    api_key: int
    request_ns: int
    end_ns: int


class WaitsBehind(ConnectionDetector):
    """Finds requests that waited for the response of a Fetch or the like before them, on the same connection."""

    explanation: ClassVar = Explanation(
        "waits-behind",
        "Request that waited behind a Fetch",
        Severity.WARNING,
        "A request was sent on a connection on which a Fetch, JoinGroup or the like was waiting on purpose, and its "
        "response came together with that of the other one, ten seconds or more later.",
        "A broker answers the requests of a connection in order, so whatever is queued behind a long Fetch waits for "
        "it: a heartbeat that waits for longer than session.timeout.ms costs the member its place in the group.",
        "Lower the wait (fetch.max.wait.ms, fetch.wait.max.ms in librdkafka), or use another connection for "
        "coordinator requests, as Kafka's own client does.",
    )
    quiet_ns: ClassVar = 60 * SECOND

    def __init__(self, sink: FindingSink, context: FindingContext) -> None:
        super().__init__(sink, context)
        self._waits: BoundedStates[int, list[_Wait]] = BoundedStates(list)

    def examine_rows(self, rows: ExaminedRows) -> None:
        """Compare the exchanges that took long with the wait before them."""
        some = rows.where(rows.has_both & (rows.latency_ns >= LONG_NS))
        is_waiting = is_in(some.api_key.astype(np.int64), _WAITING)
        columns = some.row, some.connection, some.api_key, some.request_ns, some.response_ns, is_waiting
        for row, connection, key, request_ns, end_ns, waits in tuples(*columns):
            if waits:
                self._waits.of(connection)[:] = [_Wait(key, request_ns, end_ns)]
                continue
            before = self._waits.get(connection)
            if not before or not before[0].request_ns <= request_ns < before[0].end_ns:
                continue
            if 0 <= end_ns - before[0].end_ns <= TOGETHER_NS:
                words = (
                    f"{api_name(key)} waited {duration(end_ns - request_ns)} behind {api_name(before[0].api_key)} on "
                    "the same connection, as brokers answer in order: lower max_wait_ms, or use another connection"
                )
                self.report_repeated((connection, key), row, end_ns, words, "response", "times")
