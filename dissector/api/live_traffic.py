"""Live traffic, as programs see it."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator
from os import PathLike, fspath
from types import TracebackType
from typing import Final, Self

from dissector.api.exchange import Exchange, Packet
from dissector.capture.live import LOOPBACK, CaptureSettings, Recording, recording_source
from dissector.capture_session import Capture as Session
from dissector.capture_session.process_watch import ProcessWatch
from dissector.filter import Filter, parse

KAFKA_PORT: Final = 9092


class Live:
    """Exchanges as they happen, each once it is complete: what `dissector.live` returns. It is iterated once, by
    ``for`` or ``async for``, and ends with its context, `stop`, or the time that it was given.

    >>> import asyncio
    >>> async def count():
    ...     async with dissector.live(seconds=0.1) as traffic:
    ...         return len([exchange async for exchange in traffic])
    >>> asyncio.run(count())
    0
    """

    def __init__(
        self, settings: CaptureSettings, filter: Filter | None, *, key_logs: list[str], show_secrets: bool,
        processes: bool,
    ) -> None:  # fmt: skip
        self._filter = filter
        self._recording = Recording(settings)
        self._session = Session(
            [recording_source(self._recording)], ports=frozenset(settings.ports), key_logs=key_logs,
            show_secrets=show_secrets,
        )  # fmt: skip
        self._watch = ProcessWatch(self._session, self._recording.comment) if processes else None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        self.close()

    def stop(self) -> None:
        """End capturing. Iterating goes on with what was captured, and then ends. Any thread may call it."""
        self._recording.stop()

    def close(self) -> None:
        """End capturing, and release everything."""
        self._recording.stop()
        self._recording.join()
        self._session.close()

    @property
    def dropped(self) -> int:
        """Packets that the kernel dropped, as last reported."""
        return self._recording.dropped

    def __iter__(self) -> Iterator[Exchange]:
        return (exchange for some in self._steps() for exchange in some)

    async def __aiter__(self) -> AsyncIterator[Exchange]:
        steps = self._steps()
        while (some := await asyncio.to_thread(next, steps, None)) is not None:
            for exchange in some:
                yield exchange

    def _steps(self) -> Iterator[list[Exchange]]:
        """Yield what each step of reading has completed: often nothing. A step takes a fifth of a second at most."""
        for rows in self._session.completed_rows():
            if self._watch is not None:
                self._watch.look_when_due()
            if self._filter is not None and self._filter.reads_findings:
                for _ in self._session.findings.examine():
                    pass
            chosen = rows if self._filter is None else self._session.matching(self._filter, rows)
            yield [Exchange(each, _no_packets) for each in self._session.at(chosen)]


def live(
    port: int | Iterable[int] = KAFKA_PORT,
    *,
    interface: str = LOOPBACK,
    filter: str | None = None,
    expression: str = "",
    seconds: float | None = None,
    path: str | PathLike[str] = "",
    keylog: str | PathLike[str] | Iterable[str | PathLike[str]] = (),
    show_secrets: bool = False,
    processes: bool = True,
) -> Live:
    """Capture the traffic of one port, or some, and yield its exchanges as they complete.

    It begins at once, and ends after so many seconds if they are given. `filter` is one of kdissect's, `expression`
    one of libpcap's in place of the ports. With a `path` the packets are kept in that file. Unless `processes` is off,
    the local process of each connection is looked up: fields `process`, `pid`, `container`. Raises `FilterError`, and
    `CaptureError` where this user may not capture, with one line that says what to do.

    >>> with dissector.live(port=9092, filter="api == Produce", seconds=0.1) as traffic:
    ...     for exchange in traffic:
    ...         print(exchange.client_id, exchange["topic"])
    """
    ports = (port,) if isinstance(port, int) else tuple(port)
    key_logs = [keylog] if isinstance(keylog, str | PathLike) else keylog
    parsed = None if filter is None else parse(filter)
    settings = CaptureSettings(interface, ports, expression, promiscuous=False, path=fspath(path))
    made = Live(
        settings, parsed, key_logs=[fspath(each) for each in key_logs], show_secrets=show_secrets, processes=processes
    )
    if seconds is not None:
        made._recording.stop_after(seconds)
    return made


def _no_packets(row: int) -> list[Packet]:
    raise ValueError("a live capture does not keep packets: give it a path, and open that file afterwards")
