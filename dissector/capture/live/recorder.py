"""The capture process: `python -m dissector.capture.live.recorder SETTINGS`, where `SETTINGS` is JSON.

It is separate from the analyzing process, so that it keeps up whatever that process does, and runs with higher priority
if it may. It writes a file that the other process follows. It ends cleanly when standard input ends: the other process
closes it to stop the capture, and the kernel closes it if that process dies. Its messages are in `events`.

Invariant: with the rights that opening a packet socket takes, it reads no packet. It gives them up before that.
"""

import contextlib
import os
import select
import signal
import sys
import time
from typing import Final

from dissector.capture.errors import CaptureError
from dissector.capture.live import events
from dissector.capture.live.bpf import compile_expression, ports_filter
from dissector.capture.live.events import send_event
from dissector.capture.live.external_tools import CaptureTool, permission_message
from dissector.capture.live.interfaces import LINUX, Interface, interface, interfaces
from dissector.capture.live.output_files import TEMPORARY, Files, output_files
from dissector.capture.live.packet_ring import PacketRing
from dissector.capture.live.rights import Rights
from dissector.capture.live.scapy_socket import ENGINE as SCAPY_ENGINE
from dissector.capture.live.scapy_socket import NOTE as SLOW
from dissector.capture.live.scapy_socket import ScapySocket
from dissector.capture.live.settings import CaptureSettings
from dissector.capture.live.writer import CaptureWriter
from dissector.core.files import write_reason
from dissector.core.text import os_reason

BUILT_IN_ENGINE: Final = "AF_PACKET"
STATISTICS_SECONDS: Final = 1.0
POLL_MS: Final = 200
BETTER_PRIORITY: Final = -10


class TrafficWait:
    """Waits for packets, for comments on lines of standard input, and for its end, which ends the capture."""

    def __init__(self, *readable: int) -> None:
        self._poll = select.poll()
        self._poll.register(events.CHANNEL, select.POLLIN)
        self._begun = b""
        """Of a line that is not complete."""
        self._lines: list[str] = []
        for descriptor in readable:
            self._poll.register(descriptor, select.POLLIN)

    def end_requested(self) -> bool:
        """Wait; return whether to end. Returns early if there is something to read."""
        if all(number != events.CHANNEL for number, _ in self._poll.poll(POLL_MS)):
            return False
        data = os.read(events.CHANNEL, 1 << 16)
        *lines, self._begun = (self._begun + data).split(b"\n")
        self._lines += [line.decode(errors="replace") for line in lines]
        return not data

    def take_lines(self) -> list[str]:
        """Return the lines since the last call."""
        lines, self._lines = self._lines, []
        return lines


def record(settings: CaptureSettings) -> None:
    """Capture until standard input ends. Raises `CaptureError` if nothing here can capture."""
    where = _find_interface(settings.interface)
    if not where.up:
        send_event(events.NOTE, words=f"interface {where.name} is down: no packets until it is up")
    rights = Rights()
    files = output_files(settings, rights.user)
    ring = _packet_ring(settings, where) if LINUX else None
    if ring is not None:
        _capture_here(BUILT_IN_ENGINE, ring, settings, where, files, rights)
    else:
        _capture_with_another(settings, where, files, rights)
    send_event(events.ENDED)


def _find_interface(name: str) -> Interface:
    found = interface(name)
    if found is None:
        names = ", ".join(each.name for each in interfaces())
        raise CaptureError(f"unknown interface {name!r}; known are {names}")
    return found


def _packet_ring(settings: CaptureSettings, where: Interface) -> PacketRing | None:
    """Return the built-in engine; None if the user may not use it, or if no tcpdump compiles the filter for it."""
    program = ports_filter(settings.ports)
    if settings.expression:
        if not where.ethernet:
            return None
        expression = compile_expression(settings.expression)
        if expression is None:
            return None
        program = expression
    try:
        return PacketRing(where, program, promiscuous=settings.promiscuous)
    except PermissionError:
        return None
    except OSError as error:
        raise CaptureError(f"{where.name}: {os_reason(error)}") from None


def _capture_here(
    engine: str,
    ring: PacketRing | ScapySocket,
    settings: CaptureSettings,
    where: Interface,
    files: Files,
    rights: Rights,
) -> None:
    """Capture in this process, and write the file."""
    name = settings.path or TEMPORARY
    try:
        output = CaptureWriter(settings, ring.link_type, lambda file: send_event(events.FILE, file=file), files)
    except OSError as error:
        raise CaptureError(f"{name}: {write_reason(name, error)}") from None
    rights.give_up()
    _started(engine)
    wait = TrafficWait(ring.fileno())
    reported_at = time.monotonic()
    try:
        while not wait.end_requested():
            for packets in ring.blocks():
                output.packets(packets)
            if comments := wait.take_lines():
                output.comments(comments)
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
        raise CaptureError(f"{name}: {os_reason(error)}; capturing ended") from None
    finally:
        output.close()


def _started(engine: str) -> None:
    send_event(events.STARTED, engine=engine, raised=os.getpriority(os.PRIO_PROCESS, 0) <= BETTER_PRIORITY)


def _write_statistics(ring: PacketRing | ScapySocket, output: CaptureWriter) -> None:
    received, dropped = ring.statistics()
    output.statistics(received, dropped)
    send_event(events.STATISTICS, captured=output.delivered, dropped=dropped)


def _check_interface(where: Interface) -> None:
    """Raise `CaptureError` if the interface is gone, even if another one has its name now. It may go down and up."""
    now = interface(where.name)
    if now is None or now.number != where.number:
        raise CaptureError(f"interface {where.name} is gone; capturing ended")


def _capture_with_another(settings: CaptureSettings, where: Interface, files: Files, rights: Rights) -> None:
    """Capture with the first external program that may, or with scapy."""
    refused: list[str] = []
    for name in ("dumpcap", "tcpdump"):
        tool = CaptureTool.start(name, settings, files, rights.user, refused)
        if tool is not None:
            rights.give_up()
            return _capture_with_tool(name, tool)
    sniffing = ScapySocket.open(settings, where, refused)
    if sniffing is None:
        raise CaptureError(permission_message(settings, refused))
    send_event(events.NOTE, words=SLOW)
    return _capture_here(SCAPY_ENGINE, sniffing, settings, where, files, rights)


def _capture_with_tool(name: str, tool: CaptureTool) -> None:
    """Capture with an external program that has started."""
    _started(name)
    wait = TrafficWait(*tool.readable)
    try:
        while tool.read_output() and not wait.end_requested():
            pass
    finally:
        captured, dropped = tool.end()
        send_event(events.STATISTICS, captured=captured, dropped=dropped)


def main() -> int:
    """Run the capture process; return its exit code, 0 if it captured."""
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # the terminal sends them to the analyzing process, too, which stops us
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
