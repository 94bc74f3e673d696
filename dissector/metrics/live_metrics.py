"""All metrics of a run of `live` or `proxy`: of its exchanges, and of how reading them goes; served over HTTP, for
Prometheus to scrape."""

from collections.abc import Callable
from typing import NamedTuple

from prometheus_client import CollectorRegistry, Counter, Gauge, start_http_server

from dissector.capture.errors import CaptureError
from dissector.core.text import endpoint_name, os_reason
from dissector.metrics.dimensions import MOST_LABEL_SETS, AllDimensions
from dissector.metrics.look import Look


class ReadingState(NamedTuple):
    """How far reading a recording has come; all since its start."""

    captured: int = 0
    """Packets in the recording."""
    dropped: int = 0
    """Packets that the kernel dropped."""
    read: int = 0
    """Packets read of it."""
    connections: int = 0


class LiveMetrics:
    """Counts what it is given; `registry` has the metrics."""

    def __init__(self, say: Callable[[str], object], most: int = MOST_LABEL_SETS) -> None:
        """`say` gets lines for the user."""
        self.registry = registry = CollectorRegistry()
        self._exchanges = AllDimensions(registry, say, most)
        self._rows = Counter("kdissect_rows", "Rows by kind: exchanges, gaps, …", ("kind",), registry=registry)
        self._findings = Counter(
            "kdissect_findings", "Findings of rows when they were complete.", ("code", "severity"), registry=registry
        )
        self._captured = Counter("kdissect_packets", "Packets captured or made.", registry=registry)
        self._dropped = Counter("kdissect_packets_dropped", "Packets that the kernel dropped.", registry=registry)
        self._connections = Counter("kdissect_connections", "TCP connections.", registry=registry)
        self._unread = Gauge("kdissect_unread_packets", "Packets captured and not read yet.", registry=registry)
        self._uncounted = Gauge(
            "kdissect_uncounted_rows", "Rows read and not counted yet: they wait for their response, or for us.",
            registry=registry,
        )  # fmt: skip

    def add(self, look: Look) -> None:
        """Count rows."""
        for kind, count in look.kinds.items():
            self._rows.labels(kind).inc(count)
        for (code, severity), count in look.findings.items():
            self._findings.labels(code, severity.value).inc(count)
        if len(look.which):
            self._exchanges.add(look)

    def came_from(self, before: ReadingState, now: ReadingState, uncounted: int) -> None:
        """Count how far reading came from one state to the next."""
        self._captured.inc(max(0, now.captured - before.captured))
        self._dropped.inc(max(0, now.dropped - before.dropped))
        self._connections.inc(max(0, now.connections - before.connections))
        self._unread.set(max(0, now.captured - now.read))
        self._uncounted.set(uncounted)


def serve(metrics: LiveMetrics, host: str, port: int) -> tuple[str, Callable[[], None]]:
    """Serve metrics on threads; return their URL, and what ends that. Port 0 is any that is free. Raises
    `CaptureError`."""
    try:
        server, thread = start_http_server(port, host, metrics.registry)
    except (OSError, UnicodeError) as error:
        raise CaptureError(f"--metrics {endpoint_name(host, port)}: {os_reason(error)}") from None

    def end() -> None:
        server.shutdown()
        server.server_close()
        thread.join()

    return f"http://{endpoint_name(host, server.server_port)}/metrics", end
