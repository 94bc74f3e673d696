"""The result of a comparison, and a matrix, as JSON objects. Rows count from 1, as in `show`; times are nanoseconds."""

from typing import Any

from dissector.analysis.diff.behavior import BehaviorMatrix
from dissector.analysis.diff.formatting import name_sides
from dissector.analysis.diff.ranking import area_of
from dissector.analysis.diff.result import DiffEntry, DiffResult, SideSummary


def diff_to_json(result: DiffResult) -> dict[str, Any]:
    """Return a whole comparison."""
    return {
        "kind": "comparison",
        "same": result.is_same,
        "a": _side(result.a),
        "b": _side(result.b),
        "differences": [_entry(entry) for entry in result.entries],
        "timings": [
            {
                "api": timing.api, "about": timing.subject, "exchanges": timing.exchanges,
                "interval_ns": timing.interval_ns, "latency_ns": timing.latency_ns,
                "retry_backoff_ns": timing.retry_backoff_ns,
            }
            for timing in result.timings
        ],
        "pairs": [{"a": _row(pair.a), "b": _row(pair.b), "verdict": pair.verdict.value} for pair in result.pairs],
        "ignored": list(result.ignored),
    }  # fmt: skip


def matrix_to_json(matrix: BehaviorMatrix) -> dict[str, Any]:
    """Return the labels of the sides, and by behavior what each of them does."""
    return {"kind": "matrix", "sides": list(matrix.labels), "behaviour": {name: list(row) for name, row in matrix.rows}}


def _side(side: SideSummary) -> dict[str, Any]:
    return {
        "label": side.label,
        "clients": list(side.clients),
        "exchanges": side.exchanges,
        "connections": dict(side.connections),
        "left_out": dict(side.skipped),
    }


def _entry(entry: DiffEntry) -> dict[str, Any]:
    return {
        "api": entry.api or None,
        "part": entry.part or None,
        "path": entry.path or None,
        "about": entry.subject or None,
        "area": area_of(entry).value,
        "reason": entry.reason.value,
        "a": entry.a,
        "b": entry.b,
        "count": [entry.count_a, entry.count_b],
        "words": name_sides(entry.explanation),
        "settings": dict(entry.settings),
        "first": [_row(entry.row_a), _row(entry.row_b)],
    }


def _row(number: int | None) -> int | None:
    return None if number is None else number + 1
