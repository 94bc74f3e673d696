"""A rule for faults of a proxy that runs, as programs and tests have it."""

from types import TracebackType
from typing import Self

from dissector.capture.fault_counts import FaultCount
from dissector.capture.live import Recording
from dissector.capture.live.commands import RefusedError
from dissector.proxy_server.controls import ProxyControls
from dissector.proxy_server.faults import FaultError


class Fault:
    """A rule for faults. It is armed from the beginning until `disarm` is called, or its ``with`` statement or the
    proxy ends. The counts are current; after the proxy has ended, they are the final counts.

    >>> with dissector.proxy("localhost:9092", listen=0, seconds=0.1) as traffic:
    ...     with traffic.fault("api == Produce: error NOT_LEADER_OR_FOLLOWER, first 1") as moved:
    ...         pass  # here the client produces
    ...     print(moved.fired)
    0
    """

    def __init__(self, recording: Recording, rule: str, name: str = "") -> None:
        """Arm a rule. Raises `FaultError`, a `ValueError`, for one that can't be read, or has a name that another one
        has."""
        __tracebackhide__ = True
        self._recording = recording
        self._controls = ProxyControls(recording)
        self.rule = rule
        try:
            self._number = self._controls.add_fault(rule, name)
        except FaultError as error:
            raise error.with_traceback(None) from None
        except RefusedError as error:
            raise ValueError(f"fault {rule}: {error}") from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.disarm()

    def arm(self) -> None:
        """Arm the rule again. Its triggers count from 0: a rule with `first 1` fires once more. Raises
        `RuntimeError` if the proxy has ended."""
        self._arm(armed=True)

    def disarm(self) -> None:
        """Disarm the rule. This does nothing if the proxy has ended."""
        self._arm(armed=False)

    def _arm(self, *, armed: bool) -> None:
        try:
            self._controls.arm(self._number, armed=armed)
        except RefusedError as error:
            if armed or not (self._recording.stopping or self._recording.ended):
                raise RuntimeError(f"fault {self.rule}: {error}") from None

    @property
    def asked(self) -> int:
        """Exchanges that were tested against the rule."""
        return self._count.asked

    @property
    def matched(self) -> int:
        """Tested exchanges that matched its filter."""
        return self._count.matched

    @property
    def fired(self) -> int:
        """How often it fired."""
        return self._count.fired

    @property
    def unable(self) -> int:
        """Exchanges that it could not change: too large to examine, or without a field for the error."""
        return self._count.unable

    @property
    def _count(self) -> FaultCount:
        try:
            counts = self._controls.fault_counts()
        except RefusedError:
            self._recording.join()
            counts = self._recording.faults
        return counts[self._number - 1]

    def __repr__(self) -> str:
        count = self._count
        return f"<fault {self.rule!r}, fired {count.fired:,}, matched {count.matched:,} of {count.asked:,}>"
