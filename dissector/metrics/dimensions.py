"""Exchanges, their bytes, errors and latencies, by dimension: one entry of `DIMENSIONS` each.

Invariant: a dimension has at most `MOST_LABEL_SETS` sets of labels, and one more, whose labels are all `OTHER`, for the
exchanges of all the others. A topic's or a client's name is text of any length from the wire: it is cleaned and cut.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple

from prometheus_client import CollectorRegistry, Counter, Histogram

from dissector.core.text import clean, cut
from dissector.exchange.message_subjects import GROUP
from dissector.exchange.model import Exchange
from dissector.exchange.row_fields import error_names, topic_names

MOST_LABEL_SETS: Final = 200
OTHER: Final = "other"
LONGEST_LABEL: Final = 249
"""Kafka's longest topic name."""
BUCKETS: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
"""Seconds. A Fetch waits for half a second by default, a JoinGroup for minutes."""
_SECOND: Final = 1e9

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


class _Series(NamedTuple):
    """The metrics of one label set."""

    exchanges: Counter
    request_bytes: Counter
    response_bytes: Counter
    errors: Counter
    latency: Histogram
    parts: tuple[Histogram, Histogram, Histogram]


class DimensionCounts:
    """Counts of one dimension."""

    def __init__(self, dimension: Dimension, registry: CollectorRegistry, most: int) -> None:
        self._dimension = dimension
        self._most = most
        self._series: dict[LabelSet, _Series] = {}
        self.left_out = False
        """Whether some labels were left out."""
        name, labels = f"kdissect_{dimension.name}", dimension.labels
        words = f"by {' and '.join(labels)}"
        self._exchanges = Counter(f"{name}_exchanges", f"Exchanges {words}.", labels, registry=registry)
        self._bytes = Counter(f"{name}_bytes", f"Bytes {words}.", (*labels, "direction"), registry=registry)
        self._errors = Counter(f"{name}_errors", f"Exchanges with an error {words}.", labels, registry=registry)
        self._latency = Histogram(
            f"{name}_latency_seconds", f"What clients wait, {words}.", labels, registry=registry, buckets=BUCKETS
        )
        self._parts = Histogram(
            f"{name}_latency_part_seconds", f"Sending the request, waiting, receiving the response, {words}.",
            (*labels, "part"), registry=registry, buckets=BUCKETS,
        )  # fmt: skip

    def add(self, measured: Measured, *, failed: bool) -> int:
        """Count an exchange; return how often it was counted as `OTHER`."""
        fields, others = measured.exchange.fields, 0
        found = dict.fromkeys(tuple(cut(clean(each), LONGEST_LABEL) for each in key) for key in self._keys(measured))
        series = [self._of(key) for key in found]
        for each in dict.fromkeys(series):
            key_series = self._series[each]
            key_series.exchanges.inc()
            key_series.request_bytes.inc(fields.request_size or 0)
            key_series.response_bytes.inc(fields.response_size or 0)
            if failed:
                key_series.errors.inc()
            times = (fields.request_transfer_ns, fields.wait_ns, fields.response_transfer_ns)
            if fields.latency_ns is not None:
                key_series.latency.observe(fields.latency_ns / _SECOND)
            for histogram, time_ns in zip(key_series.parts, times, strict=True):
                if time_ns is not None:
                    histogram.observe(time_ns / _SECOND)
        others = sum(each == self._other for each in series)
        self.left_out = self.left_out or others > 0
        return others

    @property
    def _other(self) -> LabelSet:
        return (OTHER,) * len(self._dimension.labels)

    def _keys(self, measured: Measured) -> Iterable[LabelSet]:
        return self._dimension.of(measured)

    def _of(self, key: LabelSet) -> LabelSet:
        """Return the label set that counts for one, whose metrics are there."""
        if key not in self._series:
            if len(self._series) - (self._other in self._series) >= self._most:
                key = self._other
            if key not in self._series:
                self._series[key] = _Series(
                    self._exchanges.labels(*key),
                    self._bytes.labels(*key, "request"),
                    self._bytes.labels(*key, "response"),
                    self._errors.labels(*key),
                    self._latency.labels(*key),
                    (
                        self._parts.labels(*key, "request"),
                        self._parts.labels(*key, "wait"),
                        self._parts.labels(*key, "response"),
                    ),
                )
        return key


class AllDimensions:
    """Counts of all dimensions."""

    def __init__(self, registry: CollectorRegistry, say: Callable[[str], object], most: int = MOST_LABEL_SETS) -> None:
        """`say` gets a line when a dimension has more label sets than `most`, once for each."""
        self._say = say
        self._most = most
        self._dimensions = {each.name: DimensionCounts(each, registry, most) for each in DIMENSIONS}
        self._other = Counter(
            "kdissect_other_labels", f"Counted as {OTHER}: there are too many labels.", ("dimension",),
            registry=registry,
        )  # fmt: skip
        self._errors = Counter("kdissect_errors", "Errors in responses.", ("api", "error"), registry=registry)

    def add(self, exchange: Exchange, software: tuple[str, str]) -> None:
        """Count an exchange of a client with this software, name and version."""
        errors = error_names(exchange)
        api = exchange.fields.api
        measured = Measured(exchange, api, " ".join(filter(None, software)) or "unknown")
        for name in errors:
            self._errors.labels(clean(api), clean(name)).inc()  # both are of Kafka's own lists
        for name, counts in self._dimensions.items():
            knew = counts.left_out
            if others := counts.add(measured, failed=bool(errors)):
                self._other.labels(name).inc(others)
                if not knew:
                    self._say(f"metrics: more than {self._most} label sets by {name}: the rest is counted as {OTHER}")
