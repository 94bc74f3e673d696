"""Responses that a quota throttled."""

from typing import ClassVar, NamedTuple

from dissector.core.finding import Severity
from dissector.core.times import SECOND
from dissector.findings.explanation import Explanation
from dissector.findings.framework.decoded_exchange import DecodedExchange
from dissector.findings.framework.detector import Aggregator
from dissector.findings.framework.extractor import ONE_PER_SCOPE, Extractor
from dissector.protocol.schema.loader import api_name


class ThrottledResponse(NamedTuple):
    """A response with a throttle time."""

    throttle_time_ms: int
    time_ns: int


class ThrottleExtractor(Extractor):
    """Observes throttled responses by client and API."""

    any_error: ClassVar = True

    def examine_exchange(self, exchange: DecodedExchange) -> None:
        """Observe `throttle_time_ms`."""
        throttle = exchange.response.get("throttle_time_ms")
        if isinstance(throttle, int) and throttle > 0:
            scope = (self.context.client(exchange.connection), exchange.api_key)
            self.observe(scope, exchange.row, exchange.position, ThrottledResponse(throttle, exchange.response_ns))


class Throttled(Aggregator[ThrottledResponse]):
    """Finds clients that a quota throttles."""

    extractor: ClassVar = ThrottleExtractor
    explanation: ClassVar = Explanation(
        "throttled",
        "Throttled by a quota",
        Severity.WARNING,
        "A response has a throttle_time_ms above 0: the client exceeded a quota, and the broker reads nothing from "
        "this connection for that time.",
        "A quota on bytes (producer_byte_rate, consumer_byte_rate), on request time (request_percentage) or on topic "
        "changes (controller_mutation_rate) is set for the user or the client id.",
        "Send or fetch less at a time, compress (compression.type), spread the load, or raise the quota "
        "(kafka-configs --entity-type users or clients). Clients must wait that long before they send again "
        "(KIP-219).",
    )
    quiet_ns: ClassVar = 60 * SECOND

    def add(self, row: int, observed: ThrottledResponse) -> None:
        """Report one finding for each scope. It ends after a minute without throttling."""
        words = f"{api_name(int(self.scope[1]))} was throttled for {observed.throttle_time_ms:,} ms"
        self.report_repeated(
            ONE_PER_SCOPE, row, observed.time_ns, words, "response.body.throttle_time_ms", "such responses"
        )
