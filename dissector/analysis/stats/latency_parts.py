"""Where the time of exchanges goes, by API: to send the request, to wait for the response, to receive it.

The parts of a latency add up to it; their percentiles do not.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from dissector.analysis.stats.histogram import Histogram, histograms_by_number
from dissector.core.arrays import Int64
from dissector.index.index_columns import IndexColumns

PARTS: Final = ("request_transfer_ns", "wait_ns", "response_transfer_ns")
"""Columns of the index and of tables."""
MOST_APIS: Final = 10_000
"""Versions of APIs that are distinguished: damage makes new ones."""
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
    timed = rows.has_latency
    keys, group = np.unique(apis, return_inverse=True)
    parts = [histograms_by_number(group, len(keys), getattr(rows, name), timed) for name in PARTS]
    for number, *of_api in zip(keys.tolist(), *parts, strict=True):
        if of_api[0].counts:
            yield number, LatencyParts(dict(zip(PARTS, of_api, strict=True)))


def parts_object(parts: LatencyParts) -> dict[str, Any]:
    """Return the parts as JSON has them: nanoseconds."""
    return {"exchanges": parts.exchanges} | {name: each.summary() for name, each in parts.histograms.items()}
