"""The pytest plugin: a test captures what a client and its broker say to each other, and asserts on the exchanges.

    def test_the_producer_waits_for_all(kafka_capture):
        with kafka_capture(port=9092) as wire:
            produce()
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
from typing import TYPE_CHECKING, Final, Protocol

import pytest

if TYPE_CHECKING:
    from dissector.pytest_plugin.wire import Wire

REFUSED: Final = "kafka_capture_refused"
FOLDER: Final = "kafka_capture_folder"
LOOPBACK_PORT: Final = 9092
WIRES: Final = pytest.StashKey["list[Wire]"]()
"""The captures of a test that its report has not shown."""

__all__ = ["KafkaCapture", "kafka_capture"]


class KafkaCapture(Protocol):
    """The type of the fixture `kafka_capture`."""

    def __call__(
        self,
        port: int | Iterable[int] = LOOPBACK_PORT,
        *,
        interface: str = "lo",
        keylog: str | PathLike[str] | Iterable[str | PathLike[str]] = (),
        show_secrets: bool = False,
    ) -> "Wire":
        """Return a capture of one port, or some, to be used in a ``with`` statement. `keylog` names files with TLS
        secrets; passwords, tokens and keys are masked unless `show_secrets`."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the settings."""
    parser.getgroup("kafka").addoption(
        "--save-baselines", action="store_true", help="write the files that wire.matches() names, instead of comparing"
    )
    parser.addini(REFUSED, "what a test does where capturing is refused: fail (the default) or skip", default="fail")
    parser.addini(
        FOLDER, "where captures of failed tests are kept: beside the report of --junitxml, or in kafka-captures",
        default="",
    )  # fmt: skip


@pytest.fixture
def kafka_capture(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[KafkaCapture]:
    """Capture the traffic of a port while a ``with`` statement lasts, and ask for its exchanges afterwards."""
    from dissector.pytest_plugin.wire import Wire, WireSettings

    refused = request.config.getini(REFUSED)
    if refused not in ("fail", "skip"):
        raise pytest.UsageError(f"{REFUSED} = {refused}: fail or skip is expected")
    wires = request.node.stash.setdefault(WIRES, [])
    made: list[Wire] = []

    def capture(
        port: int | Iterable[int] = LOOPBACK_PORT,
        *,
        interface: str = "lo",
        keylog: str | PathLike[str] | Iterable[str | PathLike[str]] = (),
        show_secrets: bool = False,
    ) -> Wire:
        ports = (port,) if isinstance(port, int) else tuple(port)
        key_logs = (keylog,) if isinstance(keylog, str | PathLike) else tuple(keylog)
        path = tmp_path / f"kafka-{len(made) + 1}.pcapng"
        wire = Wire(
            WireSettings(path, ports, interface, key_logs, show_secrets), skips=refused == "skip",
            saves_baselines=request.config.getoption("--save-baselines"),
        )  # fmt: skip
        made.append(wire)
        wires.append(wire)
        return wire

    yield capture
    for wire in made:
        wire.close()


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
