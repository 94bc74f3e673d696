"""The dialogs of a proxy with what never changes, for their pictures."""

import time
from collections.abc import Callable

from dissector.capture.fault_counts import FaultCount, FiredFault
from dissector.capture.held_messages import HeldMessage, Interception
from dissector.proxy_server.intercept import message_text
from tests.proxy_server.intercept.messages import request
from tui.screens.faults_screen import FaultsScreen, FaultsState
from tui.screens.held_screen import HeldScreen

_NOON_NS = round(time.mktime((2026, 1, 2, 12, 0, 0, 0, 0, -1))) * 10**9
_COUNTS = (
    FaultCount("moved", "api == Produce && topic == orders: error NOT_LEADER_OR_FOLLOWER, first 3", 40, 12, 3, 0),
    FaultCount("2", "api == Fetch: delay 2s, every 10", 40, 25, 2, 0, is_armed=False),
    FaultCount("3", "api == Heartbeat: error REBALANCE_IN_PROGRESS, for 30s", 40, 3, 2, 1),
)
_FIRED = tuple(
    FiredFault(rule, _NOON_NS + second * 10**9, f"127.0.0.1:5000{rule}", second, key)
    for second, (rule, key) in enumerate(((1, 0), (1, 0), (2, 1), (1, 0), (3, 12), (2, 1), (3, 12)))
)


def faults() -> FaultsScreen:
    """Three rules, one of them disarmed, and the last times that they fired."""
    return FaultsScreen(lambda: FaultsState(_COUNTS, _FIRED), lambda _, __: None, lambda: None)


class _Person:
    """Holds two messages for ever."""

    def __init__(self) -> None:
        self._messages = [request("Produce"), request("Heartbeat")]

    def state(self) -> Interception:
        left = time.time_ns() + 17 * 10**9 + 10**9 // 2
        held = [
            each._replace(number=number, client=f"127.0.0.1:5000{number}", until_ns=left + 2 * number * 10**9)
            for number, (each, _) in enumerate(self._messages, 1)
        ]
        return Interception("requests api == Produce || api == Heartbeat", 20.0, 0, tuple(held))

    def show(self, held: HeldMessage, then: Callable[[int, str], object]) -> None:
        then(held.number, message_text(*self._messages[held.number - 1]))

    def send_all(self) -> None:
        """Nothing."""

    def ask(self) -> None:
        """Nothing."""

    def send_on(self, held: HeldMessage) -> None:
        """Nothing."""

    edit = drop = close = wait = send_on


def held() -> HeldScreen:
    """Two messages that wait."""
    return HeldScreen(_Person())
