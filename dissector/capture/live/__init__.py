"""Packets as they come: a capture process that writes a growing file, and the analysing process that follows it."""

from dissector.capture.live.interfaces import LOOPBACK, interfaces
from dissector.capture.live.no_traffic import silence_words
from dissector.capture.live.recording import Recording
from dissector.capture.live.recording_source import source
from dissector.capture.live.settings import CaptureSettings, RingSettings

__all__ = ["LOOPBACK", "CaptureSettings", "Recording", "RingSettings", "interfaces", "silence_words", "source"]
