"""Settings of a live capture, as chosen in the CLI or the TUI and as sent to the capture process.

They are sent as one JSON object, so that the process needs no other options.
"""

import json
import os
import re
from dataclasses import asdict, dataclass, replace
from itertools import count
from pathlib import Path
from typing import ClassVar, Final, Protocol, Self

from dissector.capture.errors import CaptureError
from dissector.capture.live.interfaces import ANY, LOOPBACK, listening_ports

MIN_RING_FILES: Final = 2
_NUMBERED: Final = re.compile(r"(.*?)(?:-([0-9]{1,3}))?", re.DOTALL)
_RING: Final = re.compile(r"(filesize|files|duration):([1-9][0-9]{0,8})")


@dataclass(frozen=True, slots=True)
class RingSettings:
    """When the next file begins, and how many are kept: dumpcap's `-b`. 0 means no limit."""

    kilobytes: int = 0
    """Units of 1,000 bytes, as in dumpcap."""
    seconds: int = 0
    files: int = 0

    @classmethod
    def parse(cls, words: list[str]) -> Self:
        """Parse `filesize:KB`, `duration:SECONDS`, `files:COUNT`. Raises `CaptureError`."""
        limits: dict[str, int] = {}
        for word in words:
            match = _RING.fullmatch(word)
            if match is None:
                raise CaptureError(f"-b {word!r}: expected filesize:KB, duration:SECONDS or files:COUNT")
            limits[match[1]] = int(match[2])
        ring = cls(limits.get("filesize", 0), limits.get("duration", 0), limits.get("files", 0))
        if not (ring.kilobytes or ring.seconds):
            raise CaptureError("-b files:COUNT also needs -b filesize:KB or -b duration:SECONDS")
        if 0 < ring.files < MIN_RING_FILES:
            raise CaptureError(f"-b files:{ring.files}: a ring needs at least {MIN_RING_FILES} files")
        return ring

    def is_full(self, size: int, seconds: float) -> bool:
        """Return whether the next file begins, after so many bytes and seconds."""
        return 0 < self.kilobytes * 1_000 <= size or 0 < self.seconds <= seconds


class RecordingSettings(Protocol):
    """What `live` and `proxy` need of the settings of a recording, wherever its packets come from."""

    RECORDER: ClassVar[str]
    """The module that the recording process runs, with `as_json` as its argument."""

    @property
    def path(self) -> str:
        """The file to write, the base of a ring's names; empty for a temporary file."""

    @property
    def ring(self) -> RingSettings | None:
        """When the next file begins."""

    @property
    def ports(self) -> tuple[int, ...]:
        """Ports of brokers that are known before the first packet."""

    @property
    def title(self) -> str:
        """Where packets come from, for the title of the screen."""

    @property
    def words(self) -> str:
        """What is done, for a person: “capturing on lo, port 9092”."""

    @property
    def interface_name(self) -> str:
        """The name of the interface in the file."""

    @property
    def filter_expression(self) -> str:
        """The filter in libpcap's syntax; empty if there is none."""

    def as_json(self) -> str:
        """Return JSON for the recording process."""

    def for_next_capture(self) -> Self:
        """Return settings for the next recording, to a new file."""

    def no_traffic_message(self, seconds: float) -> str:
        """Return one line for the user, after so many `seconds` without a packet."""

    def widening_hint(self) -> str:
        """Return what to start to see more; empty if nothing shows more."""


def next_path(path: str) -> str:
    """Return the file for the recording after the one in `path`: ``orders-2.pcapng`` after ``orders.pcapng``."""
    this = Path(path)
    found = _NUMBERED.fullmatch(this.stem)
    assert found is not None, "it matches every name"
    stem, number = found.groups()
    names = (this.with_name(f"{stem}-{each}{this.suffix}") for each in count(int(number or 1) + 1))
    return str(next(name for name in names if not os.path.lexists(name)))


@dataclass(frozen=True, slots=True)
class CaptureSettings:
    """Settings of one live capture."""

    RECORDER: ClassVar[str] = "dissector.capture.live.recorder"

    interface: str
    ports: tuple[int, ...]
    """TCP ports, of either end; none for all. Without `expression` they are the filter."""
    expression: str
    """A filter in libpcap's syntax, or empty."""
    promiscuous: bool
    path: str
    """The file to write; with a ring, the base of the files' names."""
    ring: RingSettings | None = None

    def as_json(self) -> str:
        """Return JSON for the capture process."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Parse the JSON of `as_json`."""
        values = json.loads(text)
        ring = values["ring"] and RingSettings(**values["ring"])
        return cls(**(values | {"ports": tuple(values["ports"]), "ring": ring}))

    def for_next_capture(self) -> Self:
        """Return settings for the next capture, to a new file: ``orders-2.pcapng`` after ``orders.pcapng``. Files of a
        ring have new names anyway."""
        if not self.path or self.ring is not None:
            return self
        return replace(self, path=next_path(self.path))

    @property
    def interface_name(self) -> str:
        return self.interface

    @property
    def title(self) -> str:
        return self.interface if self.expression else f"{self.interface}:{','.join(map(str, self.ports)) or 'any port'}"

    @property
    def words(self) -> str:
        return f"capturing on {self.interface}, {self.filter_label}"

    @property
    def filter_expression(self) -> str:
        """Return the filter in libpcap's syntax. Fragments after the first have no ports, and pass."""
        if self.expression:
            return self.expression
        ports = " or ".join(f"tcp port {port}" for port in self.ports) or "tcp"
        return f"{ports} or (ip proto 6 and ip[6:2] & 0x1fff != 0)"

    @property
    def filter_label(self) -> str:
        """Return the filter for display."""
        if self.expression:
            return f"“{self.expression}”"
        if not self.ports:
            return "any TCP port"
        return f"port{'s' * (len(self.ports) > 1)} {', '.join(map(str, self.ports))}"

    def no_traffic_message(self, seconds: float) -> str:
        """Return one line for the user, after so many `seconds` without a packet."""
        return f"no packet on {self.interface}, {self.filter_label}, for {seconds:.0f} s; {self._hint()}"

    def widening_hint(self) -> str:
        """Return what to start to see more than this capture does; empty if it sees all TCP there is."""
        if self.expression:
            return "to see more: another --capture-filter, or none"
        wider = []
        if self.ports and self.interface == LOOPBACK:
            wider.append("kdissect live    any port of this machine")
        elif self.ports:
            wider.append(f"kdissect live -i {self.interface} --capture-filter tcp    any port")
        if self.interface != ANY:
            wider.append("kdissect live -i any    all interfaces, port 9092 (-p for others)")
        return "\n".join(["to see more:", *wider]) if wider else ""

    def _hint(self) -> str:
        if self.expression:
            return "does the filter match any traffic?"
        if not self.ports:
            return "does a client talk to a broker on this interface? (-i any for all interfaces)"
        listening = listening_ports() if self.interface == LOOPBACK else None
        if listening is None:
            return "is the client using another port (-p) or interface (-i)?"
        if listening & {*self.ports}:
            return "a server listens there, and no client talks to it on this interface (-i for another)"
        return "nothing on this machine listens there (-p for another port, -i for another interface)"
