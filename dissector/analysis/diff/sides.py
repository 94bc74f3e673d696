"""A side of a comparison: a capture, or what of it is chosen."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from dissector.capture_file import Capture
from dissector.session.exchange import Exchange


@dataclass(frozen=True, slots=True)
class Side:
    """Exchanges of one capture, of which all is read."""

    capture: Capture
    label: str
    """What people call it: a file's name, and what was chosen of it."""
    chosen: Callable[[Exchange], bool] | None = None
    """Whether an exchange is of this side; None for all of them."""

    def exchanges(self) -> Iterator[Exchange]:
        """Its exchanges, in order."""
        exchanges = self.capture.between(0, len(self.capture))
        return exchanges if self.chosen is None else filter(self.chosen, exchanges)
