"""Metadata that no client can use: addresses that are none, and leaders that are no broker of the response."""

import re
from collections.abc import Iterator
from typing import ClassVar, Final

import numpy as np

from dissector.core.arrays import Bool, Int64
from dissector.core.finding import Finding, Severity
from dissector.findings.explanation import Explanation
from dissector.findings.framework.detector import MessageDetector
from dissector.findings.framework.read_fields import ReadFields
from dissector.protocol.schema.api_keys import ApiKey

_HOST: Final = "response.brokers.host"
_PORT: Final = "response.brokers.port"
_NO_HOST: Final = re.compile(r"""://|[\s/,;@"'<>?#=]|^[^:]*:\d+$|^$""")
"""A URL, a list, a host with its port, nothing. What is left may be a name that only some resolver knows."""
LARGEST_PORT: Final = 65_535


UNUSABLE: Final = Explanation(
    "unusable-metadata",
    "Metadata that no client can use",
    Severity.ERROR,
    "A broker's host in Metadata is neither a host name nor an IP address (a URL, for example), or its port is "
    "outside 1 to 65535. Or a partition without an error has a leader that is not among the response's brokers. "
    "Clients can't connect to it, and ask for metadata again and again.",
    "The broker's advertised.listeners, or a proxy's setting for it, has an address in another form: with a scheme "
    "such as http:// in place of a listener's name, with two ports, or several addresses in one. Or another vendor's "
    "broker, a mock or a proxy leaves brokers out, or numbers them in two ways: Kafka's brokers respond with "
    "LEADER_NOT_AVAILABLE or LISTENER_NOT_FOUND where they do not know the leader's address.",
    "Correct advertised.listeners (KAFKA_ADVERTISED_LISTENERS in containers): LISTENER://host:port, one for each "
    "listener, separated by commas. For a leader, correct the server or the proxy: each leader_id must be the node_id "
    "of one of the brokers.",
)


class InvalidAdvertised(MessageDetector):
    """Finds advertised addresses that are no host name, or have no port."""

    explanation: ClassVar = UNUSABLE
    apis: ClassVar = frozenset((ApiKey.METADATA, ApiKey.DESCRIBE_CLUSTER))
    reads: ClassVar = {_HOST: None, _PORT: None}

    def find(self, fields: ReadFields) -> Iterator[Finding]:
        """One for each broker."""
        for (path, host), port in zip(fields.places(_HOST), fields.values(_PORT), strict=True):
            if _NO_HOST.search(str(host)):
                yield self.finding(f"a broker is advertised as host {str(host)!r}, {_CORRECT}", path)
            elif not isinstance(port, int) or not 0 < port <= LARGEST_PORT:
                words = f"a broker is advertised with port {port}, {_CORRECT}"
                yield self.finding(words, f"{path.rpartition('.')[0]}.port")


_CORRECT: Final = "to which no client can connect: correct advertised.listeners"
_LEADER: Final = "response.topics.partitions.leader_id"
_ERROR: Final = "response.topics.partitions.error_code"
_NODE: Final = "response.brokers.node_id"


def _is_broker(ids: Int64) -> Bool:
    found: Bool = np.asarray(ids >= 0)
    return found


class UnlistedLeader(MessageDetector):
    """Finds partitions whose leader is none of the brokers."""

    explanation: ClassVar = UNUSABLE
    apis: ClassVar = frozenset((ApiKey.METADATA,))
    reads: ClassVar = {_LEADER: _is_broker, _ERROR: None, _NODE: None}

    def find(self, fields: ReadFields) -> Iterator[Finding]:
        """One for each response, with the number of partitions."""
        brokers = {*fields.values(_NODE)}
        errors = fields.values(_ERROR)
        unlisted = [
            (path, leader) for (path, leader), error in zip(fields.places(_LEADER), errors, strict=True)
            if isinstance(leader, int) and leader >= 0 and not error and leader not in brokers
        ]  # fmt: skip
        if unlisted:
            path, leader = unlisted[0]
            more = f", and {len(unlisted) - 1:,} more" if len(unlisted) > 1 else ""
            yield self.finding(f"leader {leader} is none of the {len(brokers):,} brokers of this response{more}", path)
