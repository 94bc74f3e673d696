"""Clients that do not get beyond bootstrapping: brokers that advertise addresses of the client's own host, and clients
that connect again and again without a request that does anything."""

from functools import lru_cache
from ipaddress import ip_address
from itertools import compress
from typing import ClassVar, Final, NamedTuple

import numpy as np

from dissector.core.arrays import Bool, Int64
from dissector.core.batches import NEVER
from dissector.core.columns import is_in, tuples
from dissector.core.finding import Severity
from dissector.core.text import duration
from dissector.core.times import SECOND
from dissector.findings.explanation import Explanation
from dissector.findings.framework.advertised_brokers import Brokers
from dissector.findings.framework.context import FindingContext
from dissector.findings.framework.detector import Aggregator
from dissector.findings.framework.examined_rows import ExaminedRows
from dissector.findings.framework.extractor import NO_API, ONE_PER_SCOPE, Apis, Extractor, ObservationSink, Scope
from dissector.findings.framework.open_findings import FindingSink
from dissector.findings.framework.recurrence import MAX_KEYS, Burst
from dissector.index.exchange_table import NO_FRAME
from dissector.protocol.schema.api_keys import ApiKey

BOOTSTRAP: Final = np.array(
    [
        ApiKey.API_VERSIONS, ApiKey.METADATA, ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE,
        ApiKey.FIND_COORDINATOR, ApiKey.DESCRIBE_CLUSTER, ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, ApiKey.PUSH_TELEMETRY,
    ],
    np.int64,
)  # fmt: skip
"""APIs by which a client finds out where to go."""
MANY: Final = 10
SPAN_NS: Final = 30 * SECOND
"""So many connections within this time are a storm; a longer pause ends it."""
MOST_ADDRESSES: Final = 3


class Bootstrapped(NamedTuple):
    """A connection on which Metadata was answered, and nothing but bootstrapping so far."""

    time_ns: int
    answered_ns: int
    lived_ns: int
    """From this request until it was closed, below 0 where it was not yet."""
    by_client: bool
    advertised: tuple[str, ...]
    """Some of the addresses of brokers; none if the server's, by which the client reaches it, is among all."""
    own: tuple[str, ...]
    """Those of the client's own host."""
    own_path: str


class Worked(NamedTuple):
    """A connection on which something else was answered, or a request was not."""


class BootstrapExtractor(Extractor):
    """Observes by client and server: connections that begin, those that do more, the addresses in Metadata."""

    def __init__(self, context: FindingContext, sink: ObservationSink) -> None:
        super().__init__(context, sink)
        self._bootstrapped = _LatestConnections()
        self._worked = _LatestConnections()
        self._waiting = np.zeros(0, np.int64)
        """A connection of each client and server of which Metadata was observed, and since then no work."""

    def needed_apis(self, rows: ExaminedRows, _is_clean: Bool) -> Apis:
        """All, if one of these rows may be where a storm is recognized: Metadata of a later connection."""
        asks = rows.is_exchange & (rows.api_key == ApiKey.METADATA)
        if rows.connection[asks].max(initial=0) >= MANY - 1:
            return None
        return frozenset((ApiKey.METADATA,)) if asks.any() else NO_API

    def examine_rows(self, rows: ExaminedRows) -> None:
        """Observe which connections bootstrap, and which do more, in the order of rows: those that a finding may need.

        Most clients bootstrap and then work, on each connection; that tells neither detector anything."""
        some = self._first_rows(rows)
        bootstraps = _bootstraps(some)
        brokers = self.context.brokers(some.row[bootstraps])
        names_own = bootstraps.copy()
        names_own[bootstraps] = [_name_own_host(each) for each in brokers]
        is_told = self._are_told(some.connection, bootstraps, names_own)
        named, told = iter(compress(brokers, is_told[bootstraps].tolist())), some.where(is_told)
        columns = (
            told.row, told.connection, told.packet, told.request_start, told.request_ns, told.response_ns,
            bootstraps[is_told],
        )  # fmt: skip
        for row, connection, packet, start, request_ns, response_ns, is_bootstrap in tuples(*columns):
            scope = self.context.client(connection), self.context.server(connection)
            if not is_bootstrap:
                self.observe(scope, row, (packet, start), Worked())
                continue
            closed_ns, by_client = self.context.closed(connection)
            lived_ns = -1 if closed_ns == NEVER else max(0, closed_ns - request_ns)
            advertised = _advertised(next(named), *scope)
            observed = Bootstrapped(request_ns, response_ns, lived_ns, by_client, *advertised)
            self.observe(scope, row, (packet, start), observed)

    def _first_rows(self, rows: ExaminedRows) -> ExaminedRows:
        """Return the rows with which connections bootstrap for the first time, or work."""
        is_unanswered = rows.is_exchange & (rows.response == NO_FRAME)  # a cause of a close says more
        works = is_unanswered | (rows.has_both & ~is_in(rows.api_key, BOOTSTRAP))
        first = _first(rows, _bootstraps(rows)), _first(rows, works)
        bootstrapped, worked = (rows.where(each) for each in first)
        is_new = np.zeros(len(rows.row), np.bool_)
        is_new[np.flatnonzero(first[0])] = self._bootstrapped.are_new(bootstrapped.connection)
        is_new[np.flatnonzero(first[1])] |= self._worked.are_new(worked.connection)
        return rows.where(is_new)

    def _are_told(self, connection: Int64, bootstraps: Bool, names_own: Bool) -> Bool:
        """Return which of these connections, `(n,)`, may be of a storm, or end one: where a client bootstraps on many
        in a row, or on the last ones, or has done so before; or where a broker leads it to itself."""
        if self.context.is_part:
            return np.ones(len(connection), np.bool_)
        earlier = len(self._waiting)
        connections = np.concatenate((self._waiting, connection))
        routes = self.context.routes(connections)
        leads_astray = np.zeros(len(routes), np.bool_)
        leads_astray[earlier:] = names_own
        leads_astray &= ~is_in(routes, self._of_same_host(connections[leads_astray], routes[leads_astray]))
        order = np.argsort(routes, kind="stable")
        asks, route = np.concatenate((np.ones(earlier, np.bool_), bootstraps))[order], routes[order]
        begins = np.ones(len(order), np.bool_)
        begins[1:] = (route[1:] != route[:-1]) | ~asks[:-1]
        # a run: the connections in a row on which a client bootstraps, with the next one on which it works
        run = np.cumsum(begins) - 1
        last = np.flatnonzero(np.append(begins, True)[1:])
        is_open = asks[last]
        is_told: Bool = is_open | (np.bincount(run[asks], minlength=len(last)) >= MANY)
        is_told[run[(order < earlier) | leads_astray[order]]] = True
        self._waiting = connections[np.sort(order[last[is_open]])][-MAX_KEYS:]
        found = np.zeros(len(order), np.bool_)
        found[order] = is_told[run]
        return found[earlier:]

    def _of_same_host(self, connections: Int64, routes: Int64) -> Int64:
        """Return the routes on which client and server are one host."""
        different, first = np.unique(routes, return_index=True)
        ends = ((self.context.client(each), self.context.server(each)) for each in connections[first].tolist())
        return different[np.fromiter((_is_same_host(*each) for each in ends), np.bool_, len(first))]


class _LatestConnections:
    """The connections of which something was observed, the latest ones of many."""

    def __init__(self) -> None:
        self._known = np.zeros(0, np.int64)

    def are_new(self, connections: Int64) -> Bool:
        """Return of which of these, each of them once, it was not, and add them."""
        found = ~is_in(connections, self._known)
        self._known = np.concatenate((self._known[~is_in(self._known, connections)], connections))[-MAX_KEYS:]
        return found


def _bootstraps(rows: ExaminedRows) -> Bool:
    """Return which rows are answered requests for metadata."""
    found: Bool = rows.has_both & (rows.api_key == ApiKey.METADATA)
    return found


@lru_cache(maxsize=1024)
def _name_own_host(brokers: Brokers) -> bool:
    """Whether a broker has an address that leads to the host of whoever uses it."""
    return any(is_own_host(each.host) for each in brokers)


def _advertised(brokers: Brokers, client: str, server: str) -> tuple[tuple[str, ...], tuple[str, ...], str]:
    """Return the addresses that Metadata gave, those of the client's own host, and the path of the first of these."""
    addresses = [each.address for each in brokers]
    own = [n for n, each in enumerate(brokers) if is_own_host(each.host)]
    if _is_same_host(client, server):
        own = []
    path = f"response.body.brokers[{own[0]}].host" if own else ""
    others = () if server in addresses else tuple(addresses[:MOST_ADDRESSES])
    return others, tuple(addresses[n] for n in own), path


def _first(rows: ExaminedRows, which: Bool) -> Bool:
    """Return the first of some rows on each connection."""
    at = np.flatnonzero(which)
    found = np.zeros(len(which), np.bool_)
    found[at[np.unique(rows.connection[at], return_index=True)[1]]] = True
    return found


@lru_cache(maxsize=1024)
def is_own_host(host: str) -> bool:
    """Whether an address leads to the host of whoever uses it: loopback, or a wildcard."""
    name = host.lower().rstrip(".")
    if name in ("localhost", "ip6-localhost") or name.endswith((".localhost", "localhost.localdomain")):
        return True
    try:
        address = ip_address(host.strip("[]"))
    except ValueError:
        return False
    return address.is_loopback or address.is_unspecified


def _is_same_host(client: str, server: str) -> bool:
    """Whether both ends are one host, as far as their addresses show, or the client reaches the broker by loopback: a
    forwarded port."""
    host = server.rpartition(":")[0]
    return client == host or is_own_host(host)


class AdvertisedLoopback(Aggregator[Bootstrapped | Worked]):
    """Finds brokers that advertise a loopback or wildcard address to a client on another host."""

    extractor: ClassVar = BootstrapExtractor
    explanation: ClassVar = Explanation(
        "advertised-own-host",
        "Advertised address leads to the client itself",
        Severity.ERROR,
        "Metadata gives a loopback address (127.0.0.1, localhost) or a wildcard (0.0.0.0) for a broker, and the "
        "client is on another host, so the client connects to itself.",
        "The broker's advertised.listeners has an address that only its own host can use, or is not set, so that the "
        "broker advertises the address in listeners. This is common with brokers in containers.",
        "Set advertised.listeners to an address that the client can reach, one for each listener: "
        "PLAINTEXT://kafka:9092 within the containers' network, PLAINTEXT://localhost:29092 for their host. No change "
        "is needed if the client runs on that host and reaches the broker through a forwarded port.",
    )

    def add(self, row: int, observed: Bootstrapped | Worked) -> None:
        """Report one finding for each client and server."""
        if isinstance(observed, Bootstrapped) and observed.own:
            client, server = self.scope
            own = ", ".join(observed.own[:MOST_ADDRESSES])
            words = (
                f"{server} advertises {own} to {client}, which finds itself there, unless its port is forwarded to the "
                "broker: correct advertised.listeners"
            )
            self.report_repeated(ONE_PER_SCOPE, row, observed.answered_ns, words, observed.own_path, "connections")


class ReconnectStorm(Aggregator[Bootstrapped | Worked]):
    """Finds clients that open connections one after the other and only bootstrap on them."""

    extractor: ClassVar = BootstrapExtractor
    explanation: ClassVar = Explanation(
        "reconnect-storm",
        "Client keeps reconnecting and only bootstraps",
        Severity.ERROR,
        "A client requested metadata on at least ten connections to a server without a pause of thirty seconds, and "
        "only ApiVersions, Metadata, logins and the like were answered on them. The message says which side closed "
        "them and, if the capture shows it, how long the longest one lasted after that.",
        "The client can't use what it learns: the addresses that Metadata gives are not reachable, or it makes a new "
        "client for each attempt. Or a health check opens a connection each time.",
        "See whether the client contacts the addresses in Metadata: if not, correct advertised.listeners. Otherwise "
        "create one client and reuse it; reconnect.backoff.ms and reconnect.backoff.max.ms set the pace.",
    )

    def __init__(self, found: FindingSink, scope: Scope) -> None:
        super().__init__(found, scope)
        self._burst = Burst()
        self._by_client = self._by_broker = self._longest_ns = self._last_ns = 0
        self._advertised: tuple[str, ...] = ()

    def add(self, row: int, observed: Bootstrapped | Worked) -> None:
        """Report one finding for each storm."""
        if isinstance(observed, Worked):
            self._burst.end()
            self._burst.finding = None
            self._by_client = self._by_broker = self._longest_ns = 0
            return
        self._by_client += observed.lived_ns >= 0 and observed.by_client
        self._by_broker += observed.lived_ns >= 0 and not observed.by_client
        self._longest_ns, self._last_ns = max(self._longest_ns, observed.lived_ns), observed.time_ns
        self._advertised = observed.advertised
        if self._burst.is_on(observed.time_ns, MANY, SPAN_NS) and self._burst.is_new:
            self._burst.finding = self.report(row, self._words(), "request")
        elif self._burst.finding is not None:
            self._burst.finding.update(self._words())

    def _words(self) -> str:
        client, server = self.scope
        words = (
            f"{client} opened {self._burst.count:,} connections to {server} within {self._burst.took(self._last_ns)}"
        )
        closed = [
            f"{who} closed {count:,}"
            for who, count in (("the client", self._by_client), ("the broker", self._by_broker)) if count
        ]  # fmt: skip
        lived = f"; {' and '.join(closed)}, after {duration(self._longest_ns)} at most" if closed else ""
        to = f"; Metadata sends it to {', '.join(self._advertised)} (advertised.listeners)" if self._advertised else ""
        return f"{words}{lived}{to}"
