"""The contents of the overview, without a screen: a snapshot of the statistics, and its lines for a width.

An `OverviewSnapshot` does not change: one thread can count while another draws. Bars are made of block characters;
every color has a number beside it.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Final, NamedTuple

from dissector.analysis.stats.breakdowns import BREAKDOWNS, StatsGroup, api_label
from dissector.analysis.stats.counts import LATENCY_NOTE, ApiVersion, ExchangeCounts, Statistics
from dissector.analysis.stats.negotiated_versions import NegotiatedVersions, negotiated_versions
from dissector.core.finding import Severity
from dissector.core.text import bar, byte_size, clean, counted, duration, size
from tui.overview_connections import (
    NO_ENDS,
    CaptureConnections,
    broker_lines,
    handshake_lines,
    head_line,
    rest_lines,
)
from tui.row_states import ERROR_MARKS
from tui.widgets.line_list import StyledLine

PAGES: Final = {
    "summary": "Summary", "broker": "Brokers", "api": "APIs", "client": "Clients", "connection": "Connections",
    "topic": "Topics", "partition": "Partitions", "version": "Versions", "error": "Errors", "field": "Fields",
    "latency": "Latency", "tls": "TLS",
}  # fmt: skip
GROUPS: Final = {
    "api": "apis", "client": "clients", "connection": "connections", "topic": "topics", "partition": "partitions",
    "error": "errors",
}  # fmt: skip
"""The fields of `Statistics`, by page."""
SHORT: Final = {"connection": "Conns", "partition": "Parts"}
"""Names of pages on narrow screens."""
MOST: Final = 500
"""Lines of a page."""
FEW: Final = 5
"""Lines of a section of the summary."""
SLIM: Final = 72
"""Width below which groups have no bytes."""
OUTSIDE: Final = f"{ERROR_MARKS[Severity.ERROR][0]} "
"""Before versions that the broker does not offer."""


class GroupStats(NamedTuple):
    """The statistics of a group of exchanges; words are clean."""

    words: str
    filter: str
    exchanges: int
    bytes_out: int
    bytes_in: int
    errors: int
    p50: int | None
    p99: int | None


class VersionStats(NamedTuple):
    """The versions of an API that a client uses, of those that the broker offers."""

    api: str
    who: str
    filter: str
    used: tuple[int, int]
    offered: tuple[int, int] | None
    newest_offered: int | None
    is_outside: bool
    """Whether it used one that is not offered."""


class OverviewSnapshot(NamedTuple):
    """The statistics at one time."""

    summary: str
    groups: dict[str, tuple[tuple[GroupStats, ...], int]]
    """By page: its first lines, and how many there are."""
    versions: tuple[VersionStats, ...]
    fields: tuple[tuple[str, int, str], ...]
    """Path, bytes, filter."""
    estimated: str
    """How fields were measured if not all messages were."""
    latencies: tuple[tuple[int, int], ...]
    """Exponents of two, in nanoseconds, and how many exchanges took less than that, and at least half of it."""
    ends: CaptureConnections = NO_ENDS


def overview_snapshot(statistics: Statistics, ends: CaptureConnections = NO_ENDS) -> OverviewSnapshot:
    """Return a snapshot of statistics that do not change meanwhile."""
    total = statistics.total
    summary = (
        f"{counted(total.exchanges, 'exchange')} · {byte_size(total.bytes_out)} out · {byte_size(total.bytes_in)} in · "
        f"{total.errors:,} with errors · {total.unanswered:,} unanswered"
    )
    groups = {}
    for page, section in BREAKDOWNS.items():
        if page != "version":
            count = len(getattr(statistics, GROUPS[page]).counts)
            groups[page] = tuple(map(_entry, section(statistics, MOST))), count
    versions = tuple(_version_entry(each, line) for each, line in _versions(statistics))
    how = "" if statistics.fields.is_complete else f"estimated from {counted(statistics.fields.traced, 'message')}"
    return OverviewSnapshot(summary, groups, versions, _fields(statistics), how, _powers(total), ends)


def _entry(line: StatsGroup) -> GroupStats:
    counts = line.counts
    p50, p99 = counts.usual_latency.percentile(50), counts.usual_latency.percentile(99)
    return GroupStats(
        clean(line.label), line.filter, counts.exchanges, counts.bytes_out, counts.bytes_in, counts.errors, p50, p99
    )


def _versions(statistics: Statistics) -> Iterator[tuple[NegotiatedVersions, StatsGroup]]:
    return zip(negotiated_versions(statistics)[:MOST], BREAKDOWNS["version"](statistics, MOST), strict=True)


def _version_entry(each: NegotiatedVersions, line: StatsGroup) -> VersionStats:
    client = each.client_api.client
    return VersionStats(
        clean(line.fields["api"]),
        clean(f"{client.client_id or '(no client id)'} → {each.client_api.server}"),
        line.filter,
        (each.used.low, each.used.high),
        None if each.advertised is None else (each.advertised.low, each.advertised.high),
        each.newest_offered,
        each.is_outside,
    )


def _fields(statistics: Statistics) -> tuple[tuple[str, int, str], ...]:
    found = [
        (
            clean(f"{api_label(ApiVersion(kind.api_key, kind.version))} {kind.side}.{path}"),
            count,
            (kind.api_key, kind.version),
        )
        for kind, sample in statistics.fields.kinds.items()
        for path, count in sample.estimated()
    ]
    filters = {
        (line.fields["api_key"], line.fields["api_version"]): line.filter for line in BREAKDOWNS["api"](statistics)
    }
    ranked = sorted(found, key=lambda each: -each[1])[:MOST]
    return tuple((words, count, filters.get(api, "")) for words, count, api in ranked)


def _powers(total: ExchangeCounts) -> tuple[tuple[int, int], ...]:
    """Return counts by powers of two, waits included, without holes between the least and the greatest."""
    counts = Counter(total.latency.powers())
    counts.update(total.waits.powers())
    return tuple((power, counts[power]) for power in range(min(counts), max(counts) + 1)) if counts else ()


class PageTab(NamedTuple):
    """A page's name in the bar above the lines, and its cells."""

    page: str
    name: str
    cells: range


def tabs(page: str, width: int) -> list[PageTab]:
    """Return the names that fit, the shown page's among them, and a cell for an ellipsis at each end that has more."""
    pages = list(PAGES)
    names = [PAGES[each] if width >= 100 else SHORT.get(each, PAGES[each]) for each in pages]
    first = 0
    while first < pages.index(page) and sum(len(name) + 2 for name in names[first : pages.index(page) + 1]) > width - 2:
        first += 1
    found: list[PageTab] = []
    for each, name in zip(pages[first:], names[first:], strict=True):
        start = found[-1].cells.stop if found else int(first > 0)
        found.append(PageTab(each, f" {name} ", range(start, start + len(name) + 2)))
    room = width if found[-1].cells.stop <= width else width - 1
    return [tab for tab in found if tab.cells.stop <= room or tab.page == page]


def overview_lines(picture: OverviewSnapshot, page: str, width: int) -> list[StyledLine]:
    """Return the lines of a page."""
    if page == "summary":
        return list(_summary(picture, width))
    lines = list(_page(picture, page, width, MOST))
    return lines if len(lines) > 1 else [*lines, StyledLine((("  none", "dim"),))]


def _summary(picture: OverviewSnapshot, width: int) -> Iterator[StyledLine]:
    yield StyledLine(((picture.summary, ""),))
    yield StyledLine(((LATENCY_NOTE, "dim"),))
    for page in PAGES:
        if page not in ("summary", "partition"):
            lines = list(_page(picture, page, width, FEW if page != "latency" else MOST))
            if len(lines) > 1:
                yield StyledLine()
                yield from lines


def _page(picture: OverviewSnapshot, page: str, width: int, most: int) -> Iterator[StyledLine]:
    if page == "broker":
        yield from broker_lines(picture.ends, most)
    elif page == "tls":
        yield from handshake_lines(picture.ends, width, most)
    elif page == "version":
        yield from _version_lines(picture, width, most)
    elif page == "field":
        yield from _field_lines(picture, width, most)
    elif page == "latency":
        yield from _latency_lines(picture, width)
    else:
        yield from _group_lines(picture, page, width, most)


def _group_lines(picture: OverviewSnapshot, page: str, width: int, most: int) -> Iterator[StyledLine]:
    entries, count = picture.groups[page]
    highest = max((entry.exchanges for entry in entries), default=1)
    room = max(4, min(24, (width - 76) // 2))
    words = "bytes of records: " if page in ("topic", "partition") else ""
    slim = width < SLIM
    sizes = "" if slim else f"{'out':>7}{'in':>6}"
    columns = f"{'count':>8}{sizes}{'err':>6}{'p50':>9}{'p99':>9}"
    yield head_line(f"{columns}  {' ' * room} {PAGES[page]}" + (f" ({words.rstrip(': ')})" if words else ""))
    for entry in entries[:most]:
        latencies = ["" if ns is None else duration(ns) for ns in (entry.p50, entry.p99)]
        sizes = "" if slim else f"{size(entry.bytes_out):>7}{size(entry.bytes_in):>6}"
        pieces = (
            (f"{entry.exchanges:>8,}{sizes}", ""), (f"{entry.errors or '':>6}", "bad"),
            (f"{latencies[0]:>9}{latencies[1]:>9}  ", ""), (bar(entry.exchanges / highest, room), "bar"),
            (f" {entry.words}", "name"),
        )  # fmt: skip
        yield StyledLine(pieces, entry.filter or None)
    yield from rest_lines(count - most)


def _version_lines(picture: OverviewSnapshot, width: int, most: int) -> Iterator[StyledLine]:
    yield head_line(
        f"{'used':>9}{'offered':>9}{'newest':>8}  versions: ░ offered, █ used, ▲ newest stable, {OUTSIDE}not offered"
    )
    for entry in picture.versions[:most]:
        newest = "" if entry.newest_offered is None else f"v{entry.newest_offered}"
        alarm = "bad" if entry.is_outside else ""
        used = f"{OUTSIDE if entry.is_outside else ''}{_range(entry.used)}"
        yield StyledLine(
            (
                (f"{used:>9}", alarm), (f"{'-' if entry.offered is None else _range(entry.offered):>9}", ""),
                (f"{newest:>8}  ", ""), (_cells(entry), alarm or "bar"),
                (f"  {entry.api}", "name"), (f"  {entry.who}", "dim"),
            ),
            entry.filter,
        )  # fmt: skip
    yield from rest_lines(len(picture.versions) - most)


def _range(versions: tuple[int, int]) -> str:
    return f"v{versions[0]}" if versions[0] == versions[1] else f"v{versions[0]}-{versions[1]}"


def _cells(entry: VersionStats) -> str:
    """Return a cell for each version, from 0 on."""
    low, high = entry.offered or entry.used
    cells = []
    for version in range(min(20, max(high, entry.used[1]) + 1)):
        if entry.used[0] <= version <= entry.used[1]:
            cells.append("█")
        elif version == entry.newest_offered:
            cells.append("▲")
        else:
            cells.append("░" if low <= version <= high and entry.offered else " ")
    return "".join(cells).ljust(20)


def _field_lines(picture: OverviewSnapshot, width: int, most: int) -> Iterator[StyledLine]:
    total = sum(count for _, count, _ in picture.fields) or 1
    highest = max((count for _, count, _ in picture.fields), default=1)
    room = max(8, min(30, width // 5))
    how = f" ({picture.estimated})" if picture.estimated else ""
    yield head_line(f"{'bytes':>9}{'share':>8}  {' ' * room} Fields{how}")
    for words, count, chosen in picture.fields[:most]:
        yield StyledLine(
            (
                (f"{size(count):>9}{count / total:>8.1%}  ", ""),
                (bar(count / highest, room), "bar"),
                (f" {words}", "name"),
            ),
            chosen or None,
        )
    yield from rest_lines(len(picture.fields) - most)


def _latency_lines(picture: OverviewSnapshot, width: int) -> Iterator[StyledLine]:
    yield head_line(f"{'exchanges':>9}{'below':>10}  Latency, each bucket twice the one above")
    highest = max((count for _, count in picture.latencies), default=1)
    for power, count in picture.latencies:
        below = duration(1 << power) if power >= 10 else f"{1 << power} ns"
        chosen = f"latency >= {_nanoseconds(power - 1)} && latency < {_nanoseconds(power)}"
        yield StyledLine(
            ((f"{count:>9,}{below:>10}  ", ""), (bar(count / highest, max(8, width - 26)), "bar")),
            chosen if count else None,
        )


def _nanoseconds(power: int) -> str:
    return f"{1 << power}ns" if power >= 0 else "0ns"
