"""What framing asks of who knows Kafka: whether a direction is Kafka's, and where its first frame begins."""

from enum import IntEnum
from typing import Protocol

from dissector.core.arrays import Bool, Int64, UInt8
from dissector.framing.frame_search import FrameHeuristics


class Classification(IntEnum):
    """What a direction is."""

    UNDECIDED = 0
    """More bytes, or the other direction, must tell."""
    PERHAPS = 1
    """Kafka, if a frame is found in it."""
    FRAMES = 2
    """Kafka, a frame begins here."""
    SEARCH = 3
    """Kafka, but its place is lost, or the capture began in the middle of a frame."""
    OTHER = 4
    """Not Kafka: its bytes are not framed."""


class Detector(Protocol):
    """Knows Kafka from other protocols."""

    def verdict(self, direction: int, head: bytes, *, from_start: bool, final: bool) -> Classification:
        """What a direction is of which `head` is seen first; `from_start` if the stream began with it, `final` if
        there is no more to wait for."""

    def begin(self, directions: Int64, heads: UInt8, sizes: Int64) -> Bool:
        """Of directions that begin here, in the order of their packets, those that columns tell to be frames: of others
        the verdict is asked for. `heads` is `(n, HEAD)`, `sizes` says how many of these bytes are there, and more."""

    def asks(self, direction: int) -> bool:
        """Whether a direction is a client's, as far as can be told."""

    def heads(self, direction: int) -> FrameHeuristics:
        """How frames of this direction begin, for finding one."""

    def expects(self, direction: int) -> bool:
        """Whether to go on searching a direction in which no frame was found for long."""

    def found(self, direction: int, head: bytes) -> None:
        """A frame was found in a direction that was perhaps Kafka's; it begins with `head`."""
