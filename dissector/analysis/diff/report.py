"""A comparison as blocks of text.

Invariant: every text is cleaned here (`core.text.clean`), and nowhere else: a renderer adds its markup and escapes.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Final

from dissector.analysis.diff.behavior import BehaviorMatrix
from dissector.analysis.diff.formatting import format_occurrences, name_sides
from dissector.analysis.diff.key_differences import ELEMENTS
from dissector.analysis.diff.ranking import area_of
from dissector.analysis.diff.result import DiffEntry, DiffReason, DiffResult, SideSummary
from dissector.analysis.diff.summary import summary_lines
from dissector.analysis.rendering import HeadingBlock, ListBlock, ReportBlock, TableBlock
from dissector.core.text import byte_range, clean, counted

MIN_SUMMARIZED: Final = 8
"""Fewer differences are as quickly read as a summary."""
MOST_BYTES: Final = 64
"""Bytes of a field that a page shows."""
COUNTED_UNITS: Final = {DiffReason.CONTENT: ("record", "records"), DiffReason.BATCHING: ("batch", "batches")}


def diff_report(result: DiffResult, *, with_bytes: bool = False) -> Iterator[ReportBlock]:
    """Yield the report on two sides; `with_bytes` folds the bytes of each field behind its difference."""
    yield HeadingBlock(1, "No differences" if result.is_same else counted(len(result.entries), "difference"))
    yield ListBlock(_side_line("A", result.a))
    yield ListBlock(_side_line("B", result.b))
    yield from (ListBlock(clean(f"Not compared: {words}")) for words in result.not_compared)
    if len(result.entries) > MIN_SUMMARIZED:
        yield HeadingBlock(2, "In brief")
        yield from (ListBlock(clean(line)) for line in summary_lines(result.entries))
    for area, entries in groupby(result.entries, key=area_of):
        yield HeadingBlock(2, area.value)
        yield from _area_blocks(result, list(entries), with_bytes=with_bytes)
    yield HeadingBlock(2, "Ignored")
    for text in result.ignored:
        yield ListBlock(clean(text))


def _area_blocks(result: DiffResult, entries: Sequence[DiffEntry], *, with_bytes: bool) -> Iterator[ListBlock]:
    """Yield the entries of an area; the APIs that only one side uses, and of which no more is to be said, together."""
    alone: dict[str, list[str]] = {}
    for entry in entries:
        if _is_bare(entry):
            side, count = ("A", entry.count_a) if entry.row_b is None else ("B", entry.count_b)
            alone.setdefault(side, []).append(f"{entry.api} ({format_occurrences(count, count)})")
        else:
            block = entry_block(entry, with_api=True)
            yield replace(block, folded=_field_lines(result, entry)) if with_bytes else block
    for side, apis in sorted(alone.items()):
        yield ListBlock(clean(f"{counted(len(apis), 'API')}: {', '.join(apis)}"), f"only in {side}")


def _is_bare(entry: DiffEntry) -> bool:
    """Return whether all that an entry says is that one side alone uses an API."""
    is_alone = entry.reason is DiffReason.ONE_SIDE and not entry.part and not entry.subject
    return is_alone and not entry.explanation and not entry.settings


def _field_lines(result: DiffResult, entry: DiffEntry) -> tuple[str, ...]:
    """Return for each side the field, its value and its bytes."""
    lines = []
    for each in result.field_bytes(entry):
        name = ".".join(filter(None, (each.part, each.path))) if each.path else "version"
        lines.append(f"{each.side}, exchange {each.row + 1:,}: {name} = {each.value}")
        more = f" and {len(each.data) - MOST_BYTES:,} more" if len(each.data) > MOST_BYTES else ""
        where = byte_range(each.start, len(each.data))
        lines.append(f"    {where}: {each.data[:MOST_BYTES].hex(' ')}{more}")
    return tuple(map(clean, lines))


def _side_line(name: str, side: SideSummary) -> str:
    skipped = "".join(f", {counted(count, 'row')} skipped ({kind})" for kind, count in side.skipped)
    connections = sum(count for _, count in side.connections)
    clients = ", ".join(side.clients) or "no client"
    size = f"{counted(side.exchanges, 'exchange')} on {counted(connections, 'connection')}"
    return clean(f"{name}: {side.label} ({clients}), {size}{skipped}")


def entry_block(entry: DiffEntry, *, with_api: bool = False) -> ListBlock:
    """Return one entry: what differs, what each side has, how often; then why, and which settings control it."""
    details = [entry_explanation(entry)]
    if entry.settings:
        details.append("set by " + ", ".join(f"{name} ({family})" for family, name in entry.settings))
    api = f"{entry.api} " if with_api and entry.api else ""
    return ListBlock(clean(api + _headline(entry)), entry_reason(entry), tuple(clean(text) for text in details if text))


def entry_reason(entry: DiffEntry) -> str:
    """Return the reason of an entry; for what one side alone has, which side; of array elements the headline has it."""
    if entry.explanation.startswith(ELEMENTS):
        return ""
    if entry.reason is DiffReason.ONE_SIDE:
        if not entry.count_b:
            return "only in A"
        if not entry.count_a:
            return "only in B"
    return entry.reason.value


def entry_explanation(entry: DiffEntry) -> str:
    """Return why the sides differ; the sides are A and B."""
    return name_sides(entry.explanation.removeprefix(ELEMENTS).removeprefix("; "))


def entry_name(entry: DiffEntry) -> str:
    """Return what an entry is about: a field, the order of requests, their number."""
    if entry.part or entry.path:
        name = ".".join(filter(None, (entry.part, entry.path)))
    else:
        name = "order" if entry.reason is DiffReason.ORDER else "requests"
    return " ".join(filter(None, (name, entry.subject)))


def _headline(entry: DiffEntry) -> str:
    name = entry_name(entry)
    if not (entry.part or entry.path) or entry.reason in (DiffReason.COUNT, DiffReason.RATE):
        return f"{name}: {entry.a} vs {entry.b}"
    if entry.explanation.startswith(ELEMENTS):
        texts = [f"{text} only in {side}" for text, side in ((entry.a, "A"), (entry.b, "B")) if text]
        counts = [entry.count_a or entry.count_b, entry.count_b or entry.count_a]
        return f"{name}: {', '.join(texts)} ({format_occurrences(*counts)})"
    if not entry.a or not entry.b:
        value, count, side = (entry.a, entry.count_a, "A") if entry.a else (entry.b, entry.count_b, "B")
        only = "" if entry.reason is DiffReason.ONE_SIDE else f", only in {side}"  # else the reason says it
        return f"{name}: {value} ({format_occurrences(count, count)}){only}"
    values = f"both have {entry.a}" if entry.a == entry.b else f"{entry.a} vs {entry.b}"
    if entry.reason is DiffReason.CONTENT and entry.a != entry.b:
        return f"{name}: {values}"  # that are the numbers of records
    return f"{name}: {values} ({entry_occurrences(entry)})"


def entry_occurrences(entry: DiffEntry) -> str:
    """Return how often both sides have it: records and batches are counted as such, all else in occurrences."""
    a, b = entry.count_a, entry.count_b
    if entry.reason not in COUNTED_UNITS:
        return format_occurrences(a, b)
    unit, units = COUNTED_UNITS[entry.reason]
    return counted(a, unit, units) if a == b else f"{a:,} vs {b:,} {units}"


def matrix_report(matrix: BehaviorMatrix) -> Iterator[ReportBlock]:
    """Yield the report on any number of sides."""
    yield HeadingBlock(1, f"Behavior of {len(matrix.labels)} sides")
    head = ("", *(clean(label) for label in matrix.labels))
    yield from (ListBlock(clean(f"Not compared: {words}")) for words in matrix.not_compared)
    yield TableBlock((head, *((clean(name), *map(clean, texts)) for name, texts in matrix.rows)))
