"""The pytest plugin: a test captures what a client and its broker say to each other, and asserts on the exchanges.

    def test_the_producer_waits_for_all(kafka_capture):
        with kafka_capture(port=9092) as wire:
            produce()
        assert wire.one("api == Produce")["acks"] == -1

`kafka_proxy` does the same where packets can't be captured: clients connect to `wire.bootstrap`. It needs no rights.

    def test_the_producer_waits_for_all(kafka_proxy):
        with kafka_proxy("localhost:9092") as wire:
            produce(wire.bootstrap)
        assert wire.one("api == Produce")["acks"] == -1

The report of a test that fails lists the exchanges, marks the one that was looked at last, and names a copy of the
capture, which is kept beside the report. The capture has everything that was sent, passwords included.

Invariants:
  * pytest imports this module in all its runs, so it imports nothing of kdissect's until a test asks for the fixture;
  * files of two tests have two names, also where several processes run the tests of one session.
"""

from collections.abc import Generator, Iterable, Iterator
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

import pytest

if TYPE_CHECKING:
    from dissector.pytest_plugin.wire import Wire, WireSettings

REFUSED: Final = "kafka_capture_refused"
FOLDER: Final = "kafka_capture_folder"
LOOPBACK_PORT: Final = 9092
ANY_PORT: Final = "any"
WIRES: Final = pytest.StashKey["list[Wire]"]()
"""The captures of a test that its report has not shown."""

__all__ = ["KafkaCapture", "KafkaProxy", "kafka_capture", "kafka_proxy"]


class _Wires:
    """The captures of a test, whichever way they are made."""

    def __init__(self, request: pytest.FixtureRequest, folder: Path) -> None:
        """Captures go to files in a folder. Raises `pytest.UsageError` for a wrong setting."""
        refused = request.config.getini(REFUSED)
        if refused not in ("fail", "skip"):
            raise pytest.UsageError(f"{REFUSED} = {refused}: expected fail or skip")
        self._skips = refused == "skip"
        self._saves_baselines = request.config.getoption("--save-baselines")
        self._folder = folder
        self._made: list[Wire] = []
        self._shown = request.node.stash.setdefault(WIRES, [])

    def _path(self, kind: str) -> str:
        return str(self._folder / f"{kind}-{len(self._made) + 1}.pcapng")

    def _wire(self, settings: "WireSettings") -> "Wire":
        from dissector.pytest_plugin.wire import Wire

        wire = Wire(settings, skips=self._skips, saves_baselines=self._saves_baselines)
        self._made.append(wire)
        self._shown.append(wire)
        return wire

    def _close(self) -> None:
        for wire in self._made:
            wire.close()


class KafkaCapture(_Wires):
    """The type of the fixture `kafka_capture`: calling it returns a capture for the test."""

    def __call__(
        self,
        port: int | Literal["any"] | Iterable[int] = LOOPBACK_PORT,
        *,
        interface: str = "lo",
        keylog: str | PathLike[str] | Iterable[str | PathLike[str]] = (),
        show_secrets: bool = False,
    ) -> "Wire":
        """Return a capture of one port, of several, or of ``"any"``, for use in a ``with`` statement. `keylog` names
        files with TLS secrets; passwords, tokens and keys are masked unless `show_secrets`. Raises `ValueError` for
        what is no port."""
        __tracebackhide__ = True
        from dissector.capture.live.settings import CaptureSettings
        from dissector.pytest_plugin.wire import WireSettings

        ports = _ports(port)
        key_logs = (keylog,) if isinstance(keylog, str | PathLike) else tuple(keylog)
        recording = CaptureSettings(interface, ports, "", promiscuous=False, path=self._path("kafka"))
        words = f"port {', '.join(map(str, ports)) or ANY_PORT}"
        return self._wire(WireSettings("kafka_capture", recording, words, key_logs, show_secrets))


def _ports(given: int | str | Iterable[int]) -> tuple[int, ...]:
    """Return the ports to capture; none for all. Raises `ValueError`."""
    __tracebackhide__ = True
    if given == ANY_PORT:
        return ()
    from dissector.api.arguments import checked_ports  # the engine, only for those who use the fixture

    ports = checked_ports(given, "kafka_capture(port", otherwise=', or "any"')
    if not ports:
        raise ValueError(f'kafka_capture(port={given!r}): name a port, or "any"')
    return ports


class KafkaProxy(_Wires):
    """The type of the fixture `kafka_proxy`: calling it returns a proxy for the test."""

    def __call__(
        self,
        brokers: str | Iterable[str],
        *,
        listen: str | int = 0,
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
        show_secrets: bool = False,
    ) -> "Wire":
        """Return a proxy for these brokers, for use in a ``with`` statement; clients connect to its `bootstrap`. It
        listens on a port that the system chooses, so that tests may run at the same time. The other parameters are
        those of `dissector.proxy`. Raises `ValueError` for an address that is none."""
        from dissector.api.live_traffic import proxy_settings
        from dissector.pytest_plugin.wire import WireSettings

        recording = proxy_settings(
            brokers, listen=listen, advertise=advertise, tls=tls, ca=ca, cert=cert, key=key, server_name=server_name,
            insecure=insecure, listen_tls=listen_tls, listen_cert=listen_cert, listen_key=listen_key,
            path=self._path("proxied"),
        )  # fmt: skip
        return self._wire(WireSettings("kafka_proxy", recording, f"the {recording.title}", (), show_secrets))


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the settings."""
    parser.getgroup("kafka").addoption(
        "--save-baselines", action="store_true", help="write the files that wire.matches() names, instead of comparing"
    )
    parser.addini(
        REFUSED, "what a test does where capturing, or a proxy, is refused: fail (the default) or skip", default="fail"
    )
    parser.addini(
        FOLDER, "where captures of failed tests are kept: beside the report of --junitxml, or in kafka-captures",
        default="",
    )  # fmt: skip


@pytest.fixture
def kafka_capture(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[KafkaCapture]:
    """Capture the traffic of a port during a ``with`` statement, and query its exchanges afterwards."""
    captures = KafkaCapture(request, tmp_path)
    yield captures
    captures._close()


@pytest.fixture
def kafka_proxy(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[KafkaProxy]:
    """Run a proxy between a client and its brokers during a ``with`` statement, and query the exchanges afterwards."""
    proxies = KafkaProxy(request, tmp_path)
    yield proxies
    proxies._close()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show the captures of a test that failed."""
    report = yield
    wires = item.stash.get(WIRES, None)
    if wires and report.failed:
        from dissector.pytest_plugin.failures import add_traffic

        for number, wire in enumerate(wires, 1):
            add_traffic(report, wire, number, item)
        wires.clear()
    return report
