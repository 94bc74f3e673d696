"""The blocks of a report, rendered as text of 80 columns, as Markdown, and as a self-contained HTML page.

Invariant: the texts of blocks are clean (`core.text.clean`); a renderer adds its markup and escapes.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import zip_longest
from textwrap import TextWrapper, wrap
from typing import Final


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

COLUMNS: Final = 80
MIN_CELL: Final = 12
"""The minimum width of a table's cell."""
HEAD: Final = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">
<title>TITLE</title><style>
:root{color-scheme:light dark;--page:#fff}
body{overflow-wrap:anywhere;font:15px/1.45 system-ui,sans-serif;max-width:72rem;margin:2rem auto;padding:0 1rem;
color:#1b1f24;background:var(--page)}
h2{margin:1.6rem 0 .3rem;border-bottom:1px solid #d0d7de}li{margin:.35rem 0}small{color:#57606a}
em{display:inline-block;font-style:normal;border:1px solid #8c959f;border-radius:.6em;padding:0 .5em;font-size:85%}
details{margin:.2rem 0}summary{cursor:pointer;color:#0969da;font-size:85%}
pre{margin:.3rem 0;padding:.5rem .7rem;overflow-x:auto;background:#f6f8fa;border-radius:.4rem;
font:12.5px/1.4 ui-monospace,monospace}
.wide{overflow-x:auto;overflow-wrap:normal}
table{border-collapse:collapse}td:first-child,th:first-child{position:sticky;left:0;background:var(--page)}
td,th{border:1px solid #d0d7de;padding:.25rem .5rem;text-align:left;vertical-align:top}
@media(max-width:40rem){body{margin:1rem auto}h1{font-size:1.5rem}ul{padding-left:1.2rem}}
@media(prefers-color-scheme:dark){:root{--page:#0d1117}body{color:#e6edf3}small{color:#9198a1}
summary{color:#4493f8}pre{background:#151b23}h2{border-color:#3d444d}td,th{border-color:#3d444d}}
</style></head><body>
"""


def render_text(blocks: Iterable[ReportBlock]) -> Iterator[str]:
    """Yield lines of at most 80 columns, unless a table has too many columns for that."""
    for block in blocks:
        if isinstance(block, HeadingBlock):
            yield from ("", block.text) if block.level > 1 else (block.text,)
        elif isinstance(block, ListBlock):
            reason = f" [{block.reason}]" if block.reason else ""
            yield from _wrapped(block.text + reason, "  ")
            for details in block.details:
                yield from _wrapped(details, "      ")
        else:
            yield from _columns(block)


def _wrapped(text: str, indent: str) -> list[str]:
    return wrap(text, COLUMNS, initial_indent=indent, subsequent_indent=indent + "  ", break_on_hyphens=False)


class _CellWrapper(TextWrapper):
    """Breaks names at underscores and dashes too: a cell is often narrower than READ_UNCOMMITTED."""

    wordsep_simple_re = re.compile(r"(\s+)|(?<=[\w.][_-])(?=[a-zA-Z0-9])")


def _columns(table: TableBlock) -> Iterator[str]:
    """Yield the lines of a table, its cells wrapped to their columns."""
    first = max(len(row[0]) for row in table.rows)
    others = len(table.rows[0]) - 1
    width = max(MIN_CELL, (COLUMNS - first) // max(1, others) - 2)
    narrow = _CellWrapper(width, break_on_hyphens=False)
    for row in table.rows:
        cells = [[row[0]], *(narrow.wrap(cell) or [""] for cell in row[1:])]
        for line in zip_longest(*cells, fillvalue=""):
            yield "  ".join(cell.ljust(first if n == 0 else width) for n, cell in enumerate(line)).rstrip()


def render_markdown(blocks: Iterable[ReportBlock]) -> Iterator[str]:
    """Yield Markdown with lists and tables; every character that is markup is escaped."""
    for block in blocks:
        if isinstance(block, HeadingBlock):
            yield from ("", f"{'#' * block.level} {_escape_markdown(block.text)}", "")
        elif isinstance(block, ListBlock):
            reason = f" *({_escape_markdown(block.reason)})*" if block.reason else ""
            yield f"- {_escape_markdown(block.text)}{reason}"
            yield from (f"  - {_escape_markdown(text)}" for text in block.details)
        else:
            head, *rows = (f"| {' | '.join(map(_escape_markdown, row))} |" for row in block.rows)
            yield from (head, f"|{'---|' * len(block.rows[0])}", *rows)


def _escape_markdown(text: str) -> str:
    return "".join(f"\\{letter}" if letter in "\\`*_{}[]<>()#+!|~&$" else letter for letter in text)


def _escaped(text: str) -> str:
    """Return a text with the characters that mark up a page written as entities."""
    from html import escape  # with a table of all entities, which only pages need

    return escape(text)


def _folded(lines: tuple[str, ...]) -> str:
    if not lines:
        return ""
    text = "\n".join(map(_escaped, lines))
    return f"<details><summary>fields and bytes</summary><pre>{text}</pre></details>"


def render_html(blocks: Iterable[ReportBlock]) -> Iterator[str]:
    """Yield a complete page; its title is its first heading."""
    first, *others = blocks
    title = f"kdissect: {first.text}" if isinstance(first, HeadingBlock) else "kdissect"
    yield HEAD.replace("TITLE", _escaped(title))
    yield from _html_body((first, *others))
    yield "</body></html>"


def render_notebook(blocks: Iterable[ReportBlock]) -> str:
    """Return the same for a notebook: without a style sheet, which would apply to the whole notebook."""
    return "\n".join(("<div>", *_html_body(blocks), "</div>"))


def _html_body(blocks: Iterable[ReportBlock]) -> Iterator[str]:
    in_list = False
    for block in blocks:
        if in_list != isinstance(block, ListBlock):
            in_list = not in_list
            yield "<ul>" if in_list else "</ul>"
        if isinstance(block, HeadingBlock):
            yield f"<h{block.level}>{_escaped(block.text)}</h{block.level}>"
        elif isinstance(block, ListBlock):
            reason = f" <em>{_escaped(block.reason)}</em>" if block.reason else ""
            details = "".join(f"<br><small>{_escaped(text)}</small>" for text in block.details)
            yield f"<li>{_escaped(block.text)}{reason}{details}{_folded(block.folded)}</li>"
        else:
            yield '<div class="wide"><table>'
            for n, row in enumerate(block.rows):
                tag = "td" if n else "th"
                yield f"<tr>{''.join(f'<{tag}>{_escaped(cell)}</{tag}>' for cell in row)}</tr>"
            yield "</table></div>"
    if in_list:
        yield "</ul>"
