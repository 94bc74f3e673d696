"""Statistics as lists of lines: what each is about in words, what was counted, and the filter for its exchanges.

The words are as the wire has them: not cleaned.
"""

from typing import Any, Final, NamedTuple, Protocol

from dissector.analysis.stats.counts import ApiVersion, ClientSoftware, ExchangeCounts
from dissector.analysis.stats.negotiated_versions import NegotiatedVersions, negotiated_versions
from dissector.analysis.stats.statistics import Statistics
from dissector.protocol.schema.errors import error_name
from dissector.protocol.schema.loader import api


class StatsGroup(NamedTuple):
    """One group of exchanges."""

    words: str
    tally: ExchangeCounts
    filter: str
    """Selects its exchanges; empty where no filter can."""
    facts: dict[str, Any]
    """What the group has in common, by the names of the JSON interface."""


def api_name(key: int) -> str:
    """An API's name, or its number; -1 is that of a response whose request is not there."""
    known = api(key)
    return known.name if known else f"API {key}" if key >= 0 else "(no request)"


def api_words(of: ApiVersion) -> str:
    """``Fetch v12``."""
    return f"{api_name(of.api_key)} v{of.version}" if of.api_key >= 0 else api_name(-1)


def client_words(of: ClientSoftware) -> str:
    """``rdkafka (librdkafka 2.6.1)``."""
    name = "(no client id)" if of.client_id is None else of.client_id or '""'
    return f"{name} ({of.software} {of.software_version})" if of.software else name


def quoted(text: str) -> str:
    """A string of the filter language."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _named(key: int) -> str:
    """What a filter compares `api` with."""
    known = api(key)
    return known.name if known else str(key)


def _by_api(statistics: Statistics, most: int | None = None) -> list[StatsGroup]:
    return [
        StatsGroup(
            api_words(of), tally, f"api == {_named(of.api_key)} && version == {of.version}" if of.api_key >= 0 else "",
            {"api_key": of.api_key if of.api_key >= 0 else None, "api": api_name(of.api_key),
             "api_version": of.version if of.api_key >= 0 else None},
        )
        for of, tally in statistics.apis.ranked(most)
    ]  # fmt: skip


def _by_client(statistics: Statistics, most: int | None = None) -> list[StatsGroup]:
    return [
        StatsGroup(
            client_words(of), tally, "" if of.client_id is None else f"client_id == {quoted(of.client_id)}",
            {"client_id": of.client_id, "software": of.software, "software_version": of.software_version},
        )
        for of, tally in statistics.clients.ranked(most)
    ]  # fmt: skip


def _by_connection(statistics: Statistics, most: int | None = None) -> list[StatsGroup]:
    return [
        StatsGroup(
            f"C{of.number} {of.client} → {of.server}", tally, f"conn == {of.number}",
            {"connection": of.number, "client": of.client, "server": of.server},
        )
        for of, tally in statistics.connections.ranked(most)
    ]  # fmt: skip


def _by_topic(statistics: Statistics, most: int | None = None) -> list[StatsGroup]:
    return [
        StatsGroup(topic, tally, f"topic == {quoted(topic)}", {"topic": topic})
        for topic, tally in statistics.topics.ranked(most)
    ]  # fmt: skip


def _by_partition(statistics: Statistics, most: int | None = None) -> list[StatsGroup]:
    return [
        StatsGroup(
            f"{of.topic}[{of.number}]", tally, f"topic == {quoted(of.topic)} && partition == {of.number}",
            {"topic": of.topic, "partition": of.number},
        )
        for of, tally in statistics.partitions.ranked(most)
    ]  # fmt: skip


def _by_error(statistics: Statistics, most: int | None = None) -> list[StatsGroup]:
    return [
        StatsGroup(
            f"{error_name(of.code)} in {api_name(of.api_key)}", tally,
            f"error == {error_name(of.code)}" + (f" && api == {_named(of.api_key)}" if of.api_key >= 0 else ""),
            {"error": error_name(of.code), "error_code": of.code, "api": api_name(of.api_key)},
        )
        for of, tally in statistics.errors.ranked(most)
    ]  # fmt: skip


def _by_version(statistics: Statistics, most: int | None = None) -> list[StatsGroup]:
    return [_version_line(each) for each in negotiated_versions(statistics)[:most]]


def _version_line(each: NegotiatedVersions) -> StatsGroup:
    client, server, key = each.asked
    used = f"v{each.used.low}" if each.used.low == each.used.high else f"v{each.used.low}-{each.used.high}"
    offered = "nothing offered" if each.offered is None else f"offered v{each.offered.low}-{each.offered.high}"
    common = "" if each.is_highest else f", highest common v{each.highest_common}"
    chosen = f"api == {_named(key)} && server == {quoted(server)}" + (
        "" if client.client_id is None else f" && client_id == {quoted(client.client_id)}"
    )
    facts = {
        "client_id": client.client_id, "software": client.software, "software_version": client.software_version,
        "server": server, "api_key": key, "api": api_name(key), "used": [each.used.low, each.used.high],
        "offered": None if each.offered is None else [each.offered.low, each.offered.high],
        "highest_common": each.highest_common,
    }  # fmt: skip
    words = f"{api_name(key)} {used} ({offered}{common}) {client_words(client)} → {server}"
    return StatsGroup(words, each.tally, chosen, facts)


class Breakdown(Protocol):
    """Makes the lines, all or so many: those with the most exchanges first."""

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
"""By what exchanges can be grouped."""
