"""A side of a comparison: a capture, or what of it a filter chooses."""

from collections.abc import Iterator
from dataclasses import dataclass

from dissector.capture_file import Capture
from dissector.session.exchange import Exchange


@dataclass(frozen=True, slots=True)
class Side:
    """Exchanges of one capture, of which all is read."""

    capture: Capture
    label: str
    """What people call it: a file's name."""

    def exchanges(self) -> Iterator[Exchange]:
        """Its exchanges, in order."""
        return self.capture.between(0, len(self.capture))
