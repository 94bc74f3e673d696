"""Settings of a live capture, as chosen in the CLI or the TUI and as sent to the capture process.

They are sent as one JSON object, so that the process needs no other options.
"""

import json
import os
import re
from dataclasses import asdict, dataclass, replace
from itertools import count
from pathlib import Path
from typing import Final, Self

from dissector.capture.errors import CaptureError

ANY: Final = "any"
"""All interfaces at once."""
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
                raise CaptureError(f"-b {word!r}: filesize:KB, duration:SECONDS or files:COUNT is expected")
            limits[match[1]] = int(match[2])
        ring = cls(limits.get("filesize", 0), limits.get("duration", 0), limits.get("files", 0))
        if not (ring.kilobytes or ring.seconds):
            raise CaptureError("-b files:COUNT also needs -b filesize:KB or -b duration:SECONDS")
        if 0 < ring.files < MIN_RING_FILES:
            raise CaptureError(f"-b files:{ring.files}: at least {MIN_RING_FILES} files make a ring")
        return ring

    def is_full(self, size: int, seconds: float) -> bool:
        """Return whether the next file begins, after so many bytes and seconds."""
        return 0 < self.kilobytes * 1_000 <= size or 0 < self.seconds <= seconds


@dataclass(frozen=True, slots=True)
class CaptureSettings:
    """Settings of one live capture."""

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
        path = Path(self.path)
        stem, number = _NUMBERED.fullmatch(path.stem).groups()  # type: ignore[union-attr]  # it matches every name
        numbers = count(int(number or 1) + 1)
        names = (path.with_name(f"{stem}-{each}{path.suffix}") for each in numbers)
        return replace(self, path=str(next(name for name in names if not os.path.lexists(name))))

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
