"""The interface to protocol detection: whether a direction is Kafka, and how its frames begin."""

from enum import IntEnum
from typing import Protocol

from dissector.core.arrays import Bool, Int64, UInt8
from dissector.framing.frame_search import FrameHeuristics


class Classification(IntEnum):
    """What a direction is."""

    UNDECIDED = 0
    """More bytes, or those of the other direction, are needed."""
    POSSIBLE = 1
    """Kafka, if a frame is found in it."""
    FRAMES = 2
    """Kafka; a frame begins here."""
    SEARCH = 3
    """Kafka, but where the next frame begins is unknown: after a gap, or as the capture began inside a frame."""
    OTHER = 4
    """Not Kafka: its bytes are not framed."""


class ProtocolDetector(Protocol):
    """Distinguishes Kafka from other protocols. `detection.kafka_detector` implements it."""

    def classify(self, direction: int, head: bytes, *, from_start: bool, final: bool) -> Classification:
        """Classify a direction by its first bytes.

        `from_start`: the stream began with `head`. `final`: there is nothing more to wait for."""

    def classify_starts(self, directions: Int64, heads: UInt8, sizes: Int64) -> Bool:
        """Return which directions plainly begin with a frame, `(n,)`. For the others `classify` is called.

        Directions are in the order of their first packets. `heads` is `(n, HEAD)`; `sizes` are the bytes available,
        `(n,)`, more than `HEAD` included."""

    def note_alert(self, direction: int, data: bytes) -> None:
        """Take note of a TLS alert in a direction that is not Kafka, if `data` is one."""

    def is_client(self, direction: int) -> bool:
        """Whether a direction is a client's, as far as is known."""

    def heuristics(self, direction: int) -> FrameHeuristics:
        """Return how frames of this direction begin, for a search."""

    def is_probably_kafka(self, direction: int) -> bool:
        """Whether to go on searching a direction in which no frame was found in a whole window."""

    def confirm(self, direction: int, head: bytes) -> None:
        """Take note that a frame, which begins with `head`, was found in a direction that was possibly Kafka."""
