"""Metrics of exchanges, counted one by one: what the numbers of a scrape are held against."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final

from prometheus_client.utils import floatToGoString

from dissector.capture_session import Capture
from dissector.core.text import clean, cut
from dissector.core.times import SECOND
from dissector.exchange.message_subjects import ERROR, GROUP, TOPIC
from dissector.exchange.model import Exchange
from dissector.exchange.row_fields import EXCHANGE, error_names, topic_names
from dissector.metrics.dimensions import DIMENSIONS, LONGEST_LABEL, OTHER
from dissector.metrics.series import BUCKETS

Key = tuple[str, tuple[tuple[str, str], ...]]
_NAMES: Final = {each.name: each.labels for each in DIMENSIONS}


class RowWise:
    """Counts rows of one capture."""

    def __init__(self, capture: Capture, most: int) -> None:
        self._capture = capture
        self._most = most
        self._known: dict[str, set[tuple[str, ...]]] = {}
        self._counts = Counter[Key]()
        """Numbers; sums of times in nanoseconds."""

    def samples(self) -> dict[Key, float]:
        """All numbers, as a scrape has them."""
        return {
            key: value / SECOND if key[0].endswith("seconds_sum") else float(value)
            for key, value in self._counts.items()
        }

    def add(self, exchanges: Iterable[Exchange]) -> None:
        """Count rows."""
        for each in exchanges:
            self._count("kdissect_rows_total", kind=each.fields.kind)
            for finding in each.findings:
                self._count("kdissect_findings_total", code=finding.code, severity=finding.severity.value)
            if each.fields.kind == EXCHANGE:
                self._add_exchange(each)

    def _add_exchange(self, exchange: Exchange) -> None:
        errors = error_names(ERROR.of(exchange))
        for name in errors:
            api, error = self._place("error", (clean(exchange.fields.api), clean(name)))
            self._count("kdissect_errors_total", api=api, error=error)
        for dimension, labels in _NAMES.items():
            keys = {
                tuple(cut(clean(each), LONGEST_LABEL) for each in key): None for key in self._of(dimension, exchange)
            }
            placed = {self._place(dimension, key): None for key in keys}
            for key in placed:
                self._measure(f"kdissect_{dimension}", dict(zip(labels, key, strict=True)), exchange, bool(errors))
            others = len(keys) - len(keys.keys() & placed.keys())
            if others:
                self._count("kdissect_other_labels_total", others, dimension=dimension)

    def _of(self, dimension: str, exchange: Exchange) -> Iterator[tuple[str, ...]]:
        fields = exchange.fields
        match dimension:
            case "api":
                yield fields.api, "" if fields.version is None else str(fields.version)
            case "software":
                yield (" ".join(filter(None, self._capture.connections.software(fields.connection))) or "unknown",)
            case "client":
                yield (fields.client_id or "",)
            case "topic":
                yield from ((topic, fields.api) for topic in topic_names(exchange, TOPIC.of(exchange)))
            case "group":
                yield from ((str(group), fields.api) for group in GROUP.of(exchange) if group)
            case "broker":
                yield fields.server, fields.api

    def _place(self, dimension: str, key: tuple[str, ...]) -> tuple[str, ...]:
        known = self._known.setdefault(dimension, set())
        if key not in known:
            other = (OTHER,) * len(key)
            if len(known - {other}) >= self._most:
                key = other
            known.add(key)
        return key

    def _measure(self, name: str, labels: dict[str, str], exchange: Exchange, failed: bool) -> None:
        fields = exchange.fields
        self._count(f"{name}_exchanges_total", **labels)
        self._count(f"{name}_bytes_total", fields.request_size or 0, **labels, direction="request")
        self._count(f"{name}_bytes_total", fields.response_size or 0, **labels, direction="response")
        self._count(f"{name}_errors_total", int(failed), **labels)
        self._time(f"{name}_latency_seconds", labels, fields.latency_ns)
        parts = (fields.request_transfer_ns, fields.wait_ns, fields.response_transfer_ns)
        for part, time_ns in zip(("request", "wait", "response"), parts, strict=True):
            self._time(f"{name}_latency_part_seconds", labels | {"part": part}, time_ns)

    def _time(self, name: str, labels: dict[str, str], time_ns: int | None) -> None:
        there = int(time_ns is not None)
        at = bisect_left([round(each * SECOND) for each in BUCKETS], time_ns or 0)
        for place, bound in enumerate((*map(floatToGoString, BUCKETS), "+Inf")):
            self._count(f"{name}_bucket", there * (at <= place), **labels, le=bound)
        self._count(f"{name}_count", there, **labels)
        self._count(f"{name}_sum", time_ns or 0, **labels)

    def _count(self, name: str, by: int = 1, **labels: str) -> None:
        self._counts[name, tuple(sorted(labels.items()))] += by
