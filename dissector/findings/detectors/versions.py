"""Versions: those that the broker did not advertise, and clients that step down."""

from typing import ClassVar, NamedTuple

import numpy as np

from dissector.core.arrays import Bool, Int64
from dissector.core.columns import is_in, tuples
from dissector.core.finding import Severity
from dissector.findings.explanation import Explanation
from dissector.findings.framework.client_advice import client_advice
from dissector.findings.framework.context import FindingContext
from dissector.findings.framework.decoded_exchange import DecodedExchange
from dissector.findings.framework.detector import Aggregator
from dissector.findings.framework.examined_rows import ExaminedRows
from dissector.findings.framework.extractor import NO_API, ONE_PER_SCOPE, Apis, Extractor, ObservationSink, Scope
from dissector.findings.framework.open_findings import FindingSink
from dissector.findings.framework.recurrence import BoundedStates
from dissector.index.exchange_table import NO_FRAME
from dissector.protocol.schema.api_keys import ApiKey
from dissector.protocol.schema.error_codes import ErrorCode
from dissector.protocol.schema.loader import api_name


class NotAdvertised(NamedTuple):
    """The range of versions that the broker advertised."""

    low: int
    high: int
    """Below `low` if it advertised none."""
    is_asked: bool
    """Whether the client had asked with ApiVersions on the same connection."""
    older: str
    """How to have this client use the versions of a broker that is older than it."""
    fixed: str
    """The same where it does not ask for them."""
    newer: str
    """How to have it use the versions of a newer one."""


class VersionExtractor(Extractor):
    """Observes versions that a broker did not advertise, by client, API and version."""

    def examine_rows(self, rows: ExaminedRows) -> None:
        """Examine the first row of each connection, API and version. Of a request that can't be read the version may be
        no version."""
        some = self._refused(rows)
        fitting = self.context.surely_fit(some.row)
        columns = some.row, some.connection, some.api_key, some.version, some.packet, some.request_start, fitting
        for row, connection, key, version, packet, start, fits in tuples(*columns):
            if not fits and self.context.request_faults(row):
                continue
            low, high = self.context.offered(connection).get(key, (0, -1))
            advice = client_advice(self.context.software(connection), self.context.client_id(row))
            is_asked = self._is_asked(connection, start)
            offer = NotAdvertised(low, high, is_asked, advice.older, advice.fixed, advice.newer)
            self.observe((self.context.client(connection), key, version), row, (packet, start), offer)

    def _is_asked(self, connection: int, before: int) -> bool:
        """Return whether a connection has ApiVersions before an offset of the client's stream."""
        rows = self.context.rows_of(connection)
        asks = rows.is_exchange & (rows.api_key == ApiKey.API_VERSIONS) & (rows.request != NO_FRAME)
        return bool((rows.request_start[asks] < before).any())

    def needed_apis(self, rows: ExaminedRows, _is_clean: Bool) -> Apis:
        """All, if one of these rows is in a version that its broker did not advertise."""
        return None if len(self._refused(rows).row) else NO_API

    def _refused(self, rows: ExaminedRows) -> ExaminedRows:
        """Return the first row of each connection, API and version that the broker did not advertise."""
        which = np.flatnonzero(rows.is_exchange & (rows.request != NO_FRAME) & (rows.api_key != ApiKey.API_VERSIONS))
        pairs = rows.connection[which] << 32 | (rows.api_key[which] & 0xFFFF) << 16 | (rows.version[which] & 0xFFFF)
        first = which[np.sort(np.unique(pairs, return_index=True)[1])]
        is_refused = self._is_refused(*(each[first] for each in (rows.connection, rows.api_key, rows.version)))
        return rows.where(first[is_refused])

    def _is_refused(self, connection: Int64, key: Int64, version: Int64) -> Bool:
        """Return which versions a broker did not advertise. Most connections have the same offers: each offer is asked
        once for each API and version."""
        found, at = np.unique(connection, return_inverse=True)
        offers = [self.context.offered(each) for each in found.tolist()]
        numbers = {id(offer): number for number, offer in enumerate(offers)}
        offer = np.array([numbers[id(each)] for each in offers], np.int64)[at]
        asked = offer << 32 | (key & 0xFFFF) << 16 | (version & 0xFFFF)
        _, first, which = np.unique(asked, return_index=True, return_inverse=True)
        examples = tuples(*(each[first] for each in (connection, key, version)))
        is_refused = [not self.context.is_offered(*example) for example in examples]
        return np.array(is_refused, np.bool_)[which]


class VersionNotOffered(Aggregator[NotAdvertised]):
    """Finds requests in versions that the broker did not advertise."""

    extractor: ClassVar = VersionExtractor
    explanation: ClassVar = Explanation(
        "version-not-offered",
        "Version that the broker did not advertise",
        Severity.ERROR,
        "The request has a version outside the range in this broker's ApiVersions response, or an API that is not in "
        "it.",
        "The client does not use ApiVersions, uses the response of a broker of another release (during an upgrade), "
        "or has its versions fixed by a setting (api.version.request, broker.version.fallback, api_version).",
        "Use the highest version that both sides have, separately for each broker. Brokers close the connection on "
        "requests that they can't read; only ApiVersions gets a response, with UNSUPPORTED_VERSION.",
    )

    def __init__(self, found: FindingSink, scope: Scope) -> None:
        super().__init__(found, scope)
        self._is_reported = False

    def add(self, row: int, observed: NotAdvertised) -> None:
        """Report one finding for each scope."""
        if not self._is_reported:
            self._is_reported = True
            _, key, version = self.scope
            words = f"{api_name(int(key))} v{version}, but the broker {_offer_and_advice(int(version), observed)}"
            self.report(row, words, "request.header.request_api_version")


def _offer_and_advice(version: int, offer: NotAdvertised) -> str:
    """Return what the broker advertised instead, and what to change: nothing that the client did already."""
    if offer.low > offer.high:
        return "did not advertise the API: use a broker that has it, or a client that does without"
    if offer.is_asked and version > offer.high:
        advice = f"the client asked and did not heed it: correct it, or {offer.older}"
    elif version < offer.low:
        advice = offer.newer
    else:
        advice = f"upgrade the broker, have the client ask it with ApiVersions, or {offer.fixed}"
    return f"advertised v{offer.low}–v{offer.high}: {advice}"


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
        return ~is_clean | is_in(rows.connection, after)

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
