"""Blocks of a report as text of 80 columns, as Markdown, and as an HTML page that needs nothing else."""

import re
from collections.abc import Iterable, Iterator
from html import escape
from itertools import zip_longest
from textwrap import TextWrapper, wrap
from typing import Final

from dissector.analysis.diff.report import HeadingBlock, ListBlock, ReportBlock, TableBlock

COLUMNS: Final = 80
LEAST: Final = 12
"""Columns of a table's cell, where there are many."""
HEAD: Final = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>kdissect diff</title><style>
body{font:15px/1.45 system-ui,sans-serif;max-width:72rem;margin:2rem auto;padding:0 1rem;color:#1b1f24;background:#fff}
h2{margin:1.6rem 0 .3rem;border-bottom:1px solid #d0d7de}li{margin:.35rem 0}small{display:block;color:#57606a}
em{font-style:normal;border:1px solid #8c959f;border-radius:.6em;padding:0 .5em;font-size:85%}
table{border-collapse:collapse}td,th{border:1px solid #d0d7de;padding:.25rem .5rem;text-align:left;vertical-align:top}
@media(prefers-color-scheme:dark){body{color:#e6edf3;background:#0d1117}small{color:#9198a1}}
</style></head><body>
"""


def render_text(blocks: Iterable[ReportBlock]) -> Iterator[str]:
    """Lines of at most 80 columns, but where a table has so many columns that it can't be."""
    for block in blocks:
        if isinstance(block, HeadingBlock):
            yield from ("", block.text) if block.level > 1 else (block.text,)
        elif isinstance(block, ListBlock):
            reason = f" [{block.reason}]" if block.reason else ""
            yield from _wrapped(block.text + reason, "  ")
            for more in block.more:
                yield from _wrapped(more, "      ")
        else:
            yield from _columns(block)


def _wrapped(words: str, indent: str) -> list[str]:
    return wrap(words, COLUMNS, initial_indent=indent, subsequent_indent=indent + "  ", break_on_hyphens=False)


class _CellWrapper(TextWrapper):
    """Breaks words where a name has its joints, too: a cell is often narrower than READ_UNCOMMITTED."""

    wordsep_simple_re = re.compile(r"(\s+)|(?<=[\w.][_-])(?=[a-zA-Z0-9])")


def _columns(table: TableBlock) -> Iterator[str]:
    """Cells side by side, each wrapped to its column."""
    first = max(len(row[0]) for row in table.rows)
    others = len(table.rows[0]) - 1
    width = max(LEAST, (COLUMNS - first) // max(1, others) - 2)
    narrow = _CellWrapper(width, break_on_hyphens=False)
    for row in table.rows:
        cells = [[row[0]], *(narrow.wrap(cell) or [""] for cell in row[1:])]
        for line in zip_longest(*cells, fillvalue=""):
            yield "  ".join(cell.ljust(first if n == 0 else width) for n, cell in enumerate(line)).rstrip()


def render_markdown(blocks: Iterable[ReportBlock]) -> Iterator[str]:
    """Markdown, lists and tables; every character that means something to it is escaped."""
    for block in blocks:
        if isinstance(block, HeadingBlock):
            yield from ("", f"{'#' * block.level} {_plain(block.text)}", "")
        elif isinstance(block, ListBlock):
            reason = f" *({_plain(block.reason)})*" if block.reason else ""
            yield f"- {_plain(block.text)}{reason}"
            yield from (f"  - {_plain(more)}" for more in block.more)
        else:
            head, *rows = (f"| {' | '.join(map(_plain, row))} |" for row in block.rows)
            yield from (head, f"|{'---|' * len(block.rows[0])}", *rows)


def _plain(words: str) -> str:
    return "".join(f"\\{letter}" if letter in "\\`*_{}[]<>()#+!|~&$" else letter for letter in words)


def render_html(blocks: Iterable[ReportBlock]) -> Iterator[str]:
    """A page by itself."""
    yield HEAD
    listing = False
    for block in blocks:
        if listing != isinstance(block, ListBlock):
            listing = not listing
            yield "<ul>" if listing else "</ul>"
        if isinstance(block, HeadingBlock):
            yield f"<h{block.level}>{escape(block.text)}</h{block.level}>"
        elif isinstance(block, ListBlock):
            reason = f" <em>{escape(block.reason)}</em>" if block.reason else ""
            more = "".join(f"<small>{escape(words)}</small>" for words in block.more)
            yield f"<li>{escape(block.text)}{reason}{more}</li>"
        else:
            yield "<table>"
            for n, row in enumerate(block.rows):
                tag = "td" if n else "th"
                yield f"<tr>{''.join(f'<{tag}>{escape(cell)}</{tag}>' for cell in row)}</tr>"
            yield "</table>"
    yield "</ul></body></html>" if listing else "</body></html>"
