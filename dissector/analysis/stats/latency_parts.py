"""Where the time of exchanges goes, by API: to send the request, to wait for the response, to receive it.

The parts of a latency add up to it; their percentiles do not.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from dissector.analysis.stats.histogram import Histogram
from dissector.core.arrays import Int64
from dissector.core.columns import unique
from dissector.index.index_columns import IndexColumns

PARTS: Final = ("request_transfer_ns", "wait_ns", "response_transfer_ns")
"""Columns of the index and of tables."""
PERCENTILES: Final = (50, 90, 99)
MOST_APIS: Final = 10_000
"""Versions of APIs that are told apart: damage makes new ones."""
ApiAndVersion = tuple[int, int]


@dataclass(slots=True)
class LatencyParts:
    """The parts of the latencies of one API and version."""

    histograms: dict[str, Histogram] = field(default_factory=lambda: {name: Histogram() for name in PARTS})
    """By part."""

    def merge(self, other: "LatencyParts") -> None:
        """Add those of other exchanges."""
        for name, histogram in self.histograms.items():
            histogram.merge(other.histograms[name])

    @property
    def exchanges(self) -> int:
        """How many exchanges have a latency."""
        return sum(self.histograms["wait_ns"].counts.values())


@dataclass(slots=True)
class PartsByApi:
    """By API and version; those beyond `MOST_APIS` are left out."""

    parts: dict[ApiAndVersion, LatencyParts] = field(default_factory=dict)

    def of(self, key: ApiAndVersion) -> LatencyParts:
        """Those of an API, to be added to."""
        found = self.parts.get(key)
        if found is None:
            found = LatencyParts()
            if len(self.parts) < MOST_APIS:
                self.parts[key] = found
        return found

    def ranked(self) -> list[tuple[ApiAndVersion, LatencyParts]]:
        """All with a latency, the ones with the most exchanges first."""
        return sorted((each for each in self.parts.items() if each[1].exchanges), key=lambda each: -each[1].exchanges)


def count_parts(apis: Int64, rows: IndexColumns) -> Iterator[tuple[int, LatencyParts]]:
    """Yield the number of each API and its parts; `apis` has the number of each row, `(n,)`."""
    which = rows.has_latency
    rows, apis = rows.where(which), apis[which]
    for number in unique(apis).tolist():
        some = rows.where(apis == number)
        yield number, LatencyParts({name: Histogram.of(getattr(some, name)) for name in PARTS})


def parts_object(parts: LatencyParts) -> dict[str, Any]:
    """Return the parts as JSON has them: nanoseconds."""
    return {"exchanges": parts.exchanges} | {
        name: {"min": each.least} | {f"p{at}": each.percentile(at) for at in PERCENTILES} | {"max": each.most}
        for name, each in parts.histograms.items()
    }
