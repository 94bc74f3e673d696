"""Writes a page with the answers to all questions: python examples/tables/dashboard.py TABLES PAGE.html

The page needs nothing from elsewhere: its pictures are bars in SVG.
"""

import sys
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any

from questions import QUESTIONS, Question, duckdb_tables

MOST_ROWS = 20
STYLE = """
body { font: 15px system-ui, sans-serif; margin: 2em auto; max-width: 70em; color: #222; background: #fff }
table { border-collapse: collapse } td, th { padding: .2em .8em; text-align: left; border-bottom: 1px solid #ddd }
.number { text-align: right; font-variant-numeric: tabular-nums } rect { fill: #2a7ab0 } p { color: #666 }
@media (prefers-color-scheme: dark) { body { color: #ddd; background: #181c22 } td, th { border-color: #333 } }
"""


def cell(value: Any) -> str:
    """A cell of a table. What clients sent is escaped."""
    if isinstance(value, float):
        return f'<td class="number">{value:,.3f}</td>'
    if isinstance(value, int):
        return f'<td class="number">{value:,}</td>'
    return f"<td>{escape('' if value is None else str(value))}</td>"


def bar(value: float, most: float) -> str:
    """A value as a bar."""
    width = 160 * float(value or 0) / (most or 1)
    return f'<td><svg width="160" height="12"><rect width="{width:.1f}" height="12"/></svg></td>'


def section(question: Question, rows: list[dict[str, Any]]) -> Iterator[str]:
    """The answer to one question."""
    yield f"<h2>{escape(question.words)}</h2>"
    if not rows:
        yield "<p>nothing</p>"
        return
    most = max(float(row[question.plot] or 0) for row in rows)
    heads = "".join(f"<th>{escape(name.replace('_', ' '))}</th>" for name in rows[0])
    yield f"<table><tr>{heads}<th></th></tr>"
    for row in rows[:MOST_ROWS]:
        yield f"<tr>{''.join(map(cell, row.values()))}{bar(row[question.plot], most)}</tr>"
    yield "</table>"
    if len(rows) > MOST_ROWS:
        yield f"<p>and {len(rows) - MOST_ROWS:,} more</p>"


def page(tables: str) -> str:
    """All answers."""
    ask = duckdb_tables(tables)
    parts = (part for question in QUESTIONS for part in section(question, ask(question.sql).to_pylist()))
    return f"<!doctype html><meta charset=utf-8><title>Kafka</title><style>{STYLE}</style>{''.join(parts)}\n"


if __name__ == "__main__":
    _, tables, out = sys.argv
    Path(out).write_text(page(tables))
