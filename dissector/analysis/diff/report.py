"""A comparison as blocks of text: headings, lines with what belongs to them, tables. Renderers give them their form.

Invariant: every word is cleaned here (`text.clean`), and nowhere else: a renderer adds markup of its own and escapes.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from dissector.analysis.diff.formatting import format_count
from dissector.analysis.diff.matrix import BehaviorMatrix
from dissector.analysis.diff.result import DiffEntry, DiffReason, DiffResult, SideSummary
from dissector.core.text import clean, counted


@dataclass(frozen=True, slots=True)
class HeadingBlock:
    """The title of what follows. Level 1 is the report's own."""

    level: int
    text: str


@dataclass(frozen=True, slots=True)
class ListBlock:
    """A line of a list, the reason for it, and lines that belong to it."""

    text: str
    reason: str = ""
    more: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TableBlock:
    """Cells; the first line is the head."""

    rows: tuple[tuple[str, ...], ...]


ReportBlock = HeadingBlock | ListBlock | TableBlock


def diff_report(comparison: DiffResult) -> Iterator[ReportBlock]:
    """The report on two sides."""
    yield HeadingBlock(1, "The same, by the rules below" if comparison.is_same else _count(comparison))
    yield ListBlock(_side("A", comparison.a))
    yield ListBlock(_side("B", comparison.b))
    api = None
    for entry in comparison.entries:
        if entry.api != api:
            api = entry.api
            yield HeadingBlock(2, clean(api) or "Connections")
        yield entry_block(entry)
    yield HeadingBlock(2, "Not taken for differences")
    for words in comparison.ignored:
        yield ListBlock(clean(words))


def _count(comparison: DiffResult) -> str:
    count = len(comparison.entries)
    return f"{count} difference{'s' if count > 1 else ''}"


def _side(name: str, side: SideSummary) -> str:
    left = "".join(f", {counted(count, 'row')} left out: {what}" for what, count in side.left_out)
    connections = sum(count for _, count in side.connections)
    who = ", ".join(side.clients) or "no client"
    much = f"{counted(side.exchanges, 'exchange')} on {counted(connections, 'connection')}"
    return clean(f"{name} is {side.label}: {who}; {much}{left}")


def entry_block(entry: DiffEntry) -> ListBlock:
    """One difference: what it is, what each side has, how often; then why, and what controls it."""
    told = "" if entry.part or entry.path else entry_subject(entry)
    more = [entry.words.removeprefix(told).removeprefix("; ").replace("{a}", "A").replace("{b}", "B")]
    if entry.settings:
        more.append("set by " + ", ".join(f"{name} ({family})" for family, name in entry.settings))
    return ListBlock(clean(_headline(entry)), entry.reason.value, tuple(clean(words) for words in more if words))


def _headline(entry: DiffEntry) -> str:
    what = ".".join(filter(None, (entry.part, entry.path)))
    if entry.reason is DiffReason.ORDER:
        return f"order: {entry.a} against {entry.b}"
    if not what:
        return f"{' '.join(filter(None, ('sent', entry_subject(entry))))}: {entry.a} against {entry.b}"
    if not entry.a or not entry.b:
        side, value, count = ("A", entry.a, entry.count_a) if entry.a else ("B", entry.b, entry.count_b)
        return f"{what}: {value} in {side}, {format_count(count)}; the other has none"
    if entry.a == entry.b:
        return f"{what}: {entry.a} on both sides, {_often(entry)}"
    often = "" if entry.reason is DiffReason.COUNT else f", {_often(entry)}"
    return f"{what}: {entry.a} against {entry.b}{often}"


def entry_subject(entry: DiffEntry) -> str:
    """What is sent for: the first of the words of what one side alone sends, where there is other of its API."""
    first = entry.words.partition("; ")[0]
    return first if entry.reason is DiffReason.ONLY_HERE and not first.startswith("and with it") else ""


def _often(entry: DiffEntry) -> str:
    told = [_counted(entry.reason, count) for count in dict.fromkeys((entry.count_a, entry.count_b))]
    return " and ".join(told)


def _counted(reason: DiffReason, count: int) -> str:
    """Records and batches are counted as such, and all else as how often it was said."""
    words = {DiffReason.CONTENT: ("record", "records"), DiffReason.BATCHING: ("batch", "batches")}.get(reason)
    return format_count(count) if words is None else f"{count:,} {words[count != 1]}"


def matrix_report(matrix: BehaviorMatrix) -> Iterator[ReportBlock]:
    """The report on several sides."""
    yield HeadingBlock(1, f"{len(matrix.labels)} sides, by what they do")
    head = ("", *(clean(label) for label in matrix.labels))
    yield TableBlock((head, *((clean(name), *map(clean, words)) for name, words in matrix.rows)))
