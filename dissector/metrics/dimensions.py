"""Exchanges, their bytes, errors and latencies, by dimension: one entry of `DIMENSIONS` each.

Invariant: a dimension has at most `MOST_LABEL_SETS` sets of labels, and one more, whose labels are all `OTHER`, for the
exchanges of all the others. A topic's or a client's name is text of any length from the wire: it is cleaned and cut.

They are counted in objects of our own, which become the library's when they are scraped: an exchange adds to some 50
numbers, and with the library's own that took 120 µs, twice as long.
"""

import threading
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from itertools import accumulate
from typing import TYPE_CHECKING, Final, NamedTuple, cast

from prometheus_client import CollectorRegistry, Counter, Metric
from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily
from prometheus_client.utils import floatToGoString

from dissector.core.text import clean, cut
from dissector.core.times import SECOND
from dissector.exchange.message_subjects import GROUP
from dissector.exchange.model import Exchange
from dissector.exchange.row_fields import error_names, topic_names

if TYPE_CHECKING:
    from prometheus_client.registry import Collector

MOST_LABEL_SETS: Final = 200
OTHER: Final = "other"
LONGEST_LABEL: Final = 249
"""Kafka's longest topic name."""
BUCKETS: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
"""Seconds. A Fetch waits for half a second by default, a JoinGroup for minutes."""
_BOUNDS: Final = tuple(round(each * SECOND) for each in BUCKETS)
_NAMES: Final = (*map(floatToGoString, BUCKETS), "+Inf")
_PARTS: Final = ("request", "wait", "response")

LabelSet = tuple[str, ...]


class Measured(NamedTuple):
    """What is counted of an exchange, once for each of its label sets."""

    exchange: Exchange
    api: str
    software: str
    """Name and version of the client's software, as it said (KIP-511)."""


class Dimension(NamedTuple):
    """A way to tell exchanges apart."""

    name: str
    labels: LabelSet
    of: Callable[[Measured], Iterable[LabelSet]]
    """The label sets of an exchange: often one, of topics and groups any number."""


def _of_api(measured: Measured) -> Iterator[LabelSet]:
    version = measured.exchange.fields.version
    yield measured.api, "" if version is None else str(version)


def _of_topics(measured: Measured) -> Iterator[LabelSet]:
    return ((topic, measured.api) for topic in topic_names(measured.exchange))


def _of_groups(measured: Measured) -> Iterator[LabelSet]:
    groups = dict.fromkeys(str(group) for group in GROUP.of(measured.exchange) if group)
    return ((group, measured.api) for group in groups)


DIMENSIONS: Final = (
    Dimension("api", ("api", "version"), _of_api),
    Dimension("software", ("software",), lambda measured: [(measured.software,)]),
    Dimension("client", ("client_id",), lambda measured: [(measured.exchange.fields.client_id or "",)]),
    Dimension("topic", ("topic", "api"), _of_topics),
    Dimension("group", ("group", "api"), _of_groups),
    Dimension("broker", ("broker", "api"), lambda measured: [(measured.exchange.fields.server, measured.api)]),
)


class _Times:
    """A histogram of durations, in nanoseconds."""

    __slots__ = ("counts", "sum_ns")

    def __init__(self) -> None:
        self.counts = [0] * (len(BUCKETS) + 1)
        self.sum_ns = 0

    def add(self, time_ns: int | None) -> None:
        if time_ns is not None:
            self.counts[bisect_left(_BOUNDS, time_ns)] += 1
            self.sum_ns += time_ns

    def buckets(self) -> list[tuple[str, float]]:
        """Return how many are not longer than each bound."""
        return [(name, float(count)) for name, count in zip(_NAMES, accumulate(self.counts), strict=True)]


class _Series:
    """What is counted of one label set."""

    __slots__ = ("errors", "exchanges", "latency", "parts", "request_bytes", "response_bytes")

    def __init__(self) -> None:
        self.exchanges = self.request_bytes = self.response_bytes = self.errors = 0
        self.latency = _Times()
        self.parts = tuple(_Times() for _ in _PARTS)

    def add(self, exchange: Exchange, *, failed: bool) -> None:
        fields = exchange.fields
        self.exchanges += 1
        self.request_bytes += fields.request_size or 0
        self.response_bytes += fields.response_size or 0
        self.errors += failed
        self.latency.add(fields.latency_ns)
        times = (fields.request_transfer_ns, fields.wait_ns, fields.response_transfer_ns)
        for part, time_ns in zip(self.parts, times, strict=True):
            part.add(time_ns)


class DimensionCounts:
    """Counts of one dimension."""

    def __init__(self, dimension: Dimension, most: int) -> None:
        self._dimension = dimension
        self._most = most
        self._other: LabelSet = (OTHER,) * len(dimension.labels)
        self._series: dict[LabelSet, _Series] = {}
        self._lock = threading.Lock()
        """Held while a thread counts, or another one reads."""

    def add(self, measured: Measured, *, failed: bool) -> int:
        """Count an exchange, once for each label set; return how many label sets were left out."""
        keys = {tuple(cut(clean(each), LONGEST_LABEL) for each in key) for key in self._dimension.of(measured)}
        with self._lock:
            counted = {self._place(key) for key in keys}
            for key in counted:
                self._series.setdefault(key, _Series()).add(measured.exchange, failed=failed)
        return len(keys - counted)

    def _place(self, key: LabelSet) -> LabelSet:
        """Return the label set that a label set counts for."""
        is_known = key in self._series or len(self._series) - (self._other in self._series) < self._most
        return key if is_known else self._other

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
            for key, series in self._series.items():
                exchanges.add_metric(key, series.exchanges)
                size.add_metric((*key, "request"), series.request_bytes)
                size.add_metric((*key, "response"), series.response_bytes)
                errors.add_metric(key, series.errors)
                latency.add_metric(key, series.latency.buckets(), series.latency.sum_ns / SECOND)
                for part, times in zip(_PARTS, series.parts, strict=True):
                    parts.add_metric((*key, part), times.buckets(), times.sum_ns / SECOND)
        return iter((exchanges, size, errors, latency, parts))


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

    def add(self, exchange: Exchange, software: tuple[str, str]) -> None:
        """Count an exchange of a client with this software, name and version."""
        errors = error_names(exchange)
        api = exchange.fields.api
        measured = Measured(exchange, api, " ".join(filter(None, software)) or "unknown")
        for name in errors:
            self._errors.labels(*self._error(clean(api), clean(name))).inc()
        for name, counts in self._dimensions.items():
            if others := counts.add(measured, failed=bool(errors)):
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
