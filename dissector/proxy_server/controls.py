"""Controls a proxy that runs, from the analyzing process: its rules for faults, and the messages that it holds.

Every method waits for the proxy's answer: when it returns, what was asked for is done. Any thread may call it. One that
can't be carried out raises `RefusedError`, one plain line; a text that can't be read, `FaultError`.
"""

import base64

from dissector.capture.fault_counts import FaultCount
from dissector.capture.live import Recording, commands
from dissector.capture.live.recording import fault_counts
from dissector.proxy_server.faults import read_rule
from dissector.proxy_server.intercept import read_intercept


class ProxyControls:
    """Controls the proxy of a recording, which is controlled (`ProxySettings.is_controlled`)."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording

    def add_fault(self, rule: str, name: str = "") -> int:
        """Arm one more rule; return its number, from 1."""
        read = read_rule(rule, name)
        return int(self._recording.ask(commands.ADD_FAULT, rule=str(read), name=name)["number"])

    def arm(self, number: int, *, armed: bool) -> None:
        """Arm a rule, or disarm it. One that is armed again counts its triggers from 0."""
        self._recording.ask(commands.ARM, number=number, armed=armed)

    def fault_counts(self) -> list[FaultCount]:
        """Return what became of the rules up to now."""
        return fault_counts(self._recording.ask(commands.COUNT_FAULTS)["counts"])

    def intercept(self, text: str | None) -> None:
        """Hold what a text says (`intercept/rules.py`), in place of what was held before; None for nothing."""
        if text is not None:
            read_intercept(text)
        self._recording.ask(commands.INTERCEPT, text=text or "", holds=text is not None)

    def limit(self, seconds: float) -> None:
        """Hold messages that come from now on for so long."""
        self._recording.ask(commands.LIMIT, seconds=seconds)

    def frame(self, number: int) -> bytes:
        """Return the frame of a held message."""
        return base64.b64decode(self._recording.ask(commands.LOOK, number=number)["frame"])

    def send_on(self, number: int) -> None:
        """Let a held message go on as it is."""
        self._recording.ask(commands.SEND_ON, number=number)

    def send_all(self) -> None:
        """Let all held messages go on as they are."""
        self._recording.ask(commands.SEND_ALL)

    def drop(self, number: int) -> None:
        """Drop a held message: a request is never answered, a response never comes. The connection stays."""
        self._recording.ask(commands.DROP, number=number)

    def close(self, number: int) -> None:
        """Close the connection of a held message in its place."""
        self._recording.ask(commands.CLOSE, number=number)

    def wait(self, number: int) -> None:
        """Hold a held message for the whole limit, from now on."""
        self._recording.ask(commands.WAIT, number=number)

    def edit(self, number: int, frame: bytes, paths: str) -> None:
        """Let another frame go on in place of a held message; `paths` name the fields that differ."""
        data = base64.b64encode(frame).decode()
        self._recording.ask(commands.EDIT, number=number, frame=data, paths=paths)
