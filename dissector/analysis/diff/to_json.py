"""A comparison and a matrix as JSON objects. Rows are numbered from 1, as `show` does; times are nanoseconds."""

from typing import Any

from dissector.analysis.diff.matrix import BehaviorMatrix
from dissector.analysis.diff.result import DiffEntry, DiffResult, SideSummary


def diff_to_json(comparison: DiffResult) -> dict[str, Any]:
    """The whole of it."""
    return {
        "kind": "comparison",
        "same": comparison.is_same,
        "a": _side(comparison.a),
        "b": _side(comparison.b),
        "differences": [_entry(entry) for entry in comparison.entries],
        "timings": [
            {
                "api": timing.api, "about": timing.about, "exchanges": timing.exchanges,
                "interval_ns": timing.interval_ns, "latency_ns": timing.latency_ns,
                "retry_backoff_ns": timing.retry_backoff_ns,
            }
            for timing in comparison.timings
        ],
        "pairs": [{"a": _row(pair.a), "b": _row(pair.b), "verdict": pair.verdict.value} for pair in comparison.pairs],
        "ignored": list(comparison.ignored),
    }  # fmt: skip


def matrix_to_json(matrix: BehaviorMatrix) -> dict[str, Any]:
    """A list of sides, and what each does by what it is called."""
    return {"kind": "matrix", "sides": list(matrix.labels), "behaviour": {name: list(row) for name, row in matrix.rows}}


def _side(side: SideSummary) -> dict[str, Any]:
    return {
        "label": side.label,
        "clients": list(side.clients),
        "exchanges": side.exchanges,
        "connections": dict(side.connections),
        "left_out": dict(side.left_out),
    }


def _entry(entry: DiffEntry) -> dict[str, Any]:
    return {
        "api": entry.api or None,
        "part": entry.part or None,
        "path": entry.path or None,
        "reason": entry.reason.value,
        "a": entry.a,
        "b": entry.b,
        "count": [entry.count_a, entry.count_b],
        "words": entry.words.replace("{a}", "A").replace("{b}", "B"),
        "settings": dict(entry.settings),
        "first": [_row(entry.row_a), _row(entry.row_b)],
    }


def _row(number: int | None) -> int | None:
    return None if number is None else number + 1
