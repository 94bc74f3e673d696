"""Exchanges, their bytes, errors and latencies, by dimension: one entry of `DIMENSIONS` each.

Invariant: a dimension has at most `MOST_LABEL_SETS` sets of labels, and one more, whose labels are all `OTHER`, for the
exchanges of all the others. A topic's or a client's name is text of any length from the wire: it is cleaned and cut.
"""

import threading
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Final, NamedTuple, cast

import numpy as np
from prometheus_client import CollectorRegistry, Counter, Metric
from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily

from dissector.core.arrays import Int64
from dissector.core.text import clean, cut
from dissector.metrics.look import Look, Measured, MeasuredApi
from dissector.metrics.series import PARTS, Measures, Series

if TYPE_CHECKING:
    from prometheus_client.registry import Collector

MOST_LABEL_SETS: Final = 200
OTHER: Final = "other"
LONGEST_LABEL: Final = 249
"""Kafka's longest topic name."""

LabelSet = tuple[str, ...]


class Dimension(NamedTuple):
    """A way to tell exchanges apart."""

    name: str
    labels: LabelSet
    of: Callable[[Measured], Iterable[LabelSet]]
    """The label sets of an exchange: often one, of topics and groups any number."""


DIMENSIONS: Final = (
    Dimension("api", MeasuredApi._fields, lambda each: [each.kind]),
    Dimension("software", ("software",), lambda each: [(each.ends.software,)]),
    Dimension("client", ("client_id",), lambda each: [(each.client_id,)]),
    Dimension("topic", ("topic", "api"), lambda each: [(topic, each.kind.api) for topic in each.subjects.topics]),
    Dimension("group", ("group", "api"), lambda each: [(group, each.kind.api) for group in each.subjects.groups]),
    Dimension("broker", ("broker", "api"), lambda each: [(each.ends.server, each.kind.api)]),
)


class DimensionCounts:
    """Counts of one dimension."""

    def __init__(self, dimension: Dimension, most: int) -> None:
        self._dimension = dimension
        self._most = most
        self._other: LabelSet = (OTHER,) * len(dimension.labels)
        self._numbers: dict[LabelSet, int] = {}
        """Of each label set that of its series."""
        self._series = Series(most + 1)
        self._lock = threading.Lock()
        """Held while a thread counts, or another one reads."""

    def add(self, look: Look, measures: Measures) -> Int64:
        """Count exchanges, each once for each of its label sets; return how many label sets of each of
        `Look.measured` have no series of their own."""
        others = np.zeros(len(look.measured), np.int64)
        cleaned: dict[LabelSet, LabelSet] = {}
        series: list[list[int]] = []
        with self._lock:
            for at, measured in enumerate(look.measured):
                keys = {cleaned.get(each) or _cleaned(each, cleaned): None for each in self._dimension.of(measured)}
                series.append(list({self._place(key): None for key in keys}))
                others[at] = sum(key not in self._numbers for key in keys)
            self._series.add(measures, look.which, series)
        return others

    def _place(self, key: LabelSet) -> int:
        """Return the number of the series that a label set counts for."""
        number = self._numbers.get(key)
        if number is None:
            is_full = len(self._numbers) - (self._other in self._numbers) >= self._most
            number = self._numbers.setdefault(self._other if is_full else key, len(self._numbers))
        return number

    def describe(self) -> Iterable[Metric]:
        """The library asks for names before there are numbers."""
        return ()

    def collect(self) -> Iterator[Metric]:
        name, labels = f"kdissect_{self._dimension.name}", self._dimension.labels
        words = f"by {' and '.join(labels)}"
        exchanges = CounterMetricFamily(f"{name}_exchanges", f"Exchanges {words}.", labels=labels)
        size = CounterMetricFamily(f"{name}_bytes", f"Bytes {words}.", labels=(*labels, "direction"))
        errors = CounterMetricFamily(f"{name}_errors", f"Exchanges with an error {words}.", labels=labels)
        latency = HistogramMetricFamily(f"{name}_latency_seconds", f"What clients wait, {words}.", labels=labels)
        parts = HistogramMetricFamily(
            f"{name}_latency_part_seconds", f"Sending the request, waiting, receiving the response, {words}.",
            labels=(*labels, "part"),
        )  # fmt: skip
        with self._lock:
            for key, number in self._numbers.items():
                sums = self._series.of(number)
                exchanges.add_metric(key, sums.exchanges)
                size.add_metric((*key, "request"), sums.request_bytes)
                size.add_metric((*key, "response"), sums.response_bytes)
                errors.add_metric(key, sums.errors)
                latency.add_metric(key, sums.latency.buckets, sums.latency.sum)
                for part, times in zip(PARTS, sums.parts, strict=True):
                    parts.add_metric((*key, part), times.buckets, times.sum)
        return iter((exchanges, size, errors, latency, parts))


def _cleaned(key: LabelSet, known: dict[LabelSet, LabelSet]) -> LabelSet:
    """Return a label set as it is shown, and remember it."""
    found = known[key] = tuple(cut(clean(each), LONGEST_LABEL) for each in key)
    return found


class AllDimensions:
    """Counts of all dimensions."""

    def __init__(self, registry: CollectorRegistry, say: Callable[[str], object], most: int = MOST_LABEL_SETS) -> None:
        """`say` gets a line when a dimension has more label sets than `most`, once for each."""
        self._say = say
        self._most = most
        self._said: set[str] = set()
        self._dimensions = {each.name: DimensionCounts(each, most) for each in DIMENSIONS}
        for each in self._dimensions.values():
            registry.register(cast("Collector", each))  # it asks for the methods only
        self._other = Counter(
            "kdissect_other_labels", f"Counted as {OTHER}: there are too many labels.", ("dimension",),
            registry=registry,
        )  # fmt: skip
        self._errors = Counter("kdissect_errors", "Errors in responses.", ("api", "error"), registry=registry)
        self._known_errors: set[LabelSet] = set()

    def add(self, look: Look) -> None:
        """Count the exchanges of a look."""
        counts = np.bincount(look.which, minlength=len(look.measured))
        for measured, count in zip(look.measured, counts.tolist(), strict=True):
            for name in measured.errors:
                self._errors.labels(*self._error(clean(measured.kind.api), clean(name))).inc(count)
        failed = np.array([bool(each.errors) for each in look.measured], np.bool_)[look.which]
        measures = Measures.of(look.exchanges, failed)
        for name, dimension in self._dimensions.items():
            if others := int((dimension.add(look, measures) * counts).sum()):
                self._other.labels(name).inc(others)
                if name not in self._said:
                    self._said.add(name)
                    self._say(f"metrics: more than {self._most} label sets by {name}: others are counted as {OTHER}")

    def _error(self, *key: str) -> LabelSet:
        """Return the labels of an error: numbers that Kafka does not have are on the wire, too."""
        if key not in self._known_errors:
            if len(self._known_errors) >= self._most:
                return OTHER, OTHER
            self._known_errors.add(key)
        return key
