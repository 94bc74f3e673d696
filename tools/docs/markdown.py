"""Markdown, as generated pages have it."""

from collections.abc import Iterable


def table(*rows: Iterable[object]) -> str:
    """Return a table; the first row is its head."""
    head, *rest = [[_cell(str(cell)) for cell in row] for row in rows]
    lines = [head, ["---"] * len(head), *rest]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def code(text: str) -> str:
    """Return words as code; nothing for none."""
    return f"`{text}`" if text else ""


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
