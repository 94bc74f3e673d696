"""What was said while a test's ``with`` statement lasted.

Invariants:
  * the file is complete before anything is read of it: questions come after the ``with`` statement;
  * what is handed out notes when a test looks at it, so that the report can mark it.
"""

import warnings
from collections.abc import Callable, Iterable
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

import pytest

import dissector
from dissector.api.exchange import Exchange
from dissector.capture.errors import CaptureError
from dissector.capture.live.recording import Recording
from dissector.capture.live.settings import CaptureSettings, RecordingSettings
from dissector.core.text import clean, counted
from dissector.proxy_server import ProxySettings
from dissector.pytest_plugin.other_ports import OtherPorts

MOST_LINES = 20
"""Exchanges that an assertion's message lists."""


class WireSettings(NamedTuple):
    """What is captured, and how it is read."""

    fixture: str
    """The name of the fixture, for messages."""
    recording: RecordingSettings
    """They name the file to write."""
    words: str
    """What is captured, for the report: “port 9092”."""
    key_logs: tuple[str | PathLike[str], ...]
    show_secrets: bool

    @property
    def path(self) -> Path:
        return Path(self.recording.path)


class WatchedExchange(Exchange):
    """An exchange that says when something of it is looked at."""

    __slots__ = ("_looked_at",)

    def __init__(self, exchange: Exchange, looked_at: Callable[[int], None]) -> None:
        super().__init__(exchange._model, exchange._packets)
        self._looked_at = looked_at

    def __getattribute__(self, name: str) -> Any:
        __tracebackhide__ = True
        if not name.startswith("_"):
            self._looked_at(self._model.fields.number)
        return super().__getattribute__(name)


class Wire:
    """A capture that lasts as long as its ``with`` statement, and afterwards gives access to its exchanges. Filters are
    those of `kdissect show -Y`; an invalid one raises `dissector.FilterError`."""

    def __init__(self, settings: WireSettings, *, skips: bool, saves_baselines: bool = False) -> None:
        self.settings = settings
        self.dropped = 0
        """Packets that the kernel dropped."""
        self.looked_at: int | None = None
        """The number of the exchange that was looked at last."""
        self._skips = skips
        self._saves_baselines = saves_baselines
        self._recording: Recording | None = None
        self._bootstrap = ""
        self._other_ports: OtherPorts | None = None
        self._capture: dissector.Capture | None = None
        self.hint = ""
        """Why there is no exchange; empty if there are some."""

    def __enter__(self) -> Self:
        __tracebackhide__ = True
        if self._recording is not None:
            raise RuntimeError(f"the capture was already used: ask {self.settings.fixture} for another one")
        recorded = self.settings.recording
        try:
            self._recording = Recording(recorded)
        except CaptureError as error:
            if self._skips:
                pytest.skip(f"{self.settings.fixture}: {error}")
            pytest.fail(f"{self.settings.fixture}: {error}", pytrace=False)
        self._bootstrap = ",".join(address for address, _ in self._recording.listening)
        if isinstance(recorded, CaptureSettings):
            self._other_ports = OtherPorts(recorded)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        recording, (fixture, recorded, _, key_logs, show_secrets) = self._recording, self.settings
        assert recording is not None
        recording.stop()
        recording.join()
        self.dropped = recording.dropped
        self._capture = dissector.open(recorded.path, ports=recorded.ports, keylog=key_logs, show_secrets=show_secrets)
        said = list(recording.messages(listening=False))
        if not len(self._capture) and (said or not recording.captured):
            self.hint = "\n".join(said) or self._why_empty()
        if self._other_ports is not None:
            self._other_ports.close()
        if recording.failure and kind is None:
            raise CaptureError(recording.failure)
        for words in said:
            warnings.warn(f"{fixture}: {words}", stacklevel=2)
        if self.dropped:
            warnings.warn(f"{fixture}: the kernel dropped {counted(self.dropped, 'packet')}", stacklevel=2)

    def _why_empty(self) -> str:
        if self._other_ports is not None:
            return self._other_ports.hint()
        return f"no client connected to the proxy: is bootstrap.servers {self._bootstrap}, its wire.bootstrap?"

    @property
    def has_begun(self) -> bool:
        """Whether the ``with`` statement was reached, and could capture."""
        return self._recording is not None

    @property
    def bootstrap(self) -> str:
        """The proxy's address, for the clients' ``bootstrap.servers``. Raises `RuntimeError` before the ``with``
        statement begins, and if this is a packet capture."""
        __tracebackhide__ = True
        if not self._bootstrap:
            is_proxy = isinstance(self.settings.recording, ProxySettings)
            raise RuntimeError(
                "the proxy does not listen yet: use bootstrap inside the with statement"
                if is_proxy
                else "kafka_capture captures packets and has no address: use kafka_proxy"
            )
        return self._bootstrap

    def fault(self, rule: str, name: str = "") -> dissector.Fault:
        """Arm a fault rule of the proxy from now on, written as for ``kdissect proxy --fault``: ``wire.fault("api ==
        Produce: error NOT_LEADER_OR_FOLLOWER, first 1")``. If used in its own ``with`` statement, the rule is disarmed
        at its end. Raises `dissector.FaultError`, a `ValueError`, for an invalid rule, and `RuntimeError` outside the
        proxy's ``with`` statement or if this is a packet capture."""
        __tracebackhide__ = True
        if not self._bootstrap or self._recording is None or self._capture is not None:
            is_proxy = isinstance(self.settings.recording, ProxySettings)
            raise RuntimeError(
                "the proxy is not running: arm faults inside the with statement"
                if is_proxy
                else "kafka_capture captures packets and can't change them: use kafka_proxy"
            )
        return dissector.Fault(self._recording, rule, name)

    @property
    def capture(self) -> dissector.Capture:
        """The capture, for anything that these methods do not cover. Raises `RuntimeError` before its end."""
        __tracebackhide__ = True
        if self._capture is None:
            raise RuntimeError(
                "the capture is still running: ask for exchanges after the with statement"
                if self.has_begun
                else f"nothing was captured: with {self.settings.fixture}(…) as wire: begins it"
            )
        return self._capture

    def exchanges(self, filter: str | None = None) -> list[Exchange]:
        """Return all exchanges, or those that match a filter."""
        __tracebackhide__ = True
        return [WatchedExchange(each, self._look_at) for each in self.capture.exchanges(filter)]

    def records(self, filter: str | None = None) -> list[dissector.Record]:
        """Return the records of all exchanges, or of those that match a filter."""
        __tracebackhide__ = True
        return list(self.capture.records(filter))

    def count(self, filter: str | None = None) -> int:
        """Return the number of exchanges, or of those that match a filter."""
        __tracebackhide__ = True
        found = self.capture.exchanges(filter)
        return sum(1 for _ in found)

    def one(self, filter: str | None = None) -> Exchange:
        """Return the only exchange that matches a filter. Raises `AssertionError` if there is none, or more than
        one."""
        __tracebackhide__ = True
        found = self.exchanges(filter)
        if len(found) != 1:
            raise AssertionError(f"{_matching(found, filter)}; one was expected{self._hint_line()}{lines(found)}")
        self._look_at(found[0]._model.fields.number)
        return found[0]

    def none(self, filter: str | None = None) -> None:
        """Raise `AssertionError` if an exchange matches a filter."""
        __tracebackhide__ = True
        found = self.exchanges(filter)
        if found:
            self._look_at(found[0]._model.fields.number)
            raise AssertionError(f"{_matching(found, filter)}; none was expected{lines(found)}")

    def matches(
        self, baseline: str | PathLike[str], *, fail_on: Iterable[str] = (), ignore: Iterable[str] = ()
    ) -> None:
        """Fail unless the clients behave as a baseline file says; `fail_on` and `ignore` are as for `kdissect diff`.
        With ``--save-baselines``, the file is written instead."""
        __tracebackhide__ = True
        if self._saves_baselines:
            Path(baseline).write_text(self.capture.baseline(), "utf-8")
            return
        if not Path(baseline).exists():
            raise AssertionError(f"there is no {baseline}: run pytest --save-baselines to write it")
        outcomes = self.capture.held_to(baseline, fail_on=fail_on, ignore=ignore)
        broken = [each for each in outcomes if each.status == "broken"]
        if broken:
            self._look_at(next((each.exchange for each in broken if each.exchange), 0))
            rows = (f"  {clean(each.rule)}: {clean(each.message)}{_at(each.exchange)}" for each in broken)
            words = f"{counted(len(broken), 'line')} of {baseline} changed{self._hint_line()}"
            raise AssertionError("\n".join([words, *rows]))

    def _hint_line(self) -> str:
        return f"\n{self.hint}" if self.hint else ""

    def close(self) -> None:
        """Close the file."""
        if self._capture is not None:
            self._capture.close()

    def __repr__(self) -> str:
        return f"<wire of {self.settings.words}>" if self._capture is None else repr(self._capture)

    def _look_at(self, number: int) -> None:
        self.looked_at = number


def _at(number: int | None) -> str:
    return f" (exchange {number:,})" if number else ""


def line(exchange: Exchange) -> str:
    """Return an exchange in a line that is safe to print."""
    return clean(f"{exchange!r} {exchange._model.row.info}").rstrip()


def lines(exchanges: list[Exchange]) -> str:
    """Return lines of the first exchanges, each after a line break."""
    more = len(exchanges) - MOST_LINES
    shown = "".join(f"\n  {line(each)}" for each in exchanges[:MOST_LINES])
    return f"{shown}\n  and {more:,} more" if more > 0 else shown


def _matching(found: list[Exchange], filter: str | None) -> str:
    if filter is None:
        return f"there {'is' if len(found) == 1 else 'are'} {counted(len(found), 'exchange')}"
    return f"{counted(len(found), 'exchange')} match{'es' if len(found) == 1 else ''} {filter}"
