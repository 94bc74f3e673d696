"""Clients that repeat ApiVersions in a lower version."""

from typing import ClassVar, NamedTuple

import numpy as np

from dissector.core.arrays import Bool
from dissector.core.finding import Severity
from dissector.findings.explanation import Explanation
from dissector.findings.framework.context import FindingContext
from dissector.findings.framework.decoded_exchange import DecodedExchange
from dissector.findings.framework.detector import Aggregator
from dissector.findings.framework.examined_rows import ExaminedRows
from dissector.findings.framework.extractor import ONE_PER_SCOPE, Extractor, ObservationSink
from dissector.findings.framework.recurrence import BoundedStates
from dissector.protocol.schema.api_keys import ApiKey
from dissector.protocol.schema.error_codes import ErrorCode


class LowerVersion(NamedTuple):
    """A connection repeats ApiVersions in a lower version."""

    version: int
    rejected: int
    time_ns: int


class RejectionExtractor(Extractor):
    """Observes by client which version of ApiVersions a connection uses after one was rejected."""

    apis: ClassVar = frozenset((ApiKey.API_VERSIONS,))

    def __init__(self, context: FindingContext, sink: ObservationSink) -> None:
        super().__init__(context, sink)
        self._rejected: BoundedStates[int, list[int]] = BoundedStates(list)
        """By connection: the version that was rejected."""

    def needed(self, rows: ExaminedRows, is_clean: Bool) -> Bool:
        """Without an error, only what follows a rejection on its connection."""
        after = np.concatenate([rows.connection[~is_clean], np.array(list(self._rejected), np.int64)])
        return ~is_clean | np.isin(rows.connection, after)

    def examine_exchange(self, exchange: DecodedExchange) -> None:
        """Observe a lower version after UNSUPPORTED_VERSION."""
        rejected = self._rejected.get(exchange.connection)
        if ErrorCode.UNSUPPORTED_VERSION in exchange.errors:
            self._rejected.of(exchange.connection)[:] = [exchange.version]
        elif rejected and exchange.version < rejected[0]:
            self._rejected.forget(exchange.connection)
            observed = LowerVersion(exchange.version, rejected[0], exchange.request_ns)
            self.observe((self.context.client(exchange.connection),), exchange.row, exchange.position, observed)


class VersionSteppedDown(Aggregator[LowerVersion]):
    """Finds clients that repeat ApiVersions in a lower version."""

    extractor: ClassVar = RejectionExtractor
    explanation: ClassVar = Explanation(
        "version-stepped-down",
        "ApiVersions repeated in a lower version",
        Severity.NOTE,
        "ApiVersions was rejected with UNSUPPORTED_VERSION, and the client repeated it in a version that the broker "
        "has.",
        "The client is newer than the broker: it starts with the newest version that it knows. KIP-511 specifies "
        "this; it costs a round trip for each connection.",
        "Nothing, if the broker is meant to be older. Otherwise upgrade it. A client that does this on every "
        "connection could remember the broker's response.",
    )

    def add(self, row: int, observed: LowerVersion) -> None:
        """Report one finding for each client."""
        words = f"repeated with v{observed.version} after v{observed.rejected} was rejected"
        self.report_repeated(
            ONE_PER_SCOPE, row, observed.time_ns, words, "request.header.request_api_version", "connections"
        )
