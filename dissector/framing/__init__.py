"""Byte streams cut into size-prefixed frames; finding the next frame after a gap. Knows nothing of Kafka's messages."""

from dissector.framing.detector import Recogniser, Verdict
from dissector.framing.frame_search import Evidence, Heads
from dissector.framing.framer import Splitter

__all__ = ["Evidence", "Heads", "Recogniser", "Splitter", "Verdict"]
