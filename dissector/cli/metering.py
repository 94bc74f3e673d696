"""`--metrics [HOST:]PORT` of `live` and `proxy`: what serves metrics while they run."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from dissector.cli.errors import UsageError, print_error
from dissector.core.addresses import AddressError, listen_address
from dissector.core.extras import missing

if TYPE_CHECKING:  # imported on use
    from types import TracebackType

    from dissector.capture.live import Recording
    from dissector.capture_session import Capture
    from dissector.metrics.live_metrics import ReadingState
    from dissector.metrics.row_meter import RowMeter


class Metering:
    """Serves while its ``with`` statement lasts, and says where on stderr. What it has to say later comes among the
    messages of a recording, for there may be a screen."""

    def __init__(self, host: str, port: int) -> None:
        from dissector.metrics.live_metrics import LiveMetrics

        self._metrics = LiveMetrics(self._say)
        self._host, self._port = host, port
        self._recording: Recording | None = None
        self._state: ReadingState | None = None
        """How far what has counted last came, of the same recording."""
        self._counting: RowMeter | None = None

    def _say(self, words: str) -> None:
        if self._recording is not None:
            self._recording.tell(words)

    def __enter__(self) -> "Metering":
        from dissector.metrics.live_metrics import serve

        url, self._end = serve(self._metrics, self._host, self._port)
        print_error(f"metrics on {url}")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: "TracebackType | None"
    ) -> None:
        self._end()

    @contextmanager
    def of(self, capture: "Capture", recording: "Recording") -> "Iterator[RowMeter]":
        """Count the rows of a capture while the ``with`` statement lasts, and hold on to nothing of it afterwards.
        Another capture of the same recording continues the one before it."""
        from dissector.metrics.row_meter import RowMeter

        before = self._state if recording is self._recording else None
        self._recording = recording
        self._counting = meter = RowMeter(capture, recording, self._metrics, before)
        with meter:
            yield meter
        self._state, self._counting = meter.state, None

    def has_counted_all(self) -> bool:
        """Whether all complete rows are counted of a capture that another one will continue."""
        return self._counting is None or self._counting.has_counted_all()


def metering(address: str) -> Metering:
    """Return what serves on an address. Raises `UsageError`."""
    try:
        host, port = listen_address(address)
    except AddressError as error:
        raise UsageError(f"--metrics {error}") from None
    try:
        return Metering(host, port or 0)
    except ImportError as error:
        if (error.name or "").partition(".")[0] != "prometheus_client":
            raise
        raise UsageError(missing("--metrics needs prometheus_client", "metrics")) from None
