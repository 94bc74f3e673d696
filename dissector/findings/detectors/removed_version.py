"""Requests in versions that newer brokers no longer have, on which the broker closed the connection."""

from typing import ClassVar

from dissector.core.batches import NEVER
from dissector.core.finding import Severity
from dissector.findings.explanation import Explanation
from dissector.findings.framework.context import FindingContext
from dissector.findings.framework.detector import ConnectionDetector
from dissector.findings.framework.examined_rows import ExaminedRows
from dissector.findings.framework.open_findings import FindingSink
from dissector.findings.framework.recurrence import BoundedStates
from dissector.protocol.explain.releases import Removal, removal
from dissector.protocol.schema.loader import api, api_name


def removal_of(context: FindingContext, connection: int, key: int, version: int) -> Removal | None:
    """Return since when brokers lack the version of a request on which one closed the connection; None if they have it,
    or the broker advertised versions, so that more is known."""
    closed_ns, by_client = context.closed(connection)
    known = api(key)
    if closed_ns == NEVER or by_client or known is None or context.offered(connection):
        return None
    return None if context.is_server_foreign(connection) else removal(known.request, version)


class RemovedVersion(ConnectionDetector):
    """Finds requests of old clients on which a newer broker closed the connection."""

    only_unanswered: ClassVar = True
    explanation: ClassVar = Explanation(
        "version-removed",
        "The client is too old for the broker",
        Severity.ERROR,
        "The request has a version that newer releases of Kafka removed, and the broker closed the connection without "
        "a response.",
        "The client is older than the broker supports: Kafka 4 removed the versions of before Kafka 2.1 (KIP-896). Or "
        "the client could use newer versions, but a setting says that the broker is old, so it does not send "
        "ApiVersions.",
        "Upgrade the client. In librdkafka remove api.version.request=false and broker.version.fallback, in "
        "kafka-python remove api_version, in sarama raise Config.Version. Then the client learns from ApiVersions "
        "which versions the broker has.",
    )

    def __init__(self, sink: FindingSink, context: FindingContext) -> None:
        super().__init__(sink, context)
        self._reported: BoundedStates[int, list[int]] = BoundedStates(list)

    def examine_rows(self, rows: ExaminedRows) -> None:
        """Report one finding for each connection, at its first such request."""
        some = rows.unanswered
        columns = (some.row, some.connection, some.api_key, some.version)
        for row, connection, key, version in zip(*(column.tolist() for column in columns), strict=True):
            found = removal_of(self.context, connection, key, version)
            reported = self._reported.of(connection)
            if found is not None and not reported:
                reported.append(row)
                self.report(row, _words(api_name(key), version, found), "request.header.request_api_version")


def _words(name: str, version: int, removed: Removal) -> str:
    return (
        f"the broker closed the connection on {name} v{version}, which Kafka {removed.release} no longer has (it has "
        f"v{removed.low} and up): upgrade the client, or remove api.version.request=false and broker.version.fallback"
    )
