"""Counts as objects, as JSON has them."""

from typing import Any, Final

from dissector.analysis.stats.breakdowns import StatsGroup
from dissector.analysis.stats.counts import ExchangeCounts

PERCENTILES: Final = (50, 90, 99)


def group_object(by: str, group: StatsGroup) -> dict[str, Any]:
    """Return a group of exchanges; `by` says by what they are grouped."""
    return {"by": by} | group.fields | counts_object(group.counts)


def counts_object(counts: ExchangeCounts) -> dict[str, Any]:
    """Return what was counted of some exchanges: sizes in bytes, latencies in nanoseconds."""
    latency = counts.usual_latency
    percentiles = {f"p{percent}": latency.percentile(percent) for percent in PERCENTILES}
    return {
        "exchanges": counts.exchanges, "bytes_out": counts.bytes_out, "bytes_in": counts.bytes_in,
        "errors": counts.errors, "unanswered": counts.unanswered,
        "latency_ns": {"min": latency.least} | percentiles | {"max": latency.most},
    }  # fmt: skip
