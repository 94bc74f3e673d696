"""The blocks of a report: headings, list items with details, tables. `rendering` turns them into a format.

Invariant: every text is clean (`core.text.clean`): a renderer adds its markup and escapes.
"""

from dataclasses import dataclass


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


ReportBlock = HeadingBlock | ListBlock | TableBlock
