"""A comparison as blocks of text: headings, list items with details, tables. Renderers turn them into a format.

Invariant: every text is cleaned here (`core.text.clean`), and nowhere else: a renderer adds its markup and escapes.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from dissector.analysis.diff.consequences import FOLLOWED_BY
from dissector.analysis.diff.formatting import format_occurrences, name_sides
from dissector.analysis.diff.matrix import BehaviorMatrix
from dissector.analysis.diff.result import DiffEntry, DiffReason, DiffResult, SideSummary
from dissector.core.text import clean, counted


@dataclass(frozen=True, slots=True)
class HeadingBlock:
    """A heading. Level 1 is the title of the report."""

    level: int
    text: str


@dataclass(frozen=True, slots=True)
class ListBlock:
    """An item of a list, its reason, and lines of details."""

    text: str
    reason: str = ""
    details: tuple[str, ...] = ()
    folded: tuple[str, ...] = ()
    """Lines of fixed width that a page folds behind the item; other forms leave them out."""


@dataclass(frozen=True, slots=True)
class TableBlock:
    """Cells; the first row is the head."""

    rows: tuple[tuple[str, ...], ...]


MOST_BYTES: Final = 64
"""Bytes of a field that a page shows."""
COUNTED_UNITS: Final = {DiffReason.CONTENT: ("record", "records"), DiffReason.BATCHING: ("batch", "batches")}
ReportBlock = HeadingBlock | ListBlock | TableBlock


def diff_report(result: DiffResult, *, with_bytes: bool = False) -> Iterator[ReportBlock]:
    """Yield the report on two sides; `with_bytes` folds the bytes of each field behind its difference."""
    yield HeadingBlock(1, "No differences" if result.is_same else counted(len(result.entries), "difference"))
    yield ListBlock(_side_line("A", result.a))
    yield ListBlock(_side_line("B", result.b))
    api = None
    for entry in result.entries:
        if entry.api != api:
            api = entry.api
            yield HeadingBlock(2, clean(api) or "Connections")
        block = entry_block(entry)
        yield replace(block, folded=_field_lines(result, entry)) if with_bytes else block
    yield HeadingBlock(2, "Ignored")
    for text in result.ignored:
        yield ListBlock(clean(text))


def _field_lines(result: DiffResult, entry: DiffEntry) -> tuple[str, ...]:
    """Return for each side the field, its value and its bytes."""
    lines = []
    for each in result.field_bytes(entry):
        name = ".".join(filter(None, (each.part, each.path))) if each.path else "version"
        lines.append(f"{each.side}, exchange {each.row + 1:,}: {name} = {each.value}")
        last = each.start + len(each.data) - 1
        more = f" and {len(each.data) - MOST_BYTES:,} more" if len(each.data) > MOST_BYTES else ""
        lines.append(f"    bytes {each.start:,} to {last:,}: {each.data[:MOST_BYTES].hex(' ')}{more}")
    return tuple(map(clean, lines))


def _side_line(name: str, side: SideSummary) -> str:
    skipped = "".join(f", {counted(count, 'row')} skipped ({kind})" for kind, count in side.skipped)
    connections = sum(count for _, count in side.connections)
    clients = ", ".join(side.clients) or "no client"
    size = f"{counted(side.exchanges, 'exchange')} on {counted(connections, 'connection')}"
    return clean(f"{name}: {side.label} ({clients}), {size}{skipped}")


def entry_block(entry: DiffEntry) -> ListBlock:
    """Return one entry: what differs, what each side has, how often; then why, and which settings control it."""
    details = [entry_explanation(entry)]
    if entry.settings:
        details.append("set by " + ", ".join(f"{name} ({family})" for family, name in entry.settings))
    return ListBlock(clean(_headline(entry)), entry_reason(entry), tuple(clean(text) for text in details if text))


def entry_reason(entry: DiffEntry) -> str:
    """Return the reason of an entry; for what one side alone has, which side."""
    if entry.reason is DiffReason.ONE_SIDE:
        if not entry.count_b:
            return "only in A"
        if not entry.count_a:
            return "only in B"
    return entry.reason.value


def entry_explanation(entry: DiffEntry) -> str:
    """Return why the sides differ, without the subject that the headline has; the sides are A and B."""
    subject = "" if entry.part or entry.path else entry_subject(entry)
    return name_sides(entry.explanation.removeprefix(subject).removeprefix("; "))


def entry_subject(entry: DiffEntry) -> str:
    """Return what the requests of one side alone are for; empty if the other side has no requests of that API."""
    first = entry.explanation.partition("; ")[0]
    return first if entry.reason is DiffReason.ONE_SIDE and not first.startswith(FOLLOWED_BY) else ""


def entry_name(entry: DiffEntry) -> str:
    """Return what an entry is about: a field, the order of requests, their number."""
    if entry.part or entry.path:
        return ".".join(filter(None, (entry.part, entry.path)))
    return "order" if entry.reason is DiffReason.ORDER else " ".join(filter(None, ("requests", entry_subject(entry))))


def _headline(entry: DiffEntry) -> str:
    name = entry_name(entry)
    if not (entry.part or entry.path) or entry.reason is DiffReason.COUNT:
        return f"{name}: {entry.a} vs {entry.b}"
    if not entry.a or not entry.b:
        value, count, side = (entry.a, entry.count_a, "A") if entry.a else (entry.b, entry.count_b, "B")
        only = "" if entry.reason is DiffReason.ONE_SIDE else f", only in {side}"  # else the reason says it
        return f"{name}: {value} ({format_occurrences(count, count)}){only}"
    values = f"both have {entry.a}" if entry.a == entry.b else f"{entry.a} vs {entry.b}"
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
    yield TableBlock((head, *((clean(name), *map(clean, texts)) for name, texts in matrix.rows)))
