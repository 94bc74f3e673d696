"""Break statistics down into groups: a label, the counts, and the filter for its exchanges; and as JSON has them.

Labels are as the wire has them: not cleaned.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from dissector.analysis.stats.counts import (
    ApiError,
    ApiVersion,
    ClientSoftware,
    ExchangeCounts,
    Statistics,
    StatsConnection,
    TopicPartition,
)
from dissector.analysis.stats.negotiated_versions import NegotiatedVersions, negotiated_versions
from dissector.protocol.schema import loader
from dissector.protocol.schema.errors import error_name


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
    return loader.api_name(key) if key >= 0 else "(no request)"


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
    known = loader.api(key)
    return known.name if known else str(key)


def _api_group(of: ApiVersion, counts: ExchangeCounts) -> StatsGroup:
    return StatsGroup(
        api_label(of), counts,
        f"api == {_api_literal(of.api_key)} && version == {of.version}" if of.api_key >= 0 else "",
        {"api_key": of.api_key if of.api_key >= 0 else None, "api": api_name(of.api_key),
         "api_version": of.version if of.api_key >= 0 else None},
    )  # fmt: skip


def _client_group(of: ClientSoftware, counts: ExchangeCounts) -> StatsGroup:
    return StatsGroup(
        client_label(of), counts, "" if of.client_id is None else f"client_id == {quoted(of.client_id)}",
        {"client_id": of.client_id, "software": of.software, "software_version": of.software_version},
    )  # fmt: skip


def _connection_group(of: StatsConnection, counts: ExchangeCounts) -> StatsGroup:
    return StatsGroup(
        f"C{of.number} {of.client} → {of.server}", counts, f"conn == {of.number}",
        {"connection": of.number, "client": of.client, "server": of.server},
    )  # fmt: skip


def _topic_group(topic: str, counts: ExchangeCounts) -> StatsGroup:
    return StatsGroup(topic, counts, f"topic == {quoted(topic)}", {"topic": topic})


def _partition_group(of: TopicPartition, counts: ExchangeCounts) -> StatsGroup:
    return StatsGroup(
        f"{of.topic}[{of.number}]", counts, f"topic == {quoted(of.topic)} && partition == {of.number}",
        {"topic": of.topic, "partition": of.number},
    )  # fmt: skip


def _error_group(of: ApiError, counts: ExchangeCounts) -> StatsGroup:
    return StatsGroup(
        f"{error_name(of.code)} in {api_name(of.api_key)}", counts,
        f"error == {error_name(of.code)}" + (f" && api == {_api_literal(of.api_key)}" if of.api_key >= 0 else ""),
        {"error": error_name(of.code), "error_code": of.code, "api": api_name(of.api_key)},
    )  # fmt: skip


def _version_group(each: NegotiatedVersions) -> StatsGroup:
    client, server, key = each.client_api
    used = f"v{each.used.low}" if each.used.low == each.used.high else f"v{each.used.low}-{each.used.high}"
    offered = "nothing offered" if each.advertised is None else f"offered v{each.advertised.low}-{each.advertised.high}"
    common = "" if each.is_newest else f", newest stable v{each.newest_offered}"
    common = ", not all that it used" if each.is_outside else common
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


class Breakdown(NamedTuple):
    """How exchanges are grouped: returns the groups, all or so many, those with the most exchanges first."""

    rank: Callable[[Statistics, int | None], Sequence[Any]]
    """Returns what groups are made of."""
    group: Callable[[Any], StatsGroup]

    def __call__(self, statistics: Statistics, most: int | None = None) -> list[StatsGroup]:
        """Return all groups, or so many."""
        return [self.group(each) for each in self.rank(statistics, most)]

    def first(self, statistics: Statistics, most: int | None) -> tuple[list[StatsGroup], int]:
        """Return the same, and how many groups there are."""
        ranked = self.rank(statistics, None)
        return [self.group(each) for each in ranked[:most]], len(ranked)


def _of_counts(name: str, group: Callable[[Any, ExchangeCounts], StatsGroup]) -> Breakdown:
    """The breakdown by the keys of one of the counts of `Statistics`."""
    return Breakdown(lambda statistics, most: getattr(statistics, name).ranked(most), lambda each: group(*each))


BREAKDOWNS: Final[dict[str, Breakdown]] = {
    "api": _of_counts("apis", _api_group),
    "client": _of_counts("clients", _client_group),
    "connection": _of_counts("connections", _connection_group),
    "topic": _of_counts("topics", _topic_group),
    "partition": _of_counts("partitions", _partition_group),
    "version": Breakdown(lambda statistics, most: negotiated_versions(statistics)[:most], _version_group),
    "error": _of_counts("errors", _error_group),
}
"""By what exchanges are grouped."""


def group_object(by: str, group: StatsGroup) -> dict[str, Any]:
    """Return a group of exchanges; `by` says by what they are grouped."""
    return {"by": by} | group.fields | counts_object(group.counts)


def counts_object(counts: ExchangeCounts) -> dict[str, Any]:
    """Return what was counted of some exchanges: sizes in bytes, latencies in nanoseconds."""
    return {
        "exchanges": counts.exchanges, "bytes_out": counts.bytes_out, "bytes_in": counts.bytes_in,
        "errors": counts.errors, "unanswered": counts.unanswered,
        "latency_ns": counts.usual_latency.summary(),
    }  # fmt: skip
