"""Byte streams split into size-prefixed frames, and resynchronized after gaps. Knows nothing of Kafka's messages."""

from dissector.framing.detector import (
    Classification,
    FoundFrame,
    FrameEvidence,
    FrameHeuristics,
    FrameSeries,
    ProtocolDetector,
)
from dissector.framing.framer import Framer

__all__ = [
    "Classification",
    "FoundFrame",
    "FrameEvidence",
    "FrameHeuristics",
    "FrameSeries",
    "Framer",
    "ProtocolDetector",
]
