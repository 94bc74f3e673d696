"""The requests to a broker, their versions, and the results of the responses.

ApiVersions first, in our newest version; an older broker responds with error 35 in a v0 body that names its versions
(KIP-511), and gets the request again in one of them. Then Metadata in the newest version that both have; a listener for
controllers has no Metadata and gets DescribeCluster instead.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from dissector.core.version import version as installed_version
from dissector.probe.connection import BrokerConnection, ClosedError, ProbeError
from dissector.protocol.codec.plan import plan
from dissector.protocol.message import Values
from dissector.protocol.schema.api_keys import ApiKey
from dissector.protocol.schema.error_codes import ErrorCode
from dissector.protocol.schema.errors import error_name
from dissector.protocol.schema.field_enums import EndpointType
from dissector.protocol.schema.loader import api
from dissector.protocol.schema.model import Versions


class BrokerNode(NamedTuple):
    """A broker or controller of the cluster."""

    id: int
    host: str
    port: int
    rack: str | None


class Topic(NamedTuple):
    """A topic as Metadata has it."""

    name: str
    partitions: int
    error: str


class Feature(NamedTuple):
    """A feature: the levels that the broker supports, and the finalized level of the cluster."""

    name: str
    supported: Versions | None
    finalized: int | None


@dataclass
class ProbeResult:
    """Everything that a broker's responses say. `trouble` is the error that ended the conversation early."""

    version: int
    """Version of the ApiVersions response."""
    fallback: str = ""
    offer: dict[int, Versions] = field(default_factory=dict)
    features: list[Feature] = field(default_factory=list)
    cluster_id: str | None = None
    controller_id: int | None = None
    nodes: list[BrokerNode] = field(default_factory=list)
    topics: list[Topic] = field(default_factory=list)
    source: str = ""
    """The API and version that named the cluster."""
    trouble: ProbeError | None = None


def probe_broker(connection: BrokerConnection, *, topics: bool) -> ProbeResult:
    """Run the whole conversation. Raises `ProbeError` if not even ApiVersions gets a response."""
    answers = _api_versions(connection)
    try:
        if ApiKey.METADATA in answers.offer or ApiKey.DESCRIBE_CLUSTER not in answers.offer:
            _metadata(connection, answers, topics=topics)
        else:
            _describe_cluster(connection, answers)
    except ClosedError as error:
        words = f"{error}: this listener wants authentication (SASL) first, or refuses this client"
        answers.trouble = ProbeError(words)
    except ProbeError as error:
        answers.trouble = error
    return answers


def _api_versions(connection: BrokerConnection) -> ProbeResult:
    known = api(ApiKey.API_VERSIONS)
    assert known is not None
    version = known.versions.high - bool(known.unstable_versions)
    body, fallback = _ask_versions(connection, version), ""
    if _code(body) == ErrorCode.UNSUPPORTED_VERSION:
        theirs = _offer(body).get(ApiKey.API_VERSIONS, Versions(0, 0))
        common = theirs.intersect(known.versions)
        if not common or common.high == version:
            raise ProbeError(f"{connection.address}: has ApiVersions v{theirs}, this release v{known.versions}")
        words = f"v{theirs}" if ApiKey.API_VERSIONS in _offer(body) else "none that it knows"
        fallback = f"it does not know v{version} (error 35) and names {words} (KIP-511)"
        version = common.high
        body = _ask_versions(connection, version)
    if code := _code(body):
        raise ProbeError(f"{connection.address}: answers ApiVersions v{version} with {error_name(code)}", negative=True)
    return ProbeResult(version, fallback, _offer(body), _features(body))


def _ask_versions(connection: BrokerConnection, version: int) -> Values:
    software = installed_version("kafka-dissector")
    words = {"client_software_name": "kdissect", "client_software_version": software}
    return connection.ask(ApiKey.API_VERSIONS, version, _in_version("ApiVersionsRequest", version, words)).body


def _in_version(name: str, version: int, values: Mapping[str, object]) -> dict[str, object]:
    """The values that a version has fields for."""
    fields = {field.name for field in plan(name, version).fields}
    return {name: value for name, value in values.items() if name in fields}


def _code(body: Values) -> int:
    code = body.get("error_code", 0)
    return code if isinstance(code, int) else 0


def _rows(body: Values, name: str) -> list[Values]:
    """The structures of an array that may not be there."""
    rows = body.get(name)
    return [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []


def _offer(body: Values) -> dict[int, Versions]:
    return {_int(row, "api_key"): Versions(_int(row, "min_version"), _int(row, "max_version"))
            for row in _rows(body, "api_keys")}  # fmt: skip


def _features(body: Values) -> list[Feature]:
    supported = {str(row["name"]): Versions(_int(row, "min_version"), _int(row, "max_version"))
                 for row in _rows(body, "supported_features")}  # fmt: skip
    finalized = {str(row["name"]): _int(row, "max_version_level") for row in _rows(body, "finalized_features")}
    return [Feature(name, supported.get(name), finalized.get(name)) for name in sorted(supported | finalized)]


def _int(row: Values, name: str) -> int:
    value = row.get(name)
    return value if isinstance(value, int) else -1


def _common(connection: BrokerConnection, answers: ProbeResult, api_key: int) -> int:
    """The newest version that both have and that is no draft."""
    known = api(api_key)
    assert known is not None
    stable = Versions(known.versions.low, known.versions.high - bool(known.unstable_versions))
    common = stable.intersect(answers.offer.get(api_key, Versions(0, -1)))
    if not common:
        theirs = answers.offer.get(api_key) or "none"
        raise ProbeError(f"{connection.address}: of {known.name} it offers {theirs}, this release has {known.versions}")
    return common.high


def _metadata(connection: BrokerConnection, answers: ProbeResult, *, topics: bool) -> None:
    version = _common(connection, answers, ApiKey.METADATA)
    # All topics are null since v1 and an empty list in v0, which therefore can't be asked for none.
    wanted: list[object] | None = None if topics and version else []
    values = {"topics": wanted, "allow_auto_topic_creation": False}
    body = connection.ask(ApiKey.METADATA, version, _in_version("MetadataRequest", version, values)).body
    _fail_on_error(connection, f"Metadata v{version}", body)
    _cluster(answers, body, "node_id")
    answers.source = f"Metadata v{version}"
    if topics:
        answers.topics = [
            Topic(str(row.get("name")), len(_rows(row, "partitions")), error_name(_code(row)) if _code(row) else "")
            for row in _rows(body, "topics")
        ]


def _describe_cluster(connection: BrokerConnection, answers: ProbeResult) -> None:
    version = _common(connection, answers, ApiKey.DESCRIBE_CLUSTER)
    values = _in_version("DescribeClusterRequest", version, {"endpoint_type": EndpointType.CONTROLLER})
    body = connection.ask(ApiKey.DESCRIBE_CLUSTER, version, values).body
    _fail_on_error(connection, f"DescribeCluster v{version}", body)
    _cluster(answers, body, "broker_id")
    answers.source = f"DescribeCluster v{version} (controller listener: no Metadata)"


def _fail_on_error(connection: BrokerConnection, what: str, body: Values) -> None:
    if code := _code(body):
        raise ProbeError(f"{connection.address}: answers {what} with {error_name(code)}")


def _cluster(answers: ProbeResult, body: Values, id_name: str) -> None:
    answers.cluster_id = _text(body, "cluster_id")
    controller = body.get("controller_id")
    answers.controller_id = controller if isinstance(controller, int) else None
    answers.nodes = [
        BrokerNode(_int(row, id_name), str(row["host"]), _int(row, "port"), _text(row, "rack"))
        for row in _rows(body, "brokers")
    ]


def _text(row: Values, name: str) -> str | None:
    value = row.get(name)
    return value if isinstance(value, str) else None
