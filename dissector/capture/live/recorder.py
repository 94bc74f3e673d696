"""The capture process: `python -m dissector.capture.live.recorder WANTED`, where `WANTED` is JSON.

It is separate from the analyzing process, so that it keeps up whatever that one does, and runs with higher priority if
it may. It writes a file that the other process follows. It ends cleanly when standard input ends: the other process
closes that to stop it, and if that process dies the kernel does. Its messages are in `events`.
"""

import contextlib
import os
import select
import signal
import sys
import time
from collections.abc import Callable
from typing import Final

from dissector.capture.errors import CaptureError
from dissector.capture.live import events
from dissector.capture.live.bpf import compile_expression, ports_filter
from dissector.capture.live.events import send_event
from dissector.capture.live.external_tools import CaptureTool, permission_message
from dissector.capture.live.interfaces import LINUX, Interface, interface, interfaces
from dissector.capture.live.packet_ring import PacketRing
from dissector.capture.live.settings import CaptureSettings
from dissector.capture.live.writer import CaptureWriter

BUILT_IN_ENGINE: Final = "AF_PACKET"
STATISTICS_SECONDS: Final = 1.0
POLL_MS: Final = 200
BETTER_PRIORITY: Final = -10

Asked = Callable[[int], bool]
"""Waits for so many milliseconds at most; whether the end was asked for."""


class TrafficWait:
    """Waits for packets, and for the end of standard input, which ends the capture."""

    def __init__(self, *readable: int) -> None:
        self._poll = select.poll()
        self._poll.register(sys.stdin.fileno(), select.POLLIN)
        for each in readable:
            self._poll.register(each, select.POLLIN)

    def asked(self, milliseconds: int = POLL_MS) -> bool:
        """Whether to end. Returns early if there is something to read."""
        return any(number == sys.stdin.fileno() for number, _ in self._poll.poll(milliseconds))


def record(wanted: CaptureSettings) -> None:
    """Capture until standard input ends. Raises `CaptureError` if nothing here can capture."""
    where = _find_interface(wanted.interface)
    if not where.up:
        send_event(events.NOTE, words=f"interface {where.name} is down: no packets until it is up")
    ring = _packet_ring(wanted, where) if LINUX else None
    if ring is not None:
        _capture_with_ring(ring, wanted, where)
    else:
        _capture_with_tool(wanted)
    send_event(events.ENDED)


def _find_interface(name: str) -> Interface:
    found = interface(name)
    if found is None:
        there = ", ".join(each.name for each in interfaces())
        raise CaptureError(f"no interface {name!r}; there are {there}")
    return found


def _packet_ring(wanted: CaptureSettings, where: Interface) -> PacketRing | None:
    """Return the built-in engine; None if the user may not use it, or if no tcpdump compiles the filter for it."""
    program = ports_filter(wanted.ports)
    if wanted.expression:
        if not where.ethernet:
            return None
        expression = compile_expression(wanted.expression)
        if expression is None:
            return None
        program = expression
    try:
        return PacketRing(where, program, promiscuous=wanted.promiscuous)
    except PermissionError:
        return None
    except OSError as error:
        raise CaptureError(f"{where.name}: {(error.strerror or str(error)).lower()}") from None


def _capture_with_ring(ring: PacketRing, wanted: CaptureSettings, where: Interface) -> None:
    try:
        output = CaptureWriter(wanted, ring.link_type, lambda path: send_event(events.FILE, path=path))
    except OSError as error:
        raise CaptureError(f"{wanted.path}: {(error.strerror or str(error)).lower()}") from None
    _started(BUILT_IN_ENGINE)
    waiting = TrafficWait(ring.fileno())
    reported_at = time.monotonic()
    try:
        while not waiting.asked():
            for packets in ring.blocks():
                output.packets(packets)
            if (trouble := ring.trouble()) is not None:
                send_event(events.NOTE, words=f"{where.name}: {str(trouble.strerror).lower()}")
            if time.monotonic() - reported_at >= STATISTICS_SECONDS:
                reported_at = time.monotonic()
                _write_statistics(ring, output)
                _check_interface(where)
        for packets in ring.last_blocks():
            output.packets(packets)
        _write_statistics(ring, output)
    except OSError as error:
        raise CaptureError(f"{wanted.path}: {(error.strerror or str(error)).lower()}; capturing ended") from None
    finally:
        output.close()


def _started(engine: str) -> None:
    send_event(events.STARTED, engine=engine, raised=os.getpriority(os.PRIO_PROCESS, 0) <= BETTER_PRIORITY)


def _write_statistics(ring: PacketRing, output: CaptureWriter) -> None:
    received, dropped = ring.statistics()
    output.statistics(received, dropped)
    send_event(events.STATISTICS, captured=output.delivered, dropped=dropped)


def _check_interface(where: Interface) -> None:
    """Raise `CaptureError` if the interface is gone. It may go down and up again, but another one of its name is not
    it."""
    now = interface(where.name)
    if now is None or now.number != where.number:
        raise CaptureError(f"interface {where.name} is gone; capturing ended")


def _capture_with_tool(wanted: CaptureSettings) -> None:
    """Capture with the first external program that may."""
    refused: list[str] = []
    for name in ("dumpcap", "tcpdump"):
        tool = CaptureTool.start(name, wanted, refused)
        if tool is not None:
            break
    else:
        raise CaptureError(permission_message(wanted, refused))
    _started(name)
    waiting = TrafficWait(tool.fileno())
    try:
        while tool.heard() and not waiting.asked():
            pass
    finally:
        captured, dropped = tool.end()
        send_event(events.STATISTICS, captured=captured, dropped=dropped)


def main() -> int:
    """Run the capture process; return its exit code, 0 if it captured."""
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # a terminal's are for the analysing process, which then asks us
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, BETTER_PRIORITY)
    try:
        record(CaptureSettings.from_json(sys.argv[1]))
    except CaptureError as error:
        send_event(events.FAILED, words=str(error))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
