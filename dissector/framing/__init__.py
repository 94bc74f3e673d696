"""Byte streams cut into size-prefixed frames; finding the next frame after a gap. Knows nothing of Kafka's messages."""

from dissector.framing.resync import Evidence, Heads
from dissector.framing.splitter import Splitter
from dissector.framing.verdicts import Recogniser, Verdict

__all__ = ["Evidence", "Heads", "Recogniser", "Splitter", "Verdict"]
