"""A side of a comparison: a capture, or what of it a filter chooses."""

from collections.abc import Iterator
from dataclasses import dataclass

from dissector.analysis.filter import Filter
from dissector.capture_file import Capture
from dissector.session.exchange import Exchange


@dataclass(frozen=True, slots=True)
class Side:
    """Exchanges of one capture, of which all is read."""

    capture: Capture
    label: str
    """What people call it: a file's name, and what was chosen of it."""
    filter: Filter | None = None
    """What an exchange must fit to be of this side; None for all of them."""

    def exchanges(self) -> Iterator[Exchange]:
        """Its exchanges, in order."""
        if self.filter is None:
            yield from self.capture.between(0, len(self.capture))
            return
        for found in self.capture.select(self.filter):
            yield from self.capture.at(found.rows)
