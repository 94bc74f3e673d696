"""Live traffic, as programs see it."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator
from os import PathLike, fspath
from pathlib import Path
from types import TracebackType
from typing import Self

from dissector.api.arguments import checked_filter, checked_paths, checked_ports
from dissector.api.exchange import Exchange, Packet
from dissector.api.faults import Fault
from dissector.capture.live import LOOPBACK, CaptureSettings, Recording, RecordingSettings, recording_source
from dissector.capture_session import Capture as Session
from dissector.capture_session.process_watch import ProcessWatch
from dissector.core.addresses import KAFKA_PORT
from dissector.filter import Filter, parse
from dissector.proxy_server import ListenTls, ProxySettings, UpstreamTls


class Live:
    """Exchanges as they happen, each when it is complete; `dissector.live` and `dissector.proxy` return it. Iterate
    over it once, with ``for`` or ``async for``. It ends with its context, with `stop`, or after the time that it was
    given.

    >>> import asyncio
    >>> async def count():
    ...     async with dissector.live(seconds=0.1) as traffic:
    ...         return len([exchange async for exchange in traffic])
    >>> asyncio.run(count())
    0
    """

    def __init__(
        self, settings: RecordingSettings, filter: Filter | None, *, key_logs: list[str], show_secrets: bool,
        processes: bool,
    ) -> None:  # fmt: skip
        self._filter = filter
        self._recording = Recording(settings)
        self._bootstrap = ",".join(address for address, _ in self._recording.listening)
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
        """Stop capturing. Iteration continues with the exchanges captured so far, and then ends. Any thread may call
        this."""
        self._recording.stop()

    def close(self) -> None:
        """Stop capturing, and release all resources."""
        self._recording.stop()
        self._recording.join()
        self._session.close()

    @property
    def dropped(self) -> int:
        """Packets that the kernel dropped, as last reported."""
        return self._recording.dropped

    @property
    def bootstrap(self) -> str:
        """The proxy's address, for the clients' ``bootstrap.servers``. Raises `ValueError` if this is a packet
        capture."""
        if not self._bootstrap:
            raise ValueError("this captures packets and has no address: use dissector.proxy")
        return self._bootstrap

    def fault(self, rule: str, name: str = "") -> Fault:
        """Arm a fault rule of the proxy, written as for ``kdissect proxy --fault``. If used in a ``with`` statement,
        the rule is disarmed at its end. Raises `FaultError`, a `ValueError`, for an invalid rule, and `ValueError` if
        this is a packet capture or another rule has the same name.

        >>> with dissector.proxy("localhost:9092", listen=0, seconds=0.1) as traffic:
        ...     print(traffic.fault("api == Fetch: delay 2s, every 5"))
        <fault 'api == Fetch: delay 2s, every 5', fired 0, matched 0 of 0>
        """
        __tracebackhide__ = True
        if not self._bootstrap:
            raise ValueError("this captures packets and can't change them: use dissector.proxy")
        return Fault(self._recording, rule, name)

    def messages(self) -> list[str]:
        """Return the messages since the last call, as lines: brokers that can't be reached, lost packets."""
        return [*self._recording.messages(listening=False)]

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
    """Capture the traffic of one or more ports, and yield its exchanges as they complete.

    Capturing begins at once, and ends after `seconds`, if given. `filter` is a kdissect filter; `expression` is a
    libpcap filter that replaces the ports. With a `path`, the packets are kept in that file. Unless `processes` is
    false, the local process of each connection is looked up: fields `process`, `pid`, `container`. Raises
    `FilterError`, and, if this user may not capture, `CaptureError` with one line that says what to do.

    >>> with dissector.live(port=9092, filter="api == Produce", seconds=0.1) as traffic:
    ...     for exchange in traffic:
    ...         print(exchange.client_id, exchange["topic"])
    """
    ports = checked_ports(port, "live(port")
    key_logs = checked_paths(keylog, "live(keylog")
    parsed = None if filter is None else parse(checked_filter(filter))
    settings = CaptureSettings(interface, ports, expression, promiscuous=False, path=fspath(path))
    made = Live(settings, parsed, key_logs=key_logs, show_secrets=show_secrets, processes=processes)
    if seconds is not None:
        made._recording.stop_after(seconds)
    return made


def proxy(
    brokers: str | Iterable[str],
    *,
    listen: str | int = "",
    advertise: str = "",
    tls: bool = False,
    ca: str | PathLike[str] = "",
    cert: str | PathLike[str] = "",
    key: str | PathLike[str] = "",
    server_name: str = "",
    insecure: bool = False,
    listen_tls: bool = False,
    listen_cert: str | PathLike[str] = "",
    listen_key: str | PathLike[str] = "",
    filter: str | None = None,
    seconds: float | None = None,
    path: str | PathLike[str] = "",
    show_secrets: bool = False,
) -> Live:
    """Run a proxy between clients and brokers, and yield the exchanges as they complete. It needs no special rights.

    Clients connect to `Live.bootstrap`. The parameters are like the options of ``kdissect proxy``: `brokers` are
    ``HOST:PORT``, `listen` is ``[HOST:]PORT`` (0 for any port), `tls` applies to brokers and `listen_tls` to clients,
    and a certificate or key file implies it. With a `path`, the traffic is kept in that file, as packets. Raises
    `FilterError`, `ValueError` for an invalid address, and `CaptureError` if it can't listen or a file can't be used.

    >>> with dissector.proxy("localhost:9092", listen=0, seconds=0.1) as traffic:
    ...     assert traffic.bootstrap.startswith("127.0.0.1:")
    ...     for exchange in traffic:
    ...         print(exchange.client_id, exchange["topic"])
    """
    settings = proxy_settings(
        brokers, listen=listen, advertise=advertise, tls=tls, ca=ca, cert=cert, key=key, server_name=server_name,
        insecure=insecure, listen_tls=listen_tls, listen_cert=listen_cert, listen_key=listen_key, path=path,
    )  # fmt: skip
    parsed = None if filter is None else parse(checked_filter(filter))
    made = Live(settings, parsed, key_logs=[], show_secrets=show_secrets, processes=False)
    if seconds is not None:
        made._recording.stop_after(seconds)
    return made


def proxy_settings(
    brokers: str | Iterable[str],
    *,
    listen: str | int,
    advertise: str = "",
    tls: bool = False,
    ca: str | PathLike[str] = "",
    cert: str | PathLike[str] = "",
    key: str | PathLike[str] = "",
    server_name: str = "",
    insecure: bool = False,
    listen_tls: bool = False,
    listen_cert: str | PathLike[str] = "",
    listen_key: str | PathLike[str] = "",
    path: str | PathLike[str],
) -> ProxySettings:
    """Return the settings of `proxy`. Raises `AddressError`, a `ValueError`."""
    addresses = (brokers,) if isinstance(brokers, str) else tuple(brokers) if isinstance(brokers, Iterable) else ()
    if not all(isinstance(each, str) for each in addresses) or not isinstance(brokers, Iterable):
        raise TypeError(f"proxy({brokers!r}): a broker is text, such as 'localhost:9092'")
    to_brokers = UpstreamTls(_whole(ca), _whole(cert), _whole(key), server_name, insecure)
    to_clients = ListenTls(_whole(listen_cert), _whole(listen_key))
    return ProxySettings.of(
        addresses, str(listen), advertise,
        tls=to_brokers if tls or to_brokers != UpstreamTls() else None,
        listen_tls=to_clients if listen_tls or to_clients != ListenTls() else None,
        path=fspath(path), is_controlled=True,
    )  # fmt: skip


def _whole(path: str | PathLike[str]) -> str:
    """Return the whole path of a file; empty for none."""
    return str(Path(path).absolute()) if fspath(path) else ""


def _no_packets(row: int) -> list[Packet]:
    raise ValueError("a live capture does not keep packets: give it a path, and open that file afterwards")
