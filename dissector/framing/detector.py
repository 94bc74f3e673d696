"""The interface to protocol detection: whether a direction is Kafka, how its frames begin, and what size that takes."""

from collections.abc import Iterable
from enum import IntEnum
from typing import Final, NamedTuple, Protocol

from dissector.core.arrays import Bool, Int64, UInt8

PREFIX: Final = 4
"""A frame begins with its size, which does not count these."""
LEAST_FRAME: Final = 8
"""A prefix and a correlation id."""
LEAST_HEAD: Final = 14
"""A frame of which fewer bytes at its beginning are there (or less than all of it) is `UNPARSED`."""
HEAD: Final = 64
"""First bytes of a direction or frame that a `ProtocolDetector` gets."""
ALERT_SIZE: Final = 7
"""A TLS record with an alert that is not encrypted."""


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


class FrameEvidence(IntEnum):
    """How strongly the bytes behind a size prefix indicate a frame."""

    NONE = 0
    FAIR = 1
    """Nothing contradicts it."""
    STRONG = 2
    """Unlikely by chance."""


class FoundFrame(NamedTuple):
    """A frame that a search found."""

    word: int
    """The four bytes behind the size prefix, signed: the correlation id of a response."""
    packet: int
    """Of its first byte."""


class FrameSeries(Protocol):
    """The heads of frames in sequence."""

    @property
    def state(self) -> int:
        """Two series in the same state that end with the same head stay in the same state, whatever follows."""

    def add(self, head: bytes) -> bool:
        """Take the next head; return whether the series can be consistent, whatever follows."""

    def is_consistent(self, ends: int) -> bool:
        """Whether the heads are consistent. That suffices, even for heads that are not strong, where the frames begin
        and end with segments; `ends` of them end with one."""


class FrameHeuristics(Protocol):
    """How frames of one direction begin."""

    one_is_enough: bool
    """Whether one strong head suffices in the middle of a segment, if its frame ends with a segment."""
    within_segments: bool
    """Whether frames may begin in the middle of segments."""

    def strong(self, words: Int64, lengths: Int64) -> Bool:
        """Which offsets may have strong heads, by the four bytes behind the size prefix (API key and version, or
        correlation id) and the two at 12 (the client id's length, in requests)."""

    def judge(self, head: bytes, packet: int) -> FrameEvidence:
        """The evidence for a frame that begins with `head`, size prefix included, in packet number `packet`."""

    def series(self) -> FrameSeries:
        """A new series."""

    def follow(self, found: Iterable[FoundFrame]) -> bool:
        """Take note of frames that were found; return whether what is known of the connection is up to date then. If
        not, the index must have them first."""


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
