"""Versions used against versions offered: what each client asked of each server, and what both could have spoken.

A client does not say which versions it has. So the highest common one is the highest stable version that the server
offered and that this release knows, which is what a client of today could have used.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

from dissector.analysis.stats.counts import ClientSoftware, ExchangeCounts, VersionSpan
from dissector.analysis.stats.statistics import Statistics
from dissector.protocol.schema.loader import api


class ClientApi(NamedTuple):
    """An API that a client used of a server (`host:port`)."""

    client: ClientSoftware
    server: str
    api_key: int


@dataclass(slots=True)
class NegotiatedVersions:
    """The versions of it."""

    asked: ClientApi
    used: VersionSpan
    offered: VersionSpan | None
    """None where the server was never asked, or does not have the API."""
    tally: ExchangeCounts = field(default_factory=ExchangeCounts)

    @property
    def highest_common(self) -> int | None:
        """The highest stable version that the server offers and this release knows; None where there is none."""
        known = api(self.asked.api_key)
        if known is None or self.offered is None:
            return None
        newest = known.unstable_versions.low - 1 if known.unstable_versions else known.versions.high
        high = min(newest, self.offered.high)
        return high if high >= max(known.versions.low, self.offered.low) else None

    @property
    def is_highest(self) -> bool:
        """Whether the highest common version was used, as far as that is known."""
        return self.highest_common in (None, self.used.high)


def negotiated_versions(statistics: Statistics) -> list[NegotiatedVersions]:
    """What every client used of every server: first where it was not the highest common version; then in the order of
    the clients' first exchanges and of API keys."""
    found: dict[ClientApi, NegotiatedVersions] = {}
    for use, tally in statistics.uses.tallies.items():
        asked = ClientApi(use.client, use.server, use.api_key)
        if asked not in found:
            offered = statistics.offers.get(use.server, {}).get(use.api_key)
            found[asked] = NegotiatedVersions(asked, VersionSpan(use.version, use.version), offered)
        found[asked].used.merge(VersionSpan(use.version, use.version))
        found[asked].tally.merge(tally)
    clients = {client: n for n, client in enumerate(statistics.clients.tallies)}
    last = len(clients)

    def rank(each: NegotiatedVersions) -> tuple[bool, int, str, int]:
        return each.is_highest, clients.get(each.asked.client, last), each.asked.server, each.asked.api_key

    return sorted(found.values(), key=rank)
