"""Clients that repeat ApiVersions in a lower version."""

from typing import ClassVar, NamedTuple

from dissector.core.finding import Severity
from dissector.findings.explanation import Explanation
from dissector.findings.framework.context import FindingContext
from dissector.findings.framework.decoded_exchange import DecodedExchange
from dissector.findings.framework.detector import Aggregator
from dissector.findings.framework.extractor import ONE_PER_SCOPE, Extractor, ObservationSink
from dissector.findings.framework.recurrence import BoundedStates
from dissector.protocol.schema.api_keys import ApiKey
from dissector.protocol.schema.error_codes import ErrorCode


class LowerVersion(NamedTuple):
    """A connection asks again, lower."""

    version: int
    refused: int
    time_ns: int


class RefusalExtractor(Extractor):
    """Versions of ApiVersions that a connection asked in after one was refused, by client."""

    apis: ClassVar = frozenset((ApiKey.API_VERSIONS,))

    def __init__(self, context: FindingContext, sink: ObservationSink) -> None:
        super().__init__(context, sink)
        self._refused: BoundedStates[int, list[int]] = BoundedStates(list)
        """By connection: the version that was refused."""

    def examine_exchange(self, exchange: DecodedExchange) -> None:
        """A refusal, and then a lower version."""
        refused = self._refused.of(exchange.connection)
        if ErrorCode.UNSUPPORTED_VERSION in exchange.errors:
            refused[:] = [exchange.version]
        elif refused and exchange.version < refused[0]:
            observed = LowerVersion(exchange.version, refused.pop(), exchange.request_ns)
            self.observe((self.context.client(exchange.connection),), exchange.row, exchange.position, observed)


class VersionSteppedDown(Aggregator[LowerVersion]):
    """A client that asks again, lower."""

    extractor: ClassVar = RefusalExtractor
    explanation: ClassVar = Explanation(
        "version-stepped-down",
        "The client asks again in a lower version",
        Severity.NOTE,
        "ApiVersions was refused with UNSUPPORTED_VERSION, and the client asked again in one that the broker has.",
        "The client is newer than the broker: it begins with the newest version that it knows. This is how KIP-511 "
        "means it; it costs a round trip a connection.",
        "Nothing, if the broker is older on purpose. Else upgrade it. A client that asks high on every connection "
        "could remember what the broker said.",
    )

    def add(self, row: int, observed: LowerVersion) -> None:
        """Once a client."""
        words = f"asked again with v{observed.version}, as v{observed.refused} was refused"
        self.report_repeated(
            ONE_PER_SCOPE, row, observed.time_ns, words, "request.header.request_api_version", "connections"
        )
