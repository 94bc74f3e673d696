"""Clients that request metadata again and again."""

from collections import Counter
from collections.abc import Mapping
from typing import ClassVar, Final, NamedTuple

import numpy as np

from dissector.core.arrays import Bool
from dissector.core.columns import is_in, tuples
from dissector.core.finding import Severity
from dissector.core.text import counted
from dissector.core.times import SECOND
from dissector.findings.explanation import Explanation
from dissector.findings.framework.context import FindingContext
from dissector.findings.framework.decoded_exchange import DecodedExchange
from dissector.findings.framework.detector import Aggregator
from dissector.findings.framework.examined_rows import ExaminedRows
from dissector.findings.framework.extractor import NO_API, Apis, Extractor, ObservationSink, Scope
from dissector.findings.framework.open_findings import FindingSink, OpenFinding
from dissector.findings.framework.recurrence import BoundedStates, Burst
from dissector.index.exchange_table import NO_FRAME
from dissector.protocol.schema.api_keys import ApiKey
from dissector.protocol.schema.errors import error_name

MANY: Final = 30
SPAN_NS: Final = 10 * SECOND


class FailedResponse(NamedTuple):
    """A response of any API with errors."""

    errors: tuple[str, ...]


class MetadataBurst(NamedTuple):
    """A connection that has requested metadata many times, and does so again."""

    connection: int
    """The connection's first packet."""
    is_new: bool
    """Whether the burst was not observed before."""
    times: int
    took: str
    """Duration, as text."""


class MetadataExtractor(Extractor):
    """Observes bursts of a connection and errors of a client."""

    apis: ClassVar = frozenset((ApiKey.METADATA,))
    any_error: ClassVar = True

    def __init__(self, context: FindingContext, sink: ObservationSink) -> None:
        super().__init__(context, sink)
        self._bursts: BoundedStates[int, Burst] = BoundedStates(Burst)
        self._observed: dict[int, MetadataBurst] = {}
        """By row, of those that came last."""

    def examine_rows(self, rows: ExaminedRows) -> None:
        """Find the requests for metadata that are part of a burst: few are, and the others need not be decoded."""
        asks = rows.where(rows.is_exchange & (rows.api_key == ApiKey.METADATA) & (rows.request != NO_FRAME))
        self._observed = {}
        for row, connection, time_ns in tuples(asks.row, asks.connection, asks.request_ns):
            burst = self._bursts.of(connection)
            if burst.is_on(time_ns, MANY, SPAN_NS):
                first_packet = self.context.first_packet(connection)
                self._observed[row] = MetadataBurst(first_packet, burst.is_new, burst.count, burst.took(time_ns))

    def needed_apis(self, rows: ExaminedRows, _is_clean: Bool) -> Apis:
        """All, for Metadata: errors of any API may be why it is requested again and again."""
        return None if (rows.api_key == ApiKey.METADATA).any() else NO_API

    def needed(self, rows: ExaminedRows, _is_clean: Bool) -> Bool:
        """Only those of bursts."""
        return is_in(rows.row, np.array(list(self._observed), np.int64))

    def examine_exchange(self, exchange: DecodedExchange) -> None:
        """Observe errors of any API, as reasons, and bursts of Metadata."""
        if exchange.errors:
            errors = tuple(error_name(code) for code in dict.fromkeys(exchange.errors))
            self._observe(exchange, FailedResponse(errors))
        burst = self._observed.get(exchange.row)
        if burst is not None:
            self._observe(exchange, burst)

    def _observe(self, exchange: DecodedExchange, observed: FailedResponse | MetadataBurst) -> None:
        scope = (self.context.client(exchange.connection),)
        self.observe(scope, exchange.row, exchange.position, observed)


class MetadataStorm(Aggregator[FailedResponse | MetadataBurst]):
    """Finds many Metadata requests on one connection."""

    extractor: ClassVar = MetadataExtractor
    explanation: ClassVar = Explanation(
        "metadata-storm",
        "Metadata requested repeatedly",
        Severity.WARNING,
        "A client requested metadata at least thirty times on one connection, without a pause of ten seconds. The "
        "message lists the errors that it had received before: they are usually the reason.",
        "A client refreshes its metadata when a leader has moved, a topic does not exist yet, or a connection broke. "
        "If the response does not help, some clients repeat the request at once. Creating a client for each message "
        "has the same effect.",
        "Create topics before they are used, or wait until their leaders are elected; create one client and reuse it. "
        "metadata.max.age.ms sets the interval when all is well, retry.backoff.ms "
        "(topic.metadata.refresh.fast.interval.ms in librdkafka) after an error.",
    )

    def __init__(self, found: FindingSink, scope: Scope) -> None:
        super().__init__(found, scope)
        self._findings: BoundedStates[int, list[OpenFinding]] = BoundedStates(list)
        self._errors: Counter[str] = Counter()

    def add(self, row: int, observed: FailedResponse | MetadataBurst) -> None:
        """Report one finding for each burst, with the errors of all connections of the client."""
        if isinstance(observed, FailedResponse):
            for error in observed.errors:
                self._errors[error] += 1
            return
        why = f" (errors until then: {tally(self._errors)})" if self._errors else ""
        words = f"{counted(observed.times, 'request')} for metadata{why} within {observed.took}"
        finding = self._findings.of(observed.connection)
        if observed.is_new or not finding:
            finding[:] = [self.report(row, words, "request")]
        else:
            finding[0].update(words)


NAMED: Final = 4


def tally(counts: Mapping[str, int]) -> str:
    """Return counts by name, the most frequent first: ``NOT_LEADER_OR_FOLLOWER 3, REQUEST_TIMED_OUT 1``."""
    return ", ".join(f"{name} {count:,}" for name, count in sorted(counts.items(), key=lambda each: -each[1])[:NAMED])
