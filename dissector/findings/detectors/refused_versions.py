"""Requests on which a broker closed the connection for their version, as far as the connection shows it."""

from typing import ClassVar, Final

from dissector.core.finding import Severity
from dissector.findings.explanation import Explanation
from dissector.findings.framework import contradictions as if_
from dissector.findings.framework.closed_requests import CloseCause
from dissector.findings.framework.connection_end import ConnectionEnd
from dissector.protocol.explain.releases import Removal, removal
from dissector.protocol.schema.loader import api

_OF_VERSION: Final = "request.header.request_api_version"


class RemovedVersion(CloseCause):
    """Finds requests in versions that newer brokers removed, on which the connection was closed."""

    contradictions: ClassVar = (
        *if_.REFUSED, if_.was_read, if_.versions_known, if_.versions_asked, if_.broker_has_removed_versions,
    )  # fmt: skip
    explanation: ClassVar = Explanation(
        "version-removed",
        "Version that newer brokers no longer have",
        Severity.ERROR,
        "The request has a version that newer releases of Kafka removed, and the broker closed the connection without "
        "a response.",
        "The client is older than the broker supports: Kafka 4 removed the versions from before Kafka 2.1 (KIP-896). "
        "Or the client could use newer versions, but a setting says that the broker is old, so it does not send "
        "ApiVersions. Or the broker is so old that it does not have the version yet: nothing on the connection shows "
        "its age, unless the message names one cause only.",
        "See which release the broker is. If it is new, upgrade the client: in librdkafka remove "
        "api.version.request=false and broker.version.fallback, in kafka-python remove api_version, in franz-go "
        "kgo.MaxVersions, so that the client learns from ApiVersions which versions the broker has; in sarama raise "
        "Config.Version. If it is old, upgrade it, or set its true version in the client.",
    )

    @classmethod
    def applies(cls, end: ConnectionEnd) -> bool:
        """A known release removed the version."""
        return _removal(end) is not None

    @classmethod
    def words(cls, end: ConnectionEnd) -> str:
        found = _removal(end)
        assert found is not None, "it applies"
        lacks = f"Kafka {found.release} no longer has (it has v{found.low} and up)"
        if end.key in if_.FIRST_APIS and end.version == 0:  # no broker is too old for it
            return f"the broker closed the connection on {end.name}, which {lacks}: {end.advice.newer}"
        return (
            f"the broker closed the connection on {end.name}, which {lacks}, and which a broker that is too old does "
            f"not have yet: if it is new, {end.advice.newer}; if it is old, upgrade it, or {end.advice.fixed}"
        )

    @classmethod
    def path(cls, _end: ConnectionEnd) -> str:
        return _OF_VERSION


def _removal(end: ConnectionEnd) -> Removal | None:
    """Return since when brokers lack the version of the request; None if the newest one has it."""
    known = api(end.key)
    return None if known is None else removal(known.request, end.version)


class SuspectVersion(CloseCause):
    """Finds the first request of a version on which the connection was closed, where the client did not ask for
    versions."""

    contradictions: ClassVar = (
        *if_.REFUSED, if_.was_read, if_.versions_known, if_.versions_asked, if_.all_brokers_have_it,
        if_.login_before,
    )  # fmt: skip
    explanation: ClassVar = Explanation(
        "suspect-version",
        "Closed on the first request of a version",
        Severity.WARNING,
        "The broker closed the connection on the first request of this API and version, without a response, and the "
        "client did not ask with ApiVersions which versions the broker has.",
        "A broker that does not have the version closes the connection. It may also have been stopped at this moment, "
        "or want TLS or a login.",
        "Check the broker's log for this time. Let the client ask for versions (api.version.request=true in "
        "librdkafka, no api_version in kafka-python), or set the broker's true version in the client (Config.Version "
        "in sarama). SaslHandshake version 1 came with Kafka 1.0: sarama has Config.Net.SASL.Version for brokers "
        "before that.",
    )

    @classmethod
    def applies(cls, end: ConnectionEnd) -> bool:
        """Whatever the version is."""
        return end.begins

    @classmethod
    def words(cls, end: ConnectionEnd) -> str:
        return (
            f"the broker closed the connection on the first {end.name}, and the client did not ask for versions "
            f"(ApiVersions): the broker may not have this one; {end.advice.fixed}"
        )

    @classmethod
    def path(cls, _end: ConnectionEnd) -> str:
        return _OF_VERSION


VERSION_CODES: Final = frozenset(each.explanation.code for each in (RemovedVersion, SuspectVersion))
"""Causes that are about a request's version."""
