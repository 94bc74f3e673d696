"""Versions that clients use vs versions that servers advertise.

A client does not advertise its versions: what it could use is not known, only what a newer client could. That is the
newest stable version that the server advertises and we know.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

from dissector.analysis.stats.counts import ClientSoftware, ExchangeCounts, Statistics, VersionSpan
from dissector.protocol.schema.api_keys import ApiKey
from dissector.protocol.schema.loader import api


class ClientApi(NamedTuple):
    """An API that a client used with a server (`host:port`)."""

    client: ClientSoftware
    server: str
    api_key: int


@dataclass(slots=True)
class NegotiatedVersions:
    """The used and advertised versions of a client's API."""

    client_api: ClientApi
    used: VersionSpan
    advertised: VersionSpan | None
    """None without an ApiVersions response of the server, or if it does not have the API."""
    counts: ExchangeCounts = field(default_factory=ExchangeCounts)

    @property
    def newest_offered(self) -> int | None:
        """The newest stable version that the server advertises and we know; None without one."""
        known = api(self.client_api.api_key)
        if known is None or self.advertised is None:
            return None
        newest = known.unstable_versions.low - 1 if known.unstable_versions else known.versions.high
        high = min(newest, self.advertised.high)
        return high if high >= max(known.versions.low, self.advertised.low) else None

    @property
    def is_newest(self) -> bool:
        """Whether it was used; True if it is unknown."""
        return self.newest_offered in (None, self.used.high)

    @property
    def is_outside(self) -> bool:
        """Whether a version was used that the server does not advertise. With ApiVersions a client can't know: there
        all of them."""
        if self.advertised is None:
            return False
        low, high = self.advertised
        if self.client_api.api_key == ApiKey.API_VERSIONS:
            return self.used.low > high or self.used.high < low
        return self.used.low < low or self.used.high > high


def negotiated_versions(statistics: Statistics) -> list[NegotiatedVersions]:
    """Return the versions of every client and server: first those that are not offered, then those that are not the
    newest offered ones; then in the order of the clients' first exchanges and of API keys."""
    found: dict[ClientApi, NegotiatedVersions] = {}
    for use, counts in statistics.used_versions.counts.items():
        client_api, span = ClientApi(use.client, use.server, use.api_key), VersionSpan(use.version, use.version)
        known = found.get(client_api)
        if known is None:
            advertised = statistics.advertised_versions.get(use.server, {}).get(use.api_key)
            known = found[client_api] = NegotiatedVersions(client_api, span, advertised)
        known.used = known.used.merged(span)
        known.counts.merge(counts)
    clients = {client: n for n, client in enumerate(statistics.clients.counts)}
    last = len(clients)

    def rank(each: NegotiatedVersions) -> tuple[bool, bool, int, str, int]:
        return (
            not each.is_outside,
            each.is_newest,
            clients.get(each.client_api.client, last),
            each.client_api.server,
            each.client_api.api_key,
        )

    return sorted(found.values(), key=rank)
