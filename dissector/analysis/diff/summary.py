"""The differences between two sides in a few lines: one for each area, the most important first."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, takewhile
from typing import Final

from dissector.analysis.diff.batch_comparison import SAME_RECORDS
from dissector.analysis.diff.key_differences import ELEMENTS
from dissector.analysis.diff.ranking import Area, area_of, significance
from dissector.analysis.diff.result import DiffEntry, DiffReason
from dissector.core.text import counted

WIDTH: Final = 76
"""Characters of a line, so that it fits into 80 columns with its indentation."""
MAX_VALUE: Final = 22
TITLES: Final = {
    ("InitProducerId", ""): "idempotence",
    ("Fetch", "session_id"): "fetch sessions",
    ("JoinGroup", "protocols"): "assignors",
    ("JoinGroup", "protocols.metadata.version"): "subscription version",
    ("SyncGroup", "assignments.assignment.version"): "assignment version",
    ("Produce", "topic_data.partition_data.records.compression"): "compression",
    ("ApiVersions", "client_software_name"): "software",
}
"""By API and path: what readers call it."""
_ENUM: Final = re.compile(r"-?\d+ ([A-Z][A-Z_0-9]+)")


def summary_lines(entries: Iterable[DiffEntry]) -> Iterator[str]:
    """Yield a line for each area that has entries, which are in the order of a report."""
    for area, group in groupby(entries, key=area_of):
        of_area = list(group)
        if area is Area.VERSIONS:
            yield f"{area}: {_versions(of_area)}"
        else:
            yield _listed(f"{area}: ", Counter(map(_brief, sorted(of_area, key=significance))))


def _listed(start: str, entries: Counter[str]) -> str:
    """Return as many texts as fit into a line, and how many more entries there are."""
    shown = len(entries)
    while True:
        left = sum(list(entries.values())[shown:])
        line = f"{start}{'; '.join(list(entries)[:shown])}{f'; and {left} more' if left else ''}"
        if len(line) <= WIDTH or shown == 1:
            return line
        shown -= 1


def _versions(entries: Sequence[DiffEntry]) -> str:
    newer = [sum(_highest(one) > _highest(other) for one, other in pairs)
             for pairs in ([(e.a, e.b) for e in entries], [(e.b, e.a) for e in entries])]  # fmt: skip
    texts = [f"{side} has newer versions of {counted(n, 'API')}" for side, n in zip("AB", newer, strict=True) if n]
    return ", ".join(texts) or f"others of {counted(len(entries), 'API')}"


def _highest(versions: str) -> int:
    return max((int(n) for n in re.findall(r"\d+", versions)), default=-1)


def _brief(entry: DiffEntry) -> str:
    """Return an entry in a few words."""
    if entry.reason is DiffReason.CONTENT:
        return "keys in other partitions" if entry.explanation.startswith(SAME_RECORDS) else "other records"
    if not entry.api:
        return f"{entry.count_a:,} vs {counted(entry.count_b, 'connection')}"
    if entry.reason is DiffReason.ORDER:
        return f"{entry.api} in another order"
    title = TITLES.get((entry.api, entry.path)) if not entry.subject else None
    if not entry.part and entry.path:
        name = f"{entry.api} {entry.path.replace('_', ' ')}"
    elif entry.part:
        name = title or entry.path.rpartition(".")[2]
    else:
        name = title or " ".join(filter(None, (entry.api, entry.subject)))
    if not entry.part and entry.reason is DiffReason.ONE_SIDE:
        return f"{name} only in {'B' if entry.row_a is None else 'A'}"
    a, b = _values(entry.a, entry.b)
    if entry.explanation.startswith(ELEMENTS):
        texts = ", ".join(f"{text} only in {side}" for text, side in ((a, "A"), (b, "B")) if text)
        return texts if title else f"{texts} ({name})"
    if entry.path == "session_id" and "no session" in (entry.a, entry.b):
        if "new session" in (entry.a, entry.b):  # it asks for sessions and never goes on with one
            return f"{entry.a} vs {entry.b}"
        return f"{name} only in {'B' if entry.a == 'no session' else 'A'}"
    return f"{name} {a} vs {b}" if a and b else f"{name} {a or b} only in {'A' if a else 'B'}"


def _values(a: str, b: str) -> list[str]:
    """Return the values of both sides in brief: of a number with a name, the name; of several, those that one side
    alone has, if both have such; of texts that begin alike and are too long, what follows."""
    sides = [_ENUM.sub(r"\1", text).split(", ") for text in (a, b)]
    alone = [[text for text in mine if text not in other] for mine, other in (sides, sides[::-1])]
    texts = [", ".join(side) for side in (alone if all(alone) else sides)]
    if texts[0] != texts[1] and _cut(texts[0]) == _cut(texts[1]):
        words = [text.split() for text in texts]
        alike = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(*words, strict=False)))
        texts = [" ".join(("…", *each[alike:])) if alike else text for each, text in zip(words, texts, strict=True)]
    return [_cut(text) for text in texts]


def _cut(text: str) -> str:
    return text if len(text) <= MAX_VALUE else f"{text[: MAX_VALUE - 1]}…"
