"""Serves metrics over HTTP, for Prometheus to scrape."""

from collections.abc import Callable

from prometheus_client import start_http_server

from dissector.capture.errors import CaptureError
from dissector.core.text import endpoint_name, os_reason
from dissector.metrics.live_metrics import LiveMetrics


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
