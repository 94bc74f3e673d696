"""Break statistics down into groups: a label, the counts, and the filter for the group's exchanges.

Labels are as the wire has them: not cleaned.
"""

from typing import Any, Final, NamedTuple, Protocol

from dissector.analysis.stats.counts import ApiVersion, ClientSoftware, ExchangeCounts
from dissector.analysis.stats.negotiated_versions import NegotiatedVersions, negotiated_versions
from dissector.analysis.stats.statistics import Statistics
from dissector.protocol.schema.errors import error_name
from dissector.protocol.schema.loader import api


class StatsGroup(NamedTuple):
    """One group of exchanges."""

    label: str
    counts: ExchangeCounts
    filter: str
    """Selects its exchanges; empty if no filter can."""
    fields: dict[str, Any]
    """What its exchanges have in common, by the names in JSON."""


def api_name(key: int) -> str:
    """Return an API's name, or its number; -1 is a response without a request."""
    known = api(key)
    return known.name if known else f"API {key}" if key >= 0 else "(no request)"


def api_label(of: ApiVersion) -> str:
    """Return ``Fetch v12``."""
    return f"{api_name(of.api_key)} v{of.version}" if of.api_key >= 0 else api_name(-1)


def client_label(of: ClientSoftware) -> str:
    """Return ``rdkafka (librdkafka 2.6.1)``."""
    name = "(no client id)" if of.client_id is None else of.client_id or '""'
    return f"{name} ({of.software} {of.software_version})" if of.software else name


def quoted(text: str) -> str:
    """Return a string literal of the filter language."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _api_literal(key: int) -> str:
    """Return the literal that a filter compares `api` with."""
    known = api(key)
    return known.name if known else str(key)


def _by_api(statistics: Statistics, most: int | None = None) -> list[StatsGroup]:
    return [
        StatsGroup(
            api_label(of), counts,
            f"api == {_api_literal(of.api_key)} && version == {of.version}" if of.api_key >= 0 else "",
            {"api_key": of.api_key if of.api_key >= 0 else None, "api": api_name(of.api_key),
             "api_version": of.version if of.api_key >= 0 else None},
        )
        for of, counts in statistics.apis.ranked(most)
    ]  # fmt: skip


def _by_client(statistics: Statistics, most: int | None = None) -> list[StatsGroup]:
    return [
        StatsGroup(
            client_label(of), counts, "" if of.client_id is None else f"client_id == {quoted(of.client_id)}",
            {"client_id": of.client_id, "software": of.software, "software_version": of.software_version},
        )
        for of, counts in statistics.clients.ranked(most)
    ]  # fmt: skip


def _by_connection(statistics: Statistics, most: int | None = None) -> list[StatsGroup]:
    return [
        StatsGroup(
            f"C{of.number} {of.client} → {of.server}", counts, f"conn == {of.number}",
            {"connection": of.number, "client": of.client, "server": of.server},
        )
        for of, counts in statistics.connections.ranked(most)
    ]  # fmt: skip


def _by_topic(statistics: Statistics, most: int | None = None) -> list[StatsGroup]:
    return [
        StatsGroup(topic, counts, f"topic == {quoted(topic)}", {"topic": topic})
        for topic, counts in statistics.topics.ranked(most)
    ]  # fmt: skip


def _by_partition(statistics: Statistics, most: int | None = None) -> list[StatsGroup]:
    return [
        StatsGroup(
            f"{of.topic}[{of.number}]", counts, f"topic == {quoted(of.topic)} && partition == {of.number}",
            {"topic": of.topic, "partition": of.number},
        )
        for of, counts in statistics.partitions.ranked(most)
    ]  # fmt: skip


def _by_error(statistics: Statistics, most: int | None = None) -> list[StatsGroup]:
    return [
        StatsGroup(
            f"{error_name(of.code)} in {api_name(of.api_key)}", counts,
            f"error == {error_name(of.code)}" + (f" && api == {_api_literal(of.api_key)}" if of.api_key >= 0 else ""),
            {"error": error_name(of.code), "error_code": of.code, "api": api_name(of.api_key)},
        )
        for of, counts in statistics.errors.ranked(most)
    ]  # fmt: skip


def _by_version(statistics: Statistics, most: int | None = None) -> list[StatsGroup]:
    return [_version_group(each) for each in negotiated_versions(statistics)[:most]]


def _version_group(each: NegotiatedVersions) -> StatsGroup:
    client, server, key = each.client_api
    used = f"v{each.used.low}" if each.used.low == each.used.high else f"v{each.used.low}-{each.used.high}"
    offered = "nothing offered" if each.advertised is None else f"offered v{each.advertised.low}-{each.advertised.high}"
    common = "" if each.is_newest else f", newest stable v{each.newest_offered}"
    filter_text = f"api == {_api_literal(key)} && server == {quoted(server)}" + (
        "" if client.client_id is None else f" && client_id == {quoted(client.client_id)}"
    )
    fields = {
        "client_id": client.client_id, "software": client.software, "software_version": client.software_version,
        "server": server, "api_key": key, "api": api_name(key), "used": [each.used.low, each.used.high],
        "offered": None if each.advertised is None else [each.advertised.low, each.advertised.high],
        "newest_offered": each.newest_offered,
    }  # fmt: skip
    label = f"{api_name(key)} {used} ({offered}{common}) {client_label(client)} → {server}"
    return StatsGroup(label, each.counts, filter_text, fields)


class Breakdown(Protocol):
    """Returns the groups, all or so many: those with the most exchanges first."""

    def __call__(self, statistics: Statistics, most: int | None = None) -> list[StatsGroup]: ...


BREAKDOWNS: Final[dict[str, Breakdown]] = {
    "api": _by_api,
    "client": _by_client,
    "connection": _by_connection,
    "topic": _by_topic,
    "partition": _by_partition,
    "version": _by_version,
    "error": _by_error,
}
"""By what exchanges are grouped."""
