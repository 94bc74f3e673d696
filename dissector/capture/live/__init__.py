"""Packets as they come: a capture process that writes a growing file, and the analysing process that follows it."""

from dissector.capture.live.following import source
from dissector.capture.live.interfaces import LOOPBACK, interfaces
from dissector.capture.live.recording import Recording
from dissector.capture.live.silence import silence_words
from dissector.capture.live.wanted import Ring, Wanted

__all__ = ["LOOPBACK", "Recording", "Ring", "Wanted", "interfaces", "silence_words", "source"]
