"""Servers that clients did not reach: connections that were refused, or of which only the SYN was captured.

Invariant: what is counted of the partitions of a capture adds up to what is counted of the whole.
"""

from collections import Counter
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from dissector.core.arrays import Int64
from dissector.core.finding import Finding, Severity
from dissector.core.text import counted, endpoint_name
from dissector.detection.kafka_detector import KAFKA_PORTS
from dissector.transport.connection_table import ConnectionTable

MAX_SERVERS: Final = 1_000
"""Servers that are counted."""
MAX_FINDINGS: Final = 3
_LOOPBACK: Final = ("127.0.0.1", "::1")


@dataclass
class Unreachable:
    """Counts by server, `host:port`."""

    refused: Counter[str] = field(default_factory=Counter)
    silent: Counter[str] = field(default_factory=Counter)
    """Connections that were not answered at all."""
    advertised: set[str] = field(default_factory=set)
    """Addresses that brokers advertise."""
    reached: set[str] = field(default_factory=set)
    """Servers that accepted a connection."""
    with_data: int = 0
    """Connections with data."""

    @classmethod
    def of(cls, connections: ConnectionTable, with_data: Int64) -> "Unreachable":
        """Count the connections of a capture. Those `with_data` were accepted, also where the capture has only what one
        side sent."""
        reached = {endpoint_name(*each) for each in connections.servers(connections.answered())[0]}
        whole = cls(reached=reached, with_data=len(with_data))
        for counts, numbers in zip((whole.refused, whole.silent), connections.unreachable(), strict=True):
            servers, which = connections.servers(numbers[~np.isin(numbers, with_data)])
            for server, count in zip(servers[:MAX_SERVERS], np.bincount(which).tolist(), strict=False):
                counts[endpoint_name(*server)] = count
        return whole

    def __bool__(self) -> bool:
        return bool(self.refused or self.silent)

    @property
    def has_unreached(self) -> bool:
        """Whether there is a server that accepted no connection at all: only then there may be findings."""
        return not self.reached.issuperset((*self.refused, *self.silent))

    def __iadd__(self, other: "Unreachable") -> "Unreachable":
        self.refused += other.refused
        self.silent += other.silent
        self.advertised |= other.advertised
        self.reached |= other.reached
        self.with_data += other.with_data
        return self

    @property
    def findings(self) -> list[Finding]:
        """One for each server that was never reached and is Kafka's as far as is known: it is on Kafka's port, a broker
        advertises it, or the capture has nothing else."""
        advertised = {address for each in self.advertised for address in _addresses(each)}
        found = [
            (-count, server, outcome, server in advertised)
            for counts, outcome in ((self.refused, "refused"), (self.silent, "not answered"))
            for server, count in counts.items()
            if server not in self.reached
            and (server in advertised or not self.with_data or int(server.rpartition(":")[2]) in KAFKA_PORTS)
        ]
        return [_finding(*each) for each in sorted(found)[:MAX_FINDINGS]]


def _addresses(advertised: str) -> list[str]:
    """An advertised address as it may be in packets."""
    host, _, port = advertised.rpartition(":")
    return [endpoint_name(each, int(port)) for each in (_LOOPBACK if host == "localhost" else (host.strip("[]"),))]


def _finding(negative: int, server: str, outcome: str, is_advertised: bool) -> Finding:
    count = -negative
    words = f"{counted(count, 'connection')} to {server} {'was' if count == 1 else 'were'} {outcome}"
    if is_advertised:
        advice = "the broker advertises this address, which clients must reach: correct advertised.listeners"
        return Finding("advertised-unreachable", Severity.ERROR, f"{words}: {advice}")
    cause = "nothing listens there" if outcome == "refused" else "a firewall, or no such host"
    return Finding("unreachable", Severity.ERROR, f"{words}: {cause}; correct bootstrap.servers, or start the broker")
